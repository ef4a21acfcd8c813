import { systemClock, type Clock } from '@tapetree/agent'
import {
  checkCommand,
  closeCodes,
  limits,
  snapshotToWire,
  type Ack,
  type Attached,
  type AttachRequest,
  type ServerFrame,
  type SnapshotReason,
  type StateKey,
} from '@tapetree/client'
import {
  fromDisk,
  type Cause,
  type CommittedLine,
  type Delivery,
  type DiskLine,
  type Line,
  type LiveText,
  type LogLine,
  type Session,
  type SessionSnapshot,
} from '@tapetree/session'
import { Listeners } from '@tapetree/session/util/listeners'
import { emitWarning } from '../util/emit-warning.ts'
import { Connection, type Sink } from './connection.ts'
import { localUser, type DriverEvent, type SessionDriver } from './driver.ts'
import { InFlight } from './in-flight.ts'
import { outgoing, outgoingLine, RecentLines } from './recent-lines.ts'
import { Presence } from './presence.ts'
import { RequestProblem, problemOf } from '../util/problem-error.ts'
import { QueueNotices } from './queue-notices.ts'
import { StateBoard } from './state-board.ts'
import { identityOf, isEffectOf, isSame, type CommandIdentity, type CommandSender } from './sent-command.ts'
import { stateValues, type Pause } from './state-values.ts'
import { tickerOf } from './ticker.ts'
import { isOwned, WatchedDriver } from './watched-driver.ts'

export interface LiveSessionOptions {
  clock?: Clock
  /** How often text in flight is handed over. */
  tickMs?: number
  /** Opens what can write a session that was only watched so far. Rejects with `session-owned` if another process still writes it. */
  claim?: () => Promise<SessionDriver>
  /** Told when a session that was only watched can be written. */
  onClaimed?: (live: LiveSession) => void
  /** Told when what was sent of the log does not hold any more, or it cannot be followed: everybody has to begin anew. */
  onBroken?: () => void
}

/** A command as a door takes it, not checked yet. */
export interface CommandFrame {
  op: string
  args?: unknown
  ifHead?: number
  sender?: CommandSender
  /** The whole request, if this command is one part of it: the same id with another request is refused. */
  request?: unknown
}

/** For whoever counts: a command that was carried out or refused. */
export interface PerformedCommand {
  op: string
  ack: Ack
}

const defaultTickMs = 33
/** Every 100 ms, where others have a tick of 33. */
const ticksOfHidden = 3
const rememberedAcks = 10_000
/** What the lines of a snapshot may take of its frame. They are longer in there, and the fold and the state come with them. */
const snapshotBytes = limits.maxFrameBytes / 2

/** A session that runs, and all who watch it. Work belongs to the session: it goes on with nobody there. */
export class LiveSession {
  readonly lines = new RecentLines()
  readonly board = new StateBoard()
  readonly inFlight = new InFlight()
  readonly presence: Presence
  readonly #connections = new Set<Connection>()
  readonly #queueNotices: QueueNotices
  readonly #byClient = new Map<string, Connection>()
  readonly #acks = new Map<string, { identity: CommandIdentity; ack: Promise<Ack> }>()
  readonly #clock: Clock
  readonly #tickMs: number
  readonly #stops: (() => void)[]
  readonly #commandListeners = new Listeners<PerformedCommand>(emitWarning)
  readonly #lineListeners = new Listeners<Line>(emitWarning)
  readonly #options: LiveSessionOptions
  #driver: SessionDriver
  /** Of the driver there is now. */
  #driverStops: (() => void)[] = []
  #claiming: Promise<void> | undefined
  #stopTicks: (() => void) | undefined
  #ticks = 0
  #isWoken = false
  #lastGuarded: Promise<unknown> = Promise.resolve()
  #isClosed = false
  #pause: Pause | null = null
  /** A command may take long without a run, such as one of the shell. */
  #commandsAtWork = 0

  private constructor(driver: SessionDriver, options: LiveSessionOptions) {
    const { clock = systemClock, tickMs = defaultTickMs } = options
    this.#driver = driver
    this.#options = options
    this.#queueNotices = new QueueNotices(driver.session.inbox.messages)
    this.#clock = clock
    this.#tickMs = tickMs
    this.presence = new Presence(clock, () => {
      if (this.board.set('presence', this.presence.list())) this.#wake()
    })
    this.#stops = []
  }

  /** Reads the newest lines, so that who comes back is told what they missed. */
  static async open(driver: SessionDriver, options: LiveSessionOptions = {}): Promise<LiveSession> {
    const live = new LiveSession(driver, options)
    await live.#use(driver, Math.max(0, driver.session.head.seq - limits.maxBehindLines))
    return live
  }

  #pending: CommittedLine[] | undefined

  get driver(): SessionDriver {
    return this.#driver
  }

