import { newId } from '@tapetree/session'
import type { DiskLine } from '@tapetree/session/format'
import { systemClock, waitOut, within, type Clock } from './clock.ts'
import { Connection, type Connect, type Socket } from './connection.ts'
import { ReplicaSession } from './replica-session.ts'
import { localProblem, type ProblemError } from './problem-error.ts'
import { checkCommand, type Arguments, type Operation } from './protocol/command.ts'
import type { AttachRequest } from './protocol/client-frames.ts'
import { closeCodes, limits, subprotocol, type Attached, type Cursor, type ServerFrame } from './protocol/frames.ts'
import type { Incoming } from './protocol/read-frame.ts'
import { afterEnd, afterError, browserWakeUps, type WakeUps } from './reconnect.ts'
import { RestClient, type ServerAddress } from './rest-client.ts'
import type { ClosedReason, PresenceNews, RunOptions, SessionHandle } from './session-handle.ts'
import {
  memoryStorage,
  Unacknowledged,
  type CommandStorage,
  type PendingCommand,
  type SentCommand,
} from './unacknowledged.ts'

export interface RemoteSessionOptions extends ServerAddress {
  sessionId: string
  /** Identifies this tab or process; must be unique among attached clients. */
  client?: { id?: string; name?: string; kind?: string }
  /** Number of entries to start with. */
  window?: number
  /** False: receive no text in flight. */
  deltas?: boolean
  /** Opens a socket. Default: the WebSocket of the platform. */
  connect?: Connect
  storage?: CommandStorage
  wakeUps?: WakeUps
  clock?: Clock
  random?: () => number
}

const pageLines = 200
/** A long line may have 16 MiB. */
const fetchMs = 60_000
const askMs = 10_000

/**
 * A session on a server, over one WebSocket at a time. After any disconnect, the transcript continues at its
 * cursor.
 */
export class RemoteSession extends ReplicaSession implements SessionHandle {
  readonly sessionId: string
  /** Resolves when it is attached for the first time; rejects if that is impossible. */
  readonly ready: Promise<void>
  readonly #options: RemoteSessionOptions & { clock: Clock; random: () => number }
  readonly #client: AttachRequest['client']
  readonly #rest: RestClient
  readonly #pending: Unacknowledged
  readonly #ready = Promise.withResolvers<void>()
  readonly #closing = new AbortController()
  #pendingList: readonly PendingCommand[] = []
  #connection: Connection | undefined
  #pause = new AbortController()
  #presence: PresenceNews | undefined
  /** After a frame that the server could not parse, commands are sent one at a time until the bad one is identified. */
  #isCautious = false
  /** Reconnect without a delay: the server is fine, we only need other data. */
  #isEager = false
  #done: Promise<void> = Promise.resolve()

  private constructor(options: RemoteSessionOptions) {
    super()
    this.#options = { clock: systemClock, random: Math.random, ...options }
    this.sessionId = options.sessionId
    this.ready = this.#ready.promise
    const { id = `c-${newId()}`, ...client } = options.client ?? {}
    this.#client = { id, ...client }
    this.#rest = new RestClient(options)
    this.#pending = new Unacknowledged(options.sessionId, options.storage ?? memoryStorage())
  }

  /** Restores unacknowledged commands and starts to connect. Commands may be sent at once. */
  static async open(options: RemoteSessionOptions): Promise<RemoteSession> {
    const session = new RemoteSession(options)
    // If the storage cannot be read, there is nothing to resend.
    await session.#pending.restore().catch(() => undefined)
    session.#showPending()
    // Callers that do not await `ready` must not get an unhandled rejection.
    session.ready.catch(() => undefined)
    session.#done = session.#stayConnected()
    return session
  }

  override get pending(): readonly PendingCommand[] {
    return this.#pendingList
  }

  get clientId(): string {
    return this.#client.id
  }

  async run<Op extends Operation>(op: Op, args: Arguments<Op>, options: RunOptions = {}): Promise<unknown> {
    const { ifHead, id = newId() } = options
    if (this.status.type === 'closed') throw closedProblem(this.status.reason)
    const checked = checkCommand(op, args)
    if (!checked.ok) throw localProblem('invalid-command', checked.message)
    const command: SentCommand = {
      id,
      op,
      args: checked.command.args,
      ...(ifHead !== undefined && { if_head: ifHead }),
    }
    if (!fitsFrame(command))
      throw localProblem('too-large', `The command ${op} exceeds the limit of ${limits.maxFrameBytes} bytes.`)
    const answer = this.#pending.add(command, () => this.#flush())
    this.#showPending()
    return answer
  }

