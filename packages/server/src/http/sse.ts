import { systemClock, type Clock } from '@tapetree/agent/run'

export interface StreamedEvent {
  id?: string
  /** Default: `message`. */
  event?: string
  /** Without line breaks. */
  data: string
}

export interface EventStreamOptions {
  clock?: Clock | undefined
  /** Ends the stream when aborted. */
  signal: AbortSignal
  /** Called when there is room again. */
  onDrain?: () => void
  /** Called after each ping. */
  onPing?: () => void
  onClose: () => void
}

const pingMs = 15_000
/** A reader that takes no data for this long, with data waiting, is disconnected. */
const stalledMs = 60_000
const bufferBytes = 256 * 1024

export const eventStreamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Keeps proxies from buffering the response.
  'x-accel-buffering': 'no',
}

/** Server-sent events with bounded buffering: senders check `buffered` first. */
export class EventStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly #options: EventStreamOptions
  readonly #clock: Clock
  readonly #closing = new AbortController()
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #sentBytes = 0
  /** How much data had left, and when that last increased. */
  #taken: { bytes: number; at: number }

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#taken = { bytes: 0, at: this.#clock.now() }
    this.readable = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => options.onDrain?.(),
        cancel: () => this.#end(),
      },
      { highWaterMark: bufferBytes, size: ({ byteLength }) => byteLength },
    )
    if (options.signal.aborted) this.close()
    else options.signal.addEventListener('abort', this.#close, { once: true, signal: this.#closing.signal })
    void this.#pingAlong()
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  get buffered(): number {
    return bufferBytes - (this.#controller?.desiredSize ?? bufferBytes)
  }

  get isFull(): boolean {
    return this.buffered > bufferBytes
  }

  send({ id, event, data }: StreamedEvent): void {
    if (this.isClosed) return
    const head = `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}`
    const bytes = encoder.encode(`${head}data: ${data}\n\n`)
    this.#sentBytes += bytes.length
    this.#controller?.enqueue(bytes)
  }

  close(): void {
    if (this.isClosed) return
    this.#controller?.close()
    this.#end()
  }

  readonly #close = (): void => this.close()

  #end(): void {
    if (this.isClosed) return
    this.#closing.abort()
    this.#options.onClose()
  }

  /** Browsers see this event, and have no other sign that the connection is alive. */
  async #pingAlong(): Promise<void> {
    while (await this.#waits(pingMs)) {
      if (this.#isStalled()) return this.close()
      if (this.isFull) continue
      this.send({ event: 'ping', data: JSON.stringify({ time: new Date(this.#clock.now()).toISOString() }) })
      this.#options.onPing?.()
    }
  }

  #isStalled(): boolean {
    const at = this.#clock.now()
    const bytes = this.#sentBytes - this.buffered
    if (this.buffered === 0 || bytes > this.#taken.bytes) this.#taken = { bytes, at }
    return at - this.#taken.at >= stalledMs
  }

  /** Returns false if the stream was closed meanwhile. */
  async #waits(ms: number): Promise<boolean> {
    return this.#clock.wait(ms, this.#closing.signal).then(
      () => true,
      () => false,
    )
  }
}

const encoder = new TextEncoder()