  get session(): Session {
    return this.#driver.session
  }

  /** Whether another process writes it, or did until the next command comes. */
  get isWatched(): boolean {
    return this.#driver instanceof WatchedDriver
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections
  }

  /** How a message that waits is to be delivered; undefined if none with this id waits. */
  readonly deliveryOf = (messageId: string): Delivery | undefined =>
    this.session.inbox.messages.find(({ id }) => id === messageId)?.delivery

  connectionOf(clientId: string): Connection | undefined {
    return this.#byClient.get(clientId)
  }

  get isIdle(): boolean {
    return (this.isWatched || !this.driver.isBusy) && this.#connections.size === 0 && this.#commandsAtWork === 0
  }

  /** The snapshot that a client would begin with. Made before it is attached: what comes in between, it is told line by line. */
  async prepare(request: AttachRequest): Promise<SessionSnapshot | undefined> {
    if (this.#driver instanceof WatchedDriver) await this.#driver.caughtUp()
    if (this.#reasonFor(request) === undefined) return undefined
    return this.session.snapshot({ entries: request.window ?? 50, bytes: snapshotBytes })
  }

  /** One synchronous step: nothing can come between reading the head and being told what follows it. */
  attach(request: AttachRequest, sink: Sink, prepared?: SessionSnapshot): Connection | 'not-prepared' {
    // It was closed while the client got ready, as for being idle: there may be another one by now.
    if (this.#isClosed) return 'not-prepared'
    const { client, after, deltas = true } = request
    const reason = this.#reasonFor(request)
    if (reason !== undefined && !prepared) return 'not-prepared'
    const seq = reason === undefined ? (after?.seq ?? 0) : (prepared as SessionSnapshot).head.seq
    if (!this.lines.reaches(seq)) return 'not-prepared'
    const older = this.connectionOf(client.id)
    if (older) this.detach(older, closeCodes.replaced, 'replaced by the same client')
    const connection = new Connection(this, sink, { client, seq, rev: this.board.rev, wantsText: deltas })
    const data: Attached = {
      session_id: this.session.id,
      client_id: client.id,
      mode: reason === undefined ? 'tail' : 'snapshot',
      ...(reason !== undefined && { reason }),
      head: this.session.head,
      from: seq + 1,
      limits: {
        max_behind_lines: limits.maxBehindLines,
        max_behind_bytes: limits.maxBehindBytes,
        max_frame_bytes: limits.maxFrameBytes,
      },
      state: this.board.all(),
      ...(reason !== undefined && prepared && { snapshot: snapshotToWire(prepared) }),
    }
    connection.reply({ type: 'attached', data })
    this.#connections.add(connection)
    this.#byClient.set(client.id, connection)
    this.presence.join(client)
    connection.pump()
    return connection
  }

  detach(connection: Connection, code = 1000, reason = ''): void {
    if (!this.#connections.delete(connection)) return
    this.#byClient.delete(connection.client.id)
    connection.close(code, reason)
    this.presence.leave(connection.client.id)
  }

  /** What a client tells of itself. One that nobody looks at is handed text in flight less often. */
  present(connection: Connection, news: { visibility: 'visible' | 'hidden'; typing: boolean }): void {
    const wasHidden = connection.isHidden
    connection.isHidden = news.visibility === 'hidden'
    this.presence.renew(connection.client.id, news)
    if (wasHidden && !connection.isHidden) connection.pump()
  }

  /** Takes effect at most once, however often it is sent. Another command with its id is refused with `key-reused`. */
  async perform(id: string, clientId: string, frame: CommandFrame): Promise<Ack> {
    const identity = identityOf({ op: frame.op, args: frame.request ?? frame.args }, frame.sender)
    const alias = aliasOf(id, identity)
    const aliasSeq = this.session.effectOf(alias)
    if (aliasSeq !== undefined && (await isEffectOf(this.session, aliasSeq, identity))) {
      return { id, ok: true, dup: true, seq: aliasSeq }
    }
    const aliased = this.#acks.get(alias)
    if (aliased && isSame(aliased.identity, identity)) return { ...(await aliased.ack), id, dup: true }
    // From here until the command is registered nothing may be awaited: of two that come together one is carried out.
    const earlier = this.#acks.get(id)
    if (earlier) return isSame(earlier.identity, identity) ? { ...(await earlier.ack), dup: true } : keyReused(id)
    const seq = this.session.effectOf(id)
    if (seq !== undefined) {
      return (await isEffectOf(this.session, seq, identity)) ? { id, ok: true, dup: true, seq } : keyReused(id)
    }
    const { token, digest } = identity
    const cause: Cause = { cmd: id, client: clientId, ...(token !== localUser && { token }), digest }
    const ack = this.#inTurn(frame, () => this.#perform(cause, frame))
    this.#acks.set(id, { identity, ack })
    const [oldest] = this.#acks.keys()
    if (this.#acks.size > rememberedAcks && oldest !== undefined) this.#acks.delete(oldest)
    const done = await ack
    this.#commandListeners.notify({ op: frame.op, ack: done })
    // What was refused had no effect: it may be tried again.
    if (!done.ok) this.#acks.delete(id)
    return done
  }

  /** Tells of every command once, when it has its answer. */
  onCommand(listener: (done: PerformedCommand) => void): () => void {
    return this.#commandListeners.add(listener)
  }

  /** Tells of every line, whoever wrote it. */
  onLine(listener: (line: Line) => void): () => void {
    return this.#lineListeners.add(listener)
  }

  /**
   * Takes over a session that was only watched, if its owner is gone. Connections stay: they are told the lines that are left, and what
   * follows. Rejects with `session-owned` otherwise.
   */
  async becomeWritable(): Promise<void> {
    if (!this.isWatched) return
    this.#claiming ??= this.#claim().finally(() => (this.#claiming = undefined))
    await this.#claiming
  }

  /** For whoever watches as long as it is live. */
  onClose(stop: () => void): void {
    this.#stops.push(stop)
  }

  /** Ends what runs. */
  async close(code = 1001, reason = 'the session was closed'): Promise<void> {
    this.#sayGoodbye(code, reason)
    await this.driver.close()
  }

  /** For a server that goes down: what runs stays open in the log, and can be gone on with by the next one. */
  async suspend(): Promise<void> {
    this.#sayGoodbye(1012, 'the server is restarting')
    await (this.driver.suspend?.() ?? this.driver.close())
  }

  #sayGoodbye(code: number, reason: string): void {
    this.#isClosed = true
    for (const connection of this.#connections) {
      if (code === closeCodes.gone) connection.reply({ type: 'gone', data: { reason } })
      else connection.reply({ type: 'bye', data: { reason, retry_after_ms: 500 } })
      this.detach(connection, code, reason)
    }
    this.#endTicks()
    for (const stop of [...this.#driverStops, ...this.#stops]) stop()
    this.presence.close()
  }

  #reasonFor({ after }: AttachRequest): SnapshotReason | undefined {
    if (!after) return 'first'
    if (after.seq > this.session.head.seq) return 'cursor_ahead'
    const crc = this.lines.crcOf(after.seq)
    if (crc === undefined) return 'too_far_behind'
    return crc === after.crc ? undefined : 'history_changed'
  }

  /** Of two that want the same head only one can have it: they do not look at it side by side. */
  #inTurn({ ifHead }: { ifHead?: number }, work: () => Promise<Ack>): Promise<Ack> {
    if (ifHead === undefined) return work()
    const done = this.#lastGuarded.then(work)
    this.#lastGuarded = done.catch(() => undefined)
    return done
  }

  async #perform(cause: Cause, { op, args, ifHead, sender }: CommandFrame): Promise<Ack> {
    const { cmd: id } = cause
    this.#commandsAtWork++
    try {
      const checked = checkCommand(op, args)
      if (!checked.ok) throw new RequestProblem(422, 'invalid-command', checked.message)
      if (this.isWatched) {
        await this.becomeWritable()
        // The lines that its owner wrote last may be the effect of this very command.
        const done = this.session.effectOf(id)
        if (done !== undefined) return { id, ok: true, dup: true, seq: done }
      }
      const { seq: head } = this.session.head
      if (ifHead !== undefined && ifHead !== head) {
        throw new RequestProblem(409, 'head-moved', `The log has gone on to line ${head}.`, { head })
      }
      const result = await this.driver.perform(checked.command, cause, { mayDrive: sender?.mayDrive ?? true })
      const seq = this.session.effectOf(id)
      return { id, ok: true, ...(seq !== undefined && { seq }), ...(result !== undefined && { result }) }
    } catch (error) {
      return { id, ok: false, error: problemOf(error) }
    } finally {
      this.#commandsAtWork--
    }
  }

  async #claim(): Promise<void> {
    const watched = this.#driver as WatchedDriver
    const driver = await (this.#options.claim?.() ?? watched.perform()).catch(async (error: unknown) => {
      throw isOwned(error) ? await watched.problem() : error
    })
    if (this.#isClosed) {
      await driver.close()
      throw new RequestProblem(503, 'session-busy', 'The session was closed meanwhile. Try again.')
    }
    await watched.stop()
    for (const stop of this.#driverStops) stop()
    this.#driver = driver
    this.#options.onClaimed?.(this)
    try {
      await this.#use(driver, this.lines.lastSeq)
    } catch (error) {
      this.#options.onBroken?.()
      throw error
    } finally {
      await watched.session.close()
    }
  }

  /** Reads the lines after this one, and hears of all that follow. */
  async #use(driver: SessionDriver, after: number): Promise<void> {
    const { session } = driver
    // Lines that are committed meanwhile come behind these.
    const missed: CommittedLine[] = []
    this.#pending = missed
    const isWatched = driver instanceof WatchedDriver
    this.#driverStops = [driver.subscribe((event) => this.#takeEvent(event))]
    if (!isWatched) this.#driverStops.push(session.subscribe((committed) => this.#takeLine(committed)))
    const isFirst = this.lines.lastSeq === 0
    for await (const line of session.lines({ after })) {
      if (isWatched || !isFirst) this.#addStored(line)
      else this.lines.add(outgoingLine(line))
    }
    this.#pending = undefined
    for (const committed of missed) this.#addLine(committed)
    this.#showState()
    this.#wake()
    if (!isWatched) return
    driver.follow(this.lines.lastSeq, {
      take: (lines) => {
        for (const line of lines) this.#addStored(line)
        if (lines.length > 0) this.#showState()
      },
      onRewritten: () => this.#options.onBroken?.(),
    })
  }

  /** A line that was read from the log, not announced by its writer. */
  #addStored(stored: LogLine): void {
    this.lines.add(outgoingLine(stored))
    if (stored.type === 'line') this.#heed(fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq))
    this.#wake()
  }

