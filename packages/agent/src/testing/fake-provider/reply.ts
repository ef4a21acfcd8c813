import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** The answer to one request while it is written. */
export interface Reply {
  /** Resolves when it has ended, with whether the client read all of it. */
  readonly closed: Promise<'complete' | 'cut'>
  readonly hasBegun: boolean
  /** The client has disconnected. */
  readonly isAbandoned: boolean
  begin(status: number, headers: Record<string, string>): void
  /** Waits for a slow reader; throws if the client has disconnected. */
  write(frame: string | Uint8Array): Promise<void>
  /** Like `write`, but later chunks arrive separately. */
  writeApart(chunk: Uint8Array): Promise<void>
  end(): void
  /** Breaks the connection when everything written has been sent. */
  breakOff(): Promise<void>
}

export class HttpReply implements Reply {
  readonly closed: Promise<'complete' | 'cut'>
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
    this.closed = new Promise((resolve) => {
      response.on('close', () => resolve(response.writableFinished ? 'complete' : 'cut'))
    })
  }

  get hasBegun(): boolean {
    return this.#response.headersSent
  }

  get isAbandoned(): boolean {
    return this.#response.destroyed
  }

  begin(status: number, headers: Record<string, string>): void {
    this.#response.socket?.setNoDelay(true)
    this.#response.writeHead(status, headers)
    this.#response.flushHeaders()
  }

  async write(frame: string | Uint8Array): Promise<void> {
    if (this.#response.destroyed) throw new Error('The client has disconnected.')
    if (!this.#response.write(frame)) await this.#drained()
  }

  async writeApart(chunk: Uint8Array): Promise<void> {
    await this.write(chunk)
    // Without this, chunks that are written together arrive together.
    await nextTurn()
  }

  end(): void {
    this.#response.end()
  }

  async breakOff(): Promise<void> {
    if (this.hasBegun) await new Promise<void>((resolve) => this.#response.write('', () => resolve()))
    this.#response.destroy()
  }

  async #drained(): Promise<void> {
    const over = new AbortController()
    const { signal } = over
    await Promise.race([once(this.#response, 'drain', { signal }), once(this.#response, 'close', { signal })])
    over.abort()
  }
}

/** An answer that reaches its reader without a socket, in exactly the written chunks. */
export class MemoryReply implements Reply {
  readonly closed: Promise<'complete' | 'cut'>
  /** The result of `fetch`. Rejects if the connection breaks, or is aborted, before the answer begins. */
  readonly response: Promise<Response>
  readonly #signal: AbortSignal | undefined
  readonly #close: (how: 'complete' | 'cut') => void
  readonly #resolve: (response: Response) => void
  readonly #reject: (reason: unknown) => void
  #body: ReadableStreamDefaultController<Uint8Array> | undefined
  /** The reader requests the next chunk. */
  #wanted = Promise.withResolvers<void>()
  hasBegun = false
  isAbandoned = false

  constructor(signal: AbortSignal | undefined) {
    const closed = Promise.withResolvers<'complete' | 'cut'>()
    const response = Promise.withResolvers<Response>()
    this.closed = closed.promise
    this.response = response.promise
    this.#close = closed.resolve
    this.#resolve = response.resolve
    this.#reject = response.reject
    this.#signal = signal
    if (signal?.aborted) this.#onAbort()
    else signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  begin(status: number, headers: Record<string, string>): void {
    if (this.isAbandoned) throw new Error('The client has disconnected.')
    this.hasBegun = true
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#body = controller),
        pull: () => this.#wanted.resolve(),
        cancel: () => this.#leave(),
      },
      { highWaterMark: 0 },
    )
    this.#resolve(new Response(body, { status, headers }))
  }

  async write(frame: string | Uint8Array): Promise<void> {
    await this.#wanted.promise
    if (this.isAbandoned) throw new Error('The client has disconnected.')
    const chunk = typeof frame === 'string' ? new TextEncoder().encode(frame) : frame
    if (chunk.length === 0) return
    this.#wanted = Promise.withResolvers<void>()
    this.#body?.enqueue(chunk)
  }

  writeApart(chunk: Uint8Array): Promise<void> {
    return this.write(chunk)
  }

  end(): void {
    if (this.isAbandoned) return
    this.#body?.close()
    this.#finish('complete')
  }

  async breakOff(): Promise<void> {
    if (this.hasBegun) await this.#wanted.promise
    if (!this.isAbandoned) this.#fail(new TypeError('terminated'))
  }

  /** Breaks the connection at once. */
  destroy(reason: unknown): void {
    this.#fail(reason)
    this.#leave()
  }

  readonly #onAbort = (): void => this.destroy(this.#signal?.reason)

  #fail(reason: unknown): void {
    this.#reject(reason)
    this.#body?.error(reason)
    this.#finish('cut')
  }

  #leave(): void {
    this.isAbandoned = true
    this.#finish('cut')
    this.#wanted.resolve()
  }

  #finish(how: 'complete' | 'cut'): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#close(how)
  }
}
