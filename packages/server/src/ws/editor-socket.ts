import type { Clock } from '@tapetree/agent/run'
import { closeCodes, limits } from '@tapetree/client/protocol'
import type { RawData, WebSocket } from 'ws'
import { depthOf, maxJsonDepth } from '../util/json-depth.ts'
import type { EditorStream } from './editor-stream.ts'
import { FrameRate } from './frame-rate.ts'

/** As large as a prompt with the largest image that a client may store. */
export const maxEditorMessageBytes = 32 * 1024 * 1024
/** Maximum number of requests without a response. Prompts take minutes, so reading cannot wait for them. */
const maxOpenRequests = 64
/** Messages that were read and not handled. */
const maxUnhandled = 16
const pingMs = 15_000
/** An editor that answers none of so many pings is gone. Not a time: a machine that was suspended has not waited for answers. */
const maxUnanswered = 4

/** The WebSocket of an editor: one JSON-RPC message a frame. */
export class EditorSocket {
  readonly stream: EditorStream
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #rate: FrameRate
  readonly #over = new AbortController()
  /** Ids of requests that have no response. */
  readonly #open = new Set<unknown>()
  #controller: ReadableStreamDefaultController<object> | undefined
  #unanswered = 0
  #hasSpoken = false

  constructor(socket: WebSocket, clock: Clock) {
    this.#socket = socket
    this.#clock = clock
    this.#rate = new FrameRate(clock)
    this.stream = {
      readable: new ReadableStream<object>(
        {
          start: (controller) => {
            this.#controller = controller
          },
          pull: () => {
            if (socket.isPaused) socket.resume()
          },
          cancel: () => this.close(1000, 'done'),
        },
        { highWaterMark: maxUnhandled },
      ),
      writable: new WritableStream<object>({
        write: (message) => this.#write(message),
        close: () => this.close(1000, 'done'),
        abort: () => this.close(1000, 'done'),
      }),
    }
    socket.on('message', (data, isBinary) => this.#take(data, isBinary))
    socket.on('pong', () => (this.#unanswered = 0))
    // An error is always followed by a close, with its code.
    socket.on('error', () => undefined)
    socket.once('close', () => this.#ended())
    void this.#watch()
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
    this.#ended()
  }

  #take(data: RawData, isBinary: boolean): void {
    if (this.#over.signal.aborted) return
    this.#unanswered = 0
    this.#hasSpoken = true
    if (!this.#rate.take()) return this.close(closeCodes.rate, 'too many frames')
    if (isBinary) return this.close(closeCodes.badFrame, 'not a text frame')
    const text = (data as Buffer).toString()
    if (depthOf(text) > maxJsonDepth)
      return this.#refuse(null, { code: -32_600, message: `A message is nested at most ${maxJsonDepth} levels deep.` })
    const message = parse(text)
    if (message === undefined) return this.#refuse(null, { code: -32_700, message: 'Parse error' })
    if (!isMessage(message))
      return this.#refuse(null, { code: -32_600, message: 'A frame is one JSON-RPC message, which is an object.' })
    const { id, method } = message
    if (method !== undefined && id !== undefined) {
      // Without the id: the sender would take it for the response to the open request.
      if (this.#open.has(id))
        return this.#refuse(null, { code: -32_600, message: 'Another request with this id is open.' })
      if (this.#open.size >= maxOpenRequests)
        return this.#refuse(id, { code: -32_000, message: `More than ${maxOpenRequests} requests are open.` })
      this.#open.add(id)
    }
    this.#controller?.enqueue(message)
    if ((this.#controller?.desiredSize ?? 0) <= 0) this.#socket.pause()
  }

  #refuse(id: unknown, error: { code: number; message: string }): void {
    // A flood of these would otherwise fill the buffer of an editor that reads nothing.
    if (this.#socket.bufferedAmount > limits.maxFrameBytes) return this.close(closeCodes.rate, 'too many errors')
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, error }))
  }

  #write(message: object): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const { id, method } = message as Partial<Record<'id' | 'method', unknown>>
    if (method === undefined) this.#open.delete(id)
    const { signal } = this.#over
    const ended = (): void => reject(new Error('The connection to the editor is closed.'))
    signal.addEventListener('abort', ended, { once: true })
    if (signal.aborted) ended()
    else this.#socket.send(JSON.stringify(message), (error) => (error ? reject(error) : resolve()))
    return promise.finally(() => signal.removeEventListener('abort', ended))
  }

  #ended(): void {
    if (this.#over.signal.aborted) return
    this.#over.abort('ended')
    this.#open.clear()
    try {
      this.#controller?.close()
    } catch {
      // It was cancelled.
    }
  }

  async #watch(): Promise<void> {
    const { signal } = this.#over
    const wait = (ms: number): Promise<boolean> =>
      this.#clock.wait(ms, signal).then(
        () => true,
        () => false,
      )
    if (!(await wait(limits.attachMs))) return
    if (!this.#hasSpoken) return this.close(closeCodes.noAttach, 'no message in time')
    while (await wait(pingMs)) {
      if (this.#unanswered++ >= maxUnanswered) return this.#socket.terminate()
      this.#socket.ping()
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    // Not JSON.
    return undefined
  }
}

function isMessage(value: unknown): value is Partial<Record<'id' | 'method', unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
