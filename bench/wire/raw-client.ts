import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

export interface RawClientOptions {
  port: number
  path: string
  protocols?: readonly string[]
  /** The bytes are only there during the call. */
  heard: (payload: Buffer, client: RawClient) => void
  /** Of one that was open. */
  closed?: (code: number, client: RawClient) => void
}

/** As little of a WebSocket client as will do: thousands of them must cost next to nothing, since they are not what is measured. */
export class RawClient {
  readonly #options: RawClientOptions
  readonly #socket: Socket
  #rest: Buffer | undefined
  #opened: (() => void) | undefined
  #code = 1006

  /** Resolves when the server has agreed to talk WebSocket. */
  static async dial(options: RawClientOptions): Promise<RawClient> {
    const socket = connect({ host: '127.0.0.1', port: options.port, noDelay: true })
    const client = new RawClient(options, socket)
    await new Promise<void>((resolve, reject) => {
      client.#opened = resolve
      socket.once('error', reject)
      socket.once('close', () => reject(new Error(`The server hung up: ${client.#rest?.toString('latin1') ?? ''}`)))
    })
    return client
  }

  private constructor(options: RawClientOptions, socket: Socket) {
    this.#options = options
    this.#socket = socket
    const { port, path, protocols = [] } = options
    const head = [
      `GET ${path} HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
      ...(protocols.length > 0 ? [`Sec-WebSocket-Protocol: ${protocols.join(', ')}`] : []),
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('error', () => undefined)
    socket.once('close', () => {
      if (!this.#opened) options.closed?.(this.#code, this)
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Masked with zeros, which is what the standard asks for at the least. */
  send(text: string): void {
    const payload = Buffer.from(text)
    const { length } = payload
    const size = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 255]
    this.#socket.write(Buffer.concat([Buffer.from([0x81, ...size, 0, 0, 0, 0]), payload]))
  }

  /** Reads nothing any more, as a laptop that was closed. */
  stall(): void {
    this.#socket.pause()
  }

  wake(): void {
    this.#socket.resume()
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk
    this.#rest = undefined
    const at = this.#opened ? this.#takeAnswer(bytes) : this.#takeFrames(bytes, 0)
    // A copy: what is left over must not hold the whole chunk.
    if (at < bytes.length) this.#rest = Buffer.from(bytes.subarray(at))
  }

  #takeAnswer(bytes: Buffer): number {
    const end = bytes.indexOf('\r\n\r\n')
    if (end === -1 || !bytes.subarray(0, 12).equals(switching)) return 0
    this.#opened?.()
    this.#opened = undefined
    return this.#takeFrames(bytes, end + 4)
  }

  #takeFrames(bytes: Buffer, start: number): number {
    let at = start
    while (bytes.length - at >= 2) {
      const short = (bytes[at + 1] as number) & 127
      const header = short < 126 ? 2 : short === 126 ? 4 : 10
      if (bytes.length - at < header) break
      const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : bytes.readUIntBE(at + 4, 6)
      if (bytes.length - at < header + length) break
      const payload = bytes.subarray(at + header, at + header + length)
      if (((bytes[at] as number) & 15) === 8) this.#code = length >= 2 ? payload.readUInt16BE(0) : 1005
      else this.#options.heard(payload, this)
      at += header + length
    }
    return at
  }
}

const switching = Buffer.from('HTTP/1.1 101')
