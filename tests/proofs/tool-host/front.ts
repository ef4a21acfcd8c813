import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** The address of a service: passes each connection on to a server that is alive, and can cut all of them. */
export class Front {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #targets: () => readonly number[]
  readonly #delayMs: number
  #next = 0
  #isCut = false

  private constructor(targets: () => readonly number[], delayMs: number) {
    this.#targets = targets
    this.#delayMs = delayMs
    this.#server = createServer((socket) => this.#accept(socket))
  }

  /** `delayMs`: how much longer each direction takes. */
  static async start(targets: () => readonly number[], { delayMs = 0 } = {}): Promise<Front> {
    const front = new Front(targets, delayMs)
    await new Promise<void>((resolve) => front.#server.listen(0, '127.0.0.1', resolve))
    return front
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** No connection for this long. What was under way is lost. */
  async cut(ms: number): Promise<void> {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
    await setTimeout(ms)
    this.#isCut = false
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #accept(socket: Socket): void {
    const ports = this.#targets()
    const port = ports[this.#next++ % ports.length]
    if (this.#isCut || port === undefined) return void socket.destroy()
    const server = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [socket, server],
      [server, socket],
    ] as const) {
      this.#sockets.add(from)
      from.setNoDelay(true)
      from.on('data', (chunk: Buffer) => this.#pass(chunk, to))
      from.on('error', () => undefined)
      from.on('close', () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
  }

  #pass(chunk: Buffer, to: Socket): void {
    if (this.#delayMs === 0) return void to.write(chunk)
    // Timers of the same length keep the order.
    globalThis.setTimeout(() => to.writable && to.write(chunk), this.#delayMs)
  }
}
