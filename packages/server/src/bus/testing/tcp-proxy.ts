import { once } from 'node:events'
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** A connection that a test can interrupt, between a client and a server on loopback. */
export class TcpProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #passed: Buffer[] = []
  #state: 'open' | 'cut' | 'frozen' = 'open'

  private constructor(targetPort: () => number) {
    this.#server = createServer((client) => {
      this.#keep(client)
      if (this.#state === 'cut') client.resetAndDestroy()
      // A frozen process accepts connections, because the system does, and says nothing.
      if (this.#state !== 'open') return
      const target = createConnection(targetPort(), '127.0.0.1')
      this.#keep(target)
      client.pipe(target).pipe(client)
      for (const socket of [client, target]) socket.on('data', (data: Buffer) => void this.#passed.push(data))
      client.on('close', () => target.destroy())
      target.on('close', () => client.destroy())
    })
  }

  static async start(targetPort: () => number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** How much went through it, in both directions. */
  get passedBytes(): number {
    return this.#passed.reduce((sum, { length }) => sum + length, 0)
  }

  /** Whether this text went through it. */
  saw(text: string): boolean {
    return Buffer.concat(this.#passed).includes(text)
  }

  /** Ends all connections, and refuses others until `restore`. */
  cut(): void {
    this.#state = 'cut'
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  /** Keeps all connections, and passes nothing on. */
  freeze(): void {
    this.#state = 'frozen'
    for (const socket of this.#sockets) socket.unpipe().removeAllListeners('data').pause()
  }

  /** Accepts connections again. Those that were frozen end. */
  restore(): void {
    for (const socket of this.#sockets) if (this.#state === 'frozen') socket.resetAndDestroy()
    this.#state = 'open'
  }

  async close(): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
  }
}
