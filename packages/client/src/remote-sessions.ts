import { Listeners } from '@tapetree/session/util/listeners'
import { systemClock, waitOut, within, type Clock } from './clock.ts'
import { liveness, afterEnd, afterError, browserWakeUps, type AfterEnd, type WakeUps } from './reconnect.ts'
import { ProblemError } from './problem-error.ts'
import { sessionFeedSchema } from './protocol/rest.ts'
import { RestClient, type ServerAddress } from './rest-client.ts'
import type { SessionFeedEvent, SessionSummary } from './rest-values.ts'
import type { ClosedReason, ConnectionStatus } from './session-handle.ts'
import { fromWire } from './wire-names.ts'

export interface RemoteSessionsOptions extends ServerAddress {
  /** Number of sessions to start with; `loadMore` loads more. */
  limit?: number
  cwd?: string
  q?: string
  wakeUps?: WakeUps
  clock?: Clock
  random?: () => number
}

/** The list of a server's sessions, kept up to date by its feed. */
export class RemoteSessions {
  readonly #options: RemoteSessionsOptions & { clock: Clock; random: () => number }
  readonly #rest: RestClient
  readonly #listeners = new Listeners<void>()
  readonly #closing = new AbortController()
  #sessions: readonly SessionSummary[] = []
  #cursor: string | undefined
  #status: ConnectionStatus = { type: 'connecting' }
  #pause = new AbortController()
  #silence = new AbortController()
  /** Ends the current stream. */
  #cut: AbortController | undefined
  #isChecking = false
  #done: Promise<void> = Promise.resolve()

  private constructor(options: RemoteSessionsOptions) {
    this.#options = { clock: systemClock, random: Math.random, ...options }
    this.#rest = new RestClient(options)
  }

  /** Starts to follow. The list is empty until `status` is `attached`. */
  static open(options: RemoteSessionsOptions): RemoteSessions {
    const sessions = new RemoteSessions(options)
    sessions.#done = sessions.#follow()
    return sessions
  }