  async loadOlder(count = 50): Promise<boolean> {
    return this.prependOlder(count, (before) =>
      this.#rest.events(this.sessionId, { before, limit: pageLines }, this.#closing.signal),
    )
  }

  present(presence: PresenceNews): void {
    this.#presence = presence
    if (this.#connection?.isAttached) this.#connection.send({ type: 'presence', data: presence })
  }

  /** Unacknowledged commands stay in the storage, and reject here. */
  async close(): Promise<void> {
    this.#finish('closed')
    await this.#done
    await this.#pending.stored()
  }

  async #stayConnected(): Promise<void> {
    const stopWakeUps = (this.#options.wakeUps ?? browserWakeUps)(() => this.#wake())
    let failures = 0
    while (!this.#isClosed) {
      const connection = this.#connect()
      const end = await connection.ended
      this.#connection = undefined
      if (this.#isClosed) break
      this.#takeEnd(connection, end.code)
      this.#showPending()
      const refused = connection.wasOpen ? undefined : await this.#whyRefused()
      const next = refused ?? afterEnd(end, failures, this.#options.random)
      if (next.type === 'give-up') {
        this.#finish(next.reason)
        break
      }
      failures = next.failures
      await this.#waitBeforeNext(this.#isEager ? 0 : next.delayMs)
      this.#isEager = false
    }
    stopWakeUps()
  }

  #connect(): Connection {
    this.setStatus({ type: 'connecting' })
    const connection = new Connection({
      open: () => this.#openSocket(),
      clock: this.#options.clock,
      attach: () => this.#attachRequest(),
      seen: () => this.replica.cursor?.seq ?? 0,
      receive: (incoming, from) => this.#receive(incoming, from),
    })
    this.#connection = connection
    return connection
  }

  #openSocket(): Socket {
    const { connect = openWebSocket, token } = this.#options
    // A browser cannot set headers on a socket: it uses the cookie; other clients send the token as a
    // subprotocol.
    const protocols = token === undefined ? [subprotocol] : [subprotocol, `bearer.${token}`]
    return connect(this.#rest.socketUrl(this.sessionId), protocols)
  }

  #attachRequest(): AttachRequest {
    const { window, deltas } = this.#options
    const { cursor } = this.replica
    return {
      client: this.#client,
      ...(cursor && { after: cursor }),
      ...(window !== undefined && { window }),
      ...(deltas !== undefined && { deltas }),
    }
  }

  #receive(incoming: Incoming, from: Connection): void | Promise<void> {
    switch (incoming.type) {
      case 'line':
        if (this.#isNext(incoming.seq, from)) this.#followLine(incoming.disk, incoming, from)
        return undefined
      case 'lost':
        if (this.#isNext(incoming.seq, from)) this.takeLost(incoming.seq, incoming.count)
        return undefined
      case 'large':
        return this.#isNext(incoming.seq, from) ? this.#fetchLine(incoming, from) : undefined
      case 'frame':
        return this.#receiveFrame(incoming.frame, from)
      case 'unknown':
        return undefined
      default:
        incoming satisfies never
        return undefined
    }
  }

  #receiveFrame(frame: ServerFrame, from: Connection): void {
    switch (frame.type) {
      case 'attached':
        return this.#attach(frame.data, from)
      case 'ack': {
        const unheard = this.#pending.settle(frame.data)
        if (unheard) this.tell({ type: 'late_ack', op: unheard.op, ack: frame.data })
        if (this.#pending.size === 0) this.#isCautious = false
        this.#flush()
        return this.#showPending()
      }
      case 'gone':
        return from.end(frame.data.reason, closeCodes.gone)
      case 'bye':
        return from.retryAfter(frame.data.retry_after_ms)
      case 'pong':
        if (this.replica.isStuck(frame.data.head.seq)) from.end('lines are missing')
        return undefined
      default:
        if (!this.takeFrame(frame)) from.end('text was missed')
        return undefined
    }
  }

  #attach(attached: Attached, from: Connection): void {
    const before = this.transcript
    if (!this.replica.attach(attached)) {
      this.replica.forgetCursor()
      return from.end("the server's lines do not follow the local ones")
    }
    from.attached()
    if (this.#presence) from.send({ type: 'presence', data: this.#presence })
    this.#flush()
    this.setStatus({ type: 'attached' })
    if (this.transcript !== before) this.tell({ type: 'transcript' })
    for (const key of this.replica.keys()) this.tell({ type: 'state', key })
    this.#ready.resolve()
  }

  /** Reconnects with the cursor if a line does not follow the last one. Skips a line that was applied before. */
  #isNext(seq: number, from: Connection): boolean {
    const place = this.replica.place(seq)
    if (place === 'gap') from.end(`line ${seq} does not follow`)
    return place === 'next'
  }

  async #fetchLine({ seq, crc }: { seq: number; crc: string }, from: Connection): Promise<void> {
    const { clock } = this.#options
    const { events } = await within({ clock, ms: fetchMs, signal: from.signal }, (signal) =>
      this.#rest.events(this.sessionId, { after: seq - 1, limit: 1 }, signal),
    )
    const [event] = events
    if (from.isOver) return
    if (event?.seq !== seq || typeof event['id'] !== 'string') throw new Error(`the server did not return line ${seq}`)
    this.#followLine({ ...event, id: event['id'] }, { seq, crc }, from)
  }