  #heed(line: Line): void {
    this.inFlight.land(line)
    // As the specification has it, a message has left the queue before it is said.
    for (const notice of this.#queueNotices.take(line)) this.#notify(notice, line.seq - 1)
    this.#lineListeners.notify(line)
  }

  #takeLine(committed: CommittedLine): void {
    if (this.#pending) this.#pending.push(committed)
    else this.#addLine(committed)
  }

  #addLine({ seq, crc, text, line }: CommittedLine): void {
    const last = this.session.head.seq
    // One that was committed while this was opened may have been read with the others.
    if (this.lines.crcOf(seq) === undefined) this.lines.add(outgoing({ seq, crc, text }))
    this.#heed(line)
    if (seq === last) this.#showState()
    this.#wake()
  }

  #takeEvent(event: DriverEvent): void {
    switch (event.type) {
      case 'delta':
      case 'partial':
        this.#takeText(event)
        return
      case 'auto_retry_start':
      case 'auto_compaction_start':
        this.#pause = event
        break
      case 'auto_retry_end':
      case 'auto_compaction_end':
        this.#pause = null
        break
      case 'queue_message_sending':
      case 'queue_message_sent':
        this.#notify({ type: event.type, data: { message_id: event.messageId } }, this.session.head.seq)
        break
      case 'agent_idle':
      case 'config_changed':
        break
      default:
        event satisfies never
    }
    this.#showState()
    this.#wake()
  }

  #takeText(text: LiveText): void {
    this.inFlight.take(text)
    this.#stopTicks ??= tickerOf(this.#tickMs).add(() => this.#tick())
  }

  #tick(): void {
    const isForAll = ++this.#ticks % ticksOfHidden === 0
    this.#pumpAll(isForAll ? undefined : ({ isHidden }) => !isHidden)
    if (this.inFlight.isEmpty) this.#endTicks()
  }

  #endTicks(): void {
    this.#stopTicks?.()
    this.#stopTicks = undefined
  }

  #notify(frame: ServerFrame, after: number): void {
    const bytes = Buffer.from(JSON.stringify(frame))
    for (const connection of this.#connections) connection.notice({ bytes, after })
  }

  #showState(): void {
    const values = stateValues(this.driver, this.#pause)
    for (const key of Object.keys(values) as (keyof typeof values)[]) this.board.set<StateKey>(key, values[key])
  }

  /** Once for all that happens in this turn of the event loop. */
  #wake(): void {
    if (this.#isWoken) return
    this.#isWoken = true
    queueMicrotask(() => {
      this.#isWoken = false
      this.#pumpAll()
    })
  }

  #pumpAll(isTheirTurn: (connection: Connection) => boolean = () => true): void {
    for (const connection of this.#connections) {
      if (!isTheirTurn(connection)) continue
      connection.pump()
      if (connection.isClosed) this.detach(connection)
    }
  }

  /** For tests and health checks. */
  get now(): number {
    return this.#clock.now()
  }
}

/** REST puts the token before its keys; a socket does not. A command that comes by both is still one. */
function aliasOf(id: string, { token }: CommandIdentity): string {
  const prefix = `${token}:`
  return id.startsWith(prefix) ? id.slice(prefix.length) : `${prefix}${id}`
}

function keyReused(id: string): Ack {
  const detail = 'This id or idempotency key was used before for another command. Use a new one.'
  return { id, ok: false, error: problemOf(new RequestProblem(422, 'key-reused', detail)) }
}