  /** Most recently used first. A new array after every change. */
  get sessions(): readonly SessionSummary[] {
    return this.#sessions
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  get hasMore(): boolean {
    return this.#cursor !== undefined
  }

  subscribe(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  async loadMore(): Promise<void> {
    const cursor = this.#cursor
    if (cursor === undefined) return
    const page = await this.#rest.sessions({ ...this.#query(), cursor }, this.#closing.signal)
    if (this.#cursor !== cursor) return
    this.#cursor = page.cursor
    const known = new Set(this.#sessions.map(({ id }) => id))
    this.#show([...this.#sessions, ...page.sessions.filter(({ id }) => !known.has(id))])
  }

  async close(): Promise<void> {
    this.#finish('closed')
    await this.#done
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #follow(): Promise<void> {
    const { clock, random, wakeUps = browserWakeUps } = this.#options
    const stopWakeUps = wakeUps(() => this.#wake())
    let failures = 0
    while (!this.#isClosed) {
      this.#setStatus({ type: 'connecting' })
      const { attachedMs, refused } = await this.#followOnce()
      if (this.#isClosed) break
      const next = refused ?? afterEnd({ code: 0, reason: '', attachedMs }, failures, random)
      if (next.type === 'give-up') {
        this.#finish(next.reason)
        break
      }
      failures = next.failures
      this.#pause = new AbortController()
      this.#setStatus({ type: 'waiting', delayMs: next.delayMs })
      await waitOut(clock, next.delayMs, this.#pause.signal)
    }
    stopWakeUps()
  }

  /** One stream, from start to end. Events that arrive while the list is read are newer than the list. */
  async #followOnce(): Promise<{ attachedMs: number; refused: AfterEnd | undefined }> {
    const { clock } = this.#options
    const cut = (this.#cut = new AbortController())
    const signal = AbortSignal.any([cut.signal, this.#closing.signal])
    let attachedAt: number | undefined
    let refused: AfterEnd | undefined
    this.#watch(cut)
    try {
      const feed = await this.#rest.sessionFeed(signal)
      if (!feed.body) throw new Error('The feed has no body.')
      const early: SessionFeedEvent[] = []
      const listed = this.#list(signal).then(() => {
        attachedAt = clock.now()
        for (const event of early) this.#take(event)
        this.#setStatus({ type: 'attached' })
      })
      listed.catch((error: unknown) => cut.abort(error))
      for await (const { data } of readEventStream(feed.body)) {
        this.#silence.abort()
        const event = readFeedEvent(data)
        if (!event) continue
        if (attachedAt === undefined) early.push(event)
        else this.#take(event)
      }
      await listed
    } catch (error) {
      refused = afterError(signal.aborted ? signal.reason : error)
    } finally {
      this.#cut = undefined
      cut.abort()
      this.#silence.abort()
    }
    return { attachedMs: attachedAt === undefined ? 0 : clock.now() - attachedAt, refused }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const page = await this.#rest.sessions(this.#query(), signal)
    this.#cursor = page.cursor
    this.#show(page.sessions)
  }

  #query(): { limit?: number; cwd?: string; q?: string } {
    const { limit, cwd, q } = this.#options
    return { ...(limit !== undefined && { limit }), ...(cwd !== undefined && { cwd }), ...(q !== undefined && { q }) }
  }

  #take(event: SessionFeedEvent): void {
    const { cwd, q } = this.#options
    const id = event.type === 'session_changed' ? event.session.id : event.sessionId
    const known = this.#sessions.find((session) => session.id === id)
    const others = this.#sessions.filter((session) => session.id !== id)
    if (event.type === 'session_removed') {
      if (known) this.#show(others)
      return
    }
    // A new session is known to match only if the query has no search text.
    const belongs = known !== undefined || ((cwd === undefined || event.session.cwd === cwd) && q === undefined)
    if (belongs) this.#show([event.session, ...others])
  }

  /** The server sends a ping every 15 s; the connection is dead without one. */
  #watch(cut: AbortController): void {
    const { clock } = this.#options
    const { pingEveryMs, answerMs } = liveness
    const wait = async (): Promise<void> => {
      while (!cut.signal.aborted && !this.#isClosed) {
        this.#silence = new AbortController()
        if (await waitOut(clock, pingEveryMs + answerMs, this.#silence.signal)) cut.abort(new Error('silent'))
      }
    }
    void wait()
  }

  #wake(): void {
    this.#pause.abort()
    if (this.#cut && !this.#isChecking) void this.#check(this.#cut)
  }

  /** A stream does not end when its network is gone: asks the server something, and ends the stream without an answer. */
  async #check(cut: AbortController): Promise<void> {
    const { clock } = this.#options
    this.#isChecking = true
    try {
      await within({ clock, ms: liveness.answerMs, signal: cut.signal }, (signal) => this.#rest.version(signal))
    } catch (error) {
      // A refusal is an answer; the status 0 is none.
      if (!(error instanceof ProblemError && error.status > 0)) cut.abort(error)
    } finally {
      this.#isChecking = false
    }
  }

  #show(sessions: readonly SessionSummary[]): void {
    this.#sessions = sessions.toSorted((left, right) => Date.parse(right.modified) - Date.parse(left.modified))
    this.#tell()
  }

  #finish(reason: ClosedReason): void {
    if (this.#isClosed) return
    this.#closing.abort()
    this.#pause.abort()
    this.#silence.abort()
    this.#setStatus({ type: 'closed', reason })
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  #setStatus(status: ConnectionStatus): void {
    this.#status = status
    this.#tell()
  }

  #tell(): void {
    this.#listeners.notify()
  }
}

/** Undefined for a ping, and for events of a newer server. */
function readFeedEvent(data: string): SessionFeedEvent | undefined {
  try {
    return fromWire(sessionFeedSchema.safeParse(JSON.parse(data)).data)
  } catch {
    return undefined // not JSON, so not one of our events
  }
}

/** One event of a `text/event-stream`. */
export interface StreamedEvent {
  event: string
  data: string
  id?: string
}

/** Longer events are rejected. */
const maxEventLength = 4 * 1024 * 1024

/** Yields the events of a stream as they arrive. */
export async function* readEventStream(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedEvent> {
  const decoder = new TextDecoder()
  let text = ''
  let fields: string[] = []
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += decoder.decode(value, { stream: true })
      if (text.length > maxEventLength) throw new RangeError(`An event exceeds ${maxEventLength} characters.`)
      // A carriage return at the end may be the first half of a line ending.
      const lines = text.split(/\r\n|\n|\r(?!$)/)
      text = lines.pop() ?? ''
      for (const line of lines) {
        if (line !== '') fields.push(line)
        else if (fields.length > 0) {
          const event = readEvent(fields)
          fields = []
          if (event) yield event
        }
      }
    }
  } finally {
    // Closes the connection when the caller stops reading.
    await reader.cancel().catch(() => undefined)
  }
}

function readEvent(fields: readonly string[]): StreamedEvent | undefined {
  const data: string[] = []
  const event: StreamedEvent = { event: 'message', data: '' }
  for (const field of fields) {
    const colon = field.indexOf(':')
    const name = colon === -1 ? field : field.slice(0, colon)
    const value = colon === -1 ? '' : field.slice(colon + (field[colon + 1] === ' ' ? 2 : 1))
    if (name === 'data') data.push(value)
    else if (name === 'event') event.event = value
    else if (name === 'id') event.id = value
  }
  event.data = data.join('\n')
  return data.length > 0 || event.event !== 'message' ? event : undefined
}