  #followLine(disk: DiskLine, cursor: Cursor, from: Connection): void {
    if (this.takeLine(disk, cursor)) return
    this.#isEager = true
    from.end('the session went on from an entry that is not here')
  }

  #flush(): void {
    const connection = this.#connection
    if (!connection?.isAttached) return
    for (const command of this.#pending.unsent(connection, { cautious: this.#isCautious })) {
      connection.send({ type: 'cmd', data: command })
    }
    this.#showPending()
  }

  #showPending(): void {
    const list = this.#pending.list(this.#connection)
    const isSame = ({ id, state }: PendingCommand, index: number): boolean =>
      id === this.#pendingList[index]?.id && state === this.#pendingList[index].state
    if (list.length === this.#pendingList.length && list.every(isSame)) return
    this.#pendingList = list
    this.tell({ type: 'pending' })
  }

  /** Without this, a command that the server cannot parse would be resent forever. */
  #takeEnd(connection: Connection, code: number): void {
    if (code !== closeCodes.badFrame && code !== closeCodes.tooLarge) return
    const sent = this.#pending.sentOn(connection)
    const [only] = sent
    if (this.#isCautious || sent.length === 1) {
      const { problem } = localProblem(
        code === closeCodes.tooLarge ? 'too-large' : 'bad-frame',
        `The server rejected the command ${only?.op} as malformed.`,
      )
      if (only) this.#pending.settle({ id: only.id, ok: false, error: problem })
    }
    this.#isCautious = this.#pending.size > 0
  }

  /** Browsers do not tell why a socket failed to open; a plain request does. */
  async #whyRefused(): Promise<ReturnType<typeof afterError>> {
    const { clock } = this.#options
    try {
      await within({ clock, ms: askMs, signal: this.#closing.signal }, (signal) =>
        this.#rest.session(this.sessionId, signal),
      )
      return undefined
    } catch (error) {
      return afterError(error)
    }
  }

  async #waitBeforeNext(delayMs: number): Promise<void> {
    if (this.#isClosed) return
    this.#pause = new AbortController()
    this.setStatus({ type: 'waiting', delayMs })
    await waitOut(this.#options.clock, delayMs, this.#pause.signal)
  }

  #wake(): void {
    this.#connection?.ping()
    this.#pause.abort()
  }

  #finish(reason: ClosedReason): void {
    if (this.#isClosed) return
    this.#closing.abort()
    this.#pause.abort()
    this.#connection?.end('closed')
    const problem = closedProblem(reason)
    this.#ready.reject(problem)
    this.#pending.abandon(problem, { forget: reason === 'gone' })
    this.#showPending()
    this.setStatus({ type: 'closed', reason })
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }
}

const closedSentences: Record<ClosedReason, string> = {
  closed: 'This session handle is closed.',
  unauthorized: 'The server rejected the token. Sign in again.',
  forbidden: 'The token does not permit access to this session.',
  gone: 'The session no longer exists.',
  replaced: 'Another client with this id replaced it.',
}

function closedProblem(reason: ClosedReason): ProblemError {
  return localProblem('closed', closedSentences[reason])
}

/** A UTF-16 code unit takes at most three bytes. */
function fitsFrame(command: SentCommand): boolean {
  const text = JSON.stringify({ type: 'cmd', data: command })
  return text.length * 3 <= limits.maxFrameBytes || new TextEncoder().encode(text).length <= limits.maxFrameBytes
}

const openWebSocket: Connect = (url, protocols) => new WebSocket(url, protocols)
