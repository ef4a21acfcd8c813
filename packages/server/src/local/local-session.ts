import {
  ProblemError,
  ReplicaSession,
  type ClosedReason,
  type PresenceNews,
  type RunOptions,
  type SessionHandle,
} from '@tapetree/client'
import {
  checkCommand,
  closeCodes,
  limits,
  readFrame,
  type Arguments,
  type AttachRequest,
  type Incoming,
  type Operation,
  type ServerFrame,
} from '@tapetree/client/protocol'
import { newId } from '@tapetree/session'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'
import type { CommandFrame } from '../live/commands.ts'
import type { Connection, Sink } from '../live/connection.ts'
import type { LiveSession } from '../live/live-session.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { lineAt, linesBefore } from './local-session-read-only.ts'

export interface LocalSessionOptions {
  sessions: Pick<LiveSessions, 'get'>
  sessionId: string
  /** Identifies this screen; must be unique among attached clients. */
  client?: { id?: string; name?: string; kind?: string }
  /** Number of entries to start with. */
  window?: number
  /** The sender and the limits of a command; throws if it is not allowed. Default: the user of this process. */
  authorize?: (
    command: { op: Operation; args: unknown },
    live: LiveSession,
  ) => Pick<CommandFrame, 'sender' | 'checkLimits'>
  /** Called when a listener throws; by default the process emits a warning. */
  onProblem?: (error: unknown) => void
}

interface Attachment {
  readonly live: LiveSession
  readonly connection: Connection
  readonly sink: LocalSink
}

/** Maximum number of attempts, if the session keeps being closed while the client attaches. */
const maxAttempts = 20

/** A live session of this process for a screen: the same as over a socket, without one. */
export class LocalSession extends ReplicaSession implements SessionHandle {
  readonly sessionId: string
  readonly #options: LocalSessionOptions
  readonly #client: AttachRequest['client']
  #attachment: Attachment | undefined
  #presence: PresenceNews | undefined
  #renewal: NodeJS.Timeout | undefined

  private constructor(options: LocalSessionOptions) {
    super(options.onProblem ?? emitWarning)
    this.#options = options
    this.sessionId = options.sessionId
    const { id = `c-${newId()}`, ...client } = options.client ?? {}
    this.#client = { id, ...client }
  }

  /** Resolves when it is attached. Rejects as `LiveSessions.get` does. */
  static async open(options: LocalSessionOptions): Promise<LocalSession> {
    const session = new LocalSession(options)
    await session.#attach()
    return session
  }

  get clientId(): string {
    return this.#client.id
  }

  async run<Op extends Operation>(op: Op, args: Arguments<Op>, options: RunOptions = {}): Promise<unknown> {
    const { ifHead, id = newId() } = options
    if (this.status.type === 'closed') throw closedProblem(this.status.reason)
    const checked = checkCommand(op, args)
    if (!checked.ok) throw problemError(422, 'invalid-command', checked.message)
    const live = this.#attachment?.live ?? (await this.#options.sessions.get(this.sessionId))
    const rights = this.#rights({ op, args: checked.command.args }, live)
    const frame = { op, args: checked.command.args, ...rights, ...(ifHead !== undefined && { ifHead }) }
    const { ok, result, error } = await live.perform(id, this.#client.id, frame)
    // The effect is in the transcript when the caller continues.
    this.#attachment?.connection.pump()
    if (!ok) throw new ProblemError(error ?? { type: 'refused', title: 'Refused', status: 400 })
    return result
  }

  #rights(...command: Parameters<NonNullable<LocalSessionOptions['authorize']>>): Partial<CommandFrame> {
    try {
      return this.#options.authorize?.(...command) ?? {}
    } catch (error) {
      throw error instanceof RequestProblem ? new ProblemError(error.problem, { cause: error }) : error
    }
  }

  async loadOlder(count = 50): Promise<boolean> {
    const live = this.#attachment?.live
    return live !== undefined && this.prependOlder(count, (before) => linesBefore(live.session, before))
  }

  present(presence: PresenceNews): void {
    this.#presence = presence
    const { visibility, typing = false } = presence
    const attachment = this.#attachment
    attachment?.live.present(attachment.connection, { visibility, typing })
  }

  async close(): Promise<void> {
    this.#finish('closed')
  }

