import { waitOut, type Clock } from './clock.ts'
import { Liveness, type ConnectionEnd } from './reconnect.ts'
import type { AttachRequest, ClientFrame } from './protocol/client-frames.ts'
import { readFrame, type Incoming } from './protocol/read-frame.ts'

/** The part of a WebSocket that is used; those of browsers, Node and `ws` all fit. */
export interface Socket {
  send(text: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open' | 'error', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void
}

export type Connect = (url: string, protocols: string[]) => Socket

export interface ConnectionOptions {
  open: () => Socket
  clock: Clock
  attach: () => AttachRequest
  /** The seq of the last line applied. */
  seen: () => number
  /** Handles one frame. If it returns a promise, later frames wait for it. If it throws, the connection ends. */
  receive: (frame: Incoming, connection: Connection) => void | Promise<void>
}

/**
 * Maximum number of frames that wait while a long line is fetched. Beyond it, the client reconnects with its
 * cursor.
 */
const maxHeldFrames = 5_000

/** One socket, from open to close. It is never reused: a reconnect makes a new one. */
export class Connection {
  readonly ended: Promise<ConnectionEnd>
  readonly #options: ConnectionOptions
  readonly #liveness: Liveness
  readonly #end = Promise.withResolvers<ConnectionEnd>()
  readonly #over = new AbortController()
  #nap = new AbortController()
  #socket: Socket | undefined
  #isOpen = false
  #attachedAt: number | undefined
  #retryAfterMs: number | undefined
  #pings = 0
  #held: string[] = []
  #isHolding = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#liveness = new Liveness(options.clock.now())
    this.ended = this.#end.promise
    this.#start()
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** For fetches on behalf of this connection. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  /** Whether the socket was ever open: a server that rejects the upgrade closes it first. */
  get wasOpen(): boolean {
    return this.#isOpen
  }

  get isAttached(): boolean {
    return this.#attachedAt !== undefined && !this.isOver
  }

  attached(): void {
    this.#attachedAt = this.#options.clock.now()
    this.#nap.abort()
  }

  retryAfter(ms: number | undefined): void {
    this.#retryAfterMs = ms
  }

  send(frame: ClientFrame): void {
    if (this.isOver || !this.#isOpen) return
    if (this.#liveness.isSilent(this.#options.clock.now())) this.ping()
    this.#write(frame)
  }

  /** Sends a ping; the connection is dead unless a frame follows soon. */
  ping(): void {
    if (!this.#isOpen || this.isOver) return
    this.#liveness.pinged(this.#options.clock.now())
    this.#write({ type: 'ping', data: { n: ++this.#pings, seen: this.#options.seen() } })
    this.#nap.abort()
  }

  /** Ignores the socket from now on. A socket without a network would take long to close. */
  end(reason: string, code = 0): void {
    if (this.isOver) return
    this.#over.abort(new Error(reason))
    this.#nap.abort()
    this.#held = []
    this.#socket?.close(1000)
    const { clock } = this.#options
    this.#end.resolve({
      code,
      reason,
      attachedMs: this.#attachedAt === undefined ? 0 : clock.now() - this.#attachedAt,
      ...(this.#retryAfterMs !== undefined && { retryAfterMs: this.#retryAfterMs }),
    })
  }

  #start(): void {
    const { open, attach, clock } = this.#options
    try {
      const socket = open()
      this.#socket = socket
      socket.addEventListener('open', () => {
        if (this.isOver) return
        this.#isOpen = true
        this.#liveness.opened(clock.now())
        this.#write({ type: 'attach', data: attach() })
        this.#nap.abort()
      })
      socket.addEventListener('message', ({ data }) => this.#hear(data))
      socket.addEventListener('close', ({ code, reason }) => this.end(reason, code))
      // An error is always followed by a close.
      socket.addEventListener('error', () => undefined)
    } catch (error) {
      this.end(String(error))
    }
    void this.#watch()
  }

  #hear(data: unknown): void {
    if (this.isOver) return
    this.#liveness.heard(this.#options.clock.now())
    if (typeof data !== 'string') return
    if (!this.#isHolding) this.#take(data)
    else if (this.#held.push(data) > maxHeldFrames) this.end('too many frames wait for a long line')
  }

  #take(text: string): void {
    try {
      const held = this.#options.receive(readFrame(text), this)
      if (held) void this.#hold(held)
    } catch (error) {
      this.end(`failed: ${String(error)}`)
    }
  }

  async #hold(until: Promise<void>): Promise<void> {
    this.#isHolding = true
    try {
      await until
    } catch (error) {
      this.end(`failed: ${String(error)}`)
    }
    this.#isHolding = false
    while (!this.#isHolding) {
      const text = this.#held.shift()
      if (text === undefined) return
      this.#take(text)
    }
  }

  #write(frame: ClientFrame): void {
    try {
      this.#socket?.send(JSON.stringify(frame))
    } catch {
      // It is closing: unacknowledged commands are resent on the next connection.
    }
  }

  async #watch(): Promise<void> {
    const { clock } = this.#options
    while (!this.isOver) {
      const step = this.#liveness.next(clock.now())
      switch (step.type) {
        case 'dead':
          return this.end('no answer to a ping')
        case 'ping':
          this.ping()
          break
        case 'wait':
          this.#nap = new AbortController()
          await waitOut(clock, step.ms, this.#nap.signal)
          break
        default:
          step satisfies never
      }
    }
  }
}