  async #attach(): Promise<void> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const live = await this.#options.sessions.get(this.sessionId)
      const request = this.#request()
      const prepared = await live.prepare(request)
      if (this.status.type === 'closed') return
      const sink = this.#sink()
      const connection = live.attach(request, sink, prepared)
      if (connection === 'not-prepared') continue
      this.#attachment = { live, connection, sink }
      this.#stayPresent()
      return
    }
    throw new RequestProblem(503, 'session-busy', 'The session was closed repeatedly during the attach. Try again.')
  }

  #request(): AttachRequest {
    const { window } = this.#options
    const { cursor } = this.replica
    return { client: this.#client, ...(cursor && { after: cursor }), ...(window !== undefined && { window }) }
  }

  #sink(): LocalSink {
    const sink = new LocalSink({
      receive: (incoming) => this.#receive(incoming, sink),
      closed: (code) => this.#takeEnd(code, sink),
      drained: () => this.#attachment?.connection.pump(),
    })
    return sink
  }

  /** Renews its presence before the lease expires. */
  #stayPresent(): void {
    if (this.#presence) this.present(this.#presence)
    this.#renewal ??= setInterval(() => {
      this.#attachment?.live.presence.renew(this.#client.id)
    }, limits.presenceLeaseMs / 3).unref()
  }

  #receive(incoming: Incoming, from: LocalSink): void | Promise<void> {
    switch (incoming.type) {
      case 'line':
        return this.#followLine(incoming, from)
      case 'lost':
        if (this.#isNext(incoming.seq, from)) this.takeLost(incoming.seq, incoming.count)
        return undefined
      case 'large':
        return this.#isNext(incoming.seq, from) ? this.#readLarge(incoming, from) : undefined
      case 'frame':
        return this.#receiveFrame(incoming.frame, from)
      case 'unknown':
        return undefined
      default:
        incoming satisfies never
        return undefined
    }
  }

  /** Reattaches with the cursor if a line does not follow the last one. Skips a line that was applied before. */
  #isNext(seq: number, from: LocalSink): boolean {
    const place = this.replica.place(seq)
    if (place === 'gap') this.#attachAgain(from)
    return place === 'next'
  }

  #followLine({ seq, crc, disk }: Extract<Incoming, { type: 'line' }>, from: LocalSink): void {
    if (!this.#isNext(seq, from)) return
    if (!this.takeLine(disk, { seq, crc })) this.#attachAgain(from)
  }

  async #readLarge({ seq, crc }: Extract<Incoming, { type: 'large' }>, from: LocalSink): Promise<void> {
    const live = this.#attachment?.live ?? (await this.#options.sessions.get(this.sessionId))
    const disk = await lineAt(live.session, seq).catch(() => undefined)
    if (disk) this.#followLine({ type: 'line', seq, crc, disk }, from)
    else this.#attachAgain(from)
  }

  #receiveFrame(frame: ServerFrame, from: LocalSink): void {
    switch (frame.type) {
      case 'attached':
        if (!this.replica.attach(frame.data)) {
          this.replica.forgetCursor()
          return this.#attachAgain(from)
        }
        this.setStatus({ type: 'attached' })
        this.tell({ type: 'transcript' })
        for (const key of this.replica.keys()) this.tell({ type: 'state', key })
        return undefined
      case 'gone':
        return this.#finish('gone')
      case 'bye':
        return this.#finish('closed')
      case 'ack':
      case 'pong':
        return undefined
      default:
        if (!this.takeFrame(frame)) this.#attachAgain(from)
        return undefined
    }
  }

  #takeEnd(code: number, from: LocalSink): void {
    if (code === closeCodes.replaced) this.#finish('replaced')
    else if (this.#attachment?.sink === from) this.#attachAgain(from)
  }

  /** Reattaches with its cursor, after the frame that is being handled. */
  #attachAgain(from: LocalSink): void {
    from.end()
    queueMicrotask(() => {
      const attachment = this.#attachment
      if (attachment && attachment.sink !== from) return
      this.#attachment = undefined
      attachment?.live.detach(attachment.connection)
      this.#attach().catch(() => this.#finish('gone'))
    })
  }

  #finish(reason: ClosedReason): void {
    if (this.status.type === 'closed') return
    const attachment = this.#attachment
    this.#attachment = undefined
    clearInterval(this.#renewal)
    attachment?.sink.end()
    this.setStatus({ type: 'closed', reason })
    attachment?.live.detach(attachment.connection)
  }
}

function closedProblem(reason: ClosedReason): ProblemError {
  return problemError(0, 'closed', `The session is closed (${reason}).`)
}

function problemError(status: number, type: string, detail: string): ProblemError {
  return new ProblemError({ type, title: type, status, detail })
}

interface LocalSinkOptions {
  /** Handles one frame. If it returns a promise, later lines wait for it. */
  receive: (incoming: Incoming) => void | Promise<void>
  /** The session closed it. */
  closed: (code: number) => void
  /** There is room again. */
  drained: () => void
}

/**
 * Frames for a screen in this process. There is no queue: while one frame is handled, there is no room for the
 * next.
 */
class LocalSink implements Sink {
  readonly #options: LocalSinkOptions
  #isHolding = false
  #isOver = false

  constructor(options: LocalSinkOptions) {
    this.#options = options
  }

  get buffered(): number {
    return this.#isHolding ? Infinity : 0
  }

  send(frame: Buffer): void {
    if (this.#isOver) return
    const held = this.#options.receive(readFrame(frame.toString()))
    if (held) void this.#hold(held)
  }

  close(code: number): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.closed(code)
  }

  /** Ignores all later frames. */
  end(): void {
    this.#isOver = true
  }

  async #hold(until: Promise<void>): Promise<void> {
    this.#isHolding = true
    await until
    this.#isHolding = false
    if (!this.#isOver) this.#options.drained()
  }
}
