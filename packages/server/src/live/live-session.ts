import { systemClock, type Clock } from '@tapetree/agent/run'
import {
  closeCodes,
  limits,
  snapshotToWire,
  type Ack,
  type Attached,
  type AttachRequest,
  type ServerFrame,
  type SnapshotReason,
  type StateKey,
  type WireStateValues,
} from '@tapetree/client/protocol'
import { newId, type CommittedLine, type Session } from '@tapetree/session'
import type { StorageStatus } from '@tapetree/session/log-store'
import { fromDisk, type Delivery, type DiskLine, type Line } from '@tapetree/session/format'
import type { LiveText, SessionSnapshot } from '@tapetree/session/view'
import type { LogLine } from '@tapetree/session/log-store'
import { Listeners } from '@tapetree/session/util/listeners'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'
import { LiveCommands, type CommandFrame, type PerformedCommand, type RelayedCommand } from './commands.ts'
import { Connection, type Sink } from './connection.ts'
import { suspendDriver, type DriverEvent, type SessionDriver } from './driver.ts'
import { InFlight } from './in-flight.ts'
import { outgoing, outgoingLine, RecentLines, type OutgoingLine } from './recent-lines.ts'
import { Presence } from './presence.ts'
import { QueueNotices } from './queue-notices.ts'
import { StateBoard, stateValues, type Pause } from './state-values.ts'
import { tickerOf } from './ticker.ts'
import { isOwned, WatchedDriver } from './watched-driver.ts'
import type { OwnerLink, RelayTarget } from './owner-link.ts'

export interface LiveSessionOptions {
  clock?: Clock
  /** How often text in flight is sent. */
  tickMs?: number
  /**
   * Opens a writable driver for a session that was only watched. Rejects with `session-owned` if another
   * process still writes it.
   */
  claim?: () => Promise<SessionDriver>
  /** Whether commands that begin work are rejected with `draining`. */
  isDraining?: () => boolean
  /** Called when a watched session becomes writable, and when its driver was replaced. */
  onDriver?: (live: LiveSession) => void
  /** Connects it to the node that owns it. Absent if there are no other nodes. */
  relay?: (node: string, target: RelayTarget) => OwnerLink
  /** Called when sent lines are no longer valid or the log cannot be followed: all clients must start over. */
  onBroken?: () => void
}

const defaultTickMs = 33
/** So many lines are read when a session is opened. A server that takes over many sessions opens all of them. */
const linesAtOpen = 50
/** How long a command waits for a sign of another node, or for the end of its lease. */
const relayMs = 15_000
const askAgainMs = 200
/** Hidden screens get text every 100 ms; others every 33 ms. */
const ticksOfHidden = 3
/**
 * Share of the frame for the lines of a snapshot. They are longer inside a frame, and the fold and the state
 * are added.
 */
const snapshotBytes = limits.maxFrameBytes / 2

/** A running session and its observers. Work continues without any observer. */
export class LiveSession {
  readonly lines = new RecentLines()
  readonly board = new StateBoard()
  readonly inFlight = new InFlight()
  readonly presence: Presence
  readonly #connections = new Set<Connection>()
  readonly #queueNotices: QueueNotices
  readonly #byClient = new Map<string, Connection>()
  readonly #clock: Clock
  readonly #tickMs: number
  readonly #stops: (() => void)[]
  readonly #commands = new LiveCommands(this)
  readonly #lineListeners = new Listeners<Line>(emitWarning)
  readonly #options: LiveSessionOptions
  #driver: SessionDriver
  /** Unsubscribes from the current driver. */
  #driverStops: (() => void)[] = []
  /** Another driver is being opened. Who closes the session waits for it, so that nobody is left with the new one. */
  #claiming: Promise<void> | undefined
  #stopTicks: (() => void) | undefined
  #ticks = 0
  #isWoken = false
  #isRelaying = false
  #isClosed = false
  #pause: Pause | null = null
  /** The connection to the node that owns the session, and the state there. */
  #relayed: OwnerLink | undefined
  #shown: Partial<WireStateValues> = {}

  private constructor(driver: SessionDriver, options: LiveSessionOptions) {
    const { clock = systemClock, tickMs = defaultTickMs } = options
    this.#driver = driver
    this.#options = options
    this.#queueNotices = new QueueNotices(driver.session.inbox.messages)
    this.#clock = clock
    this.#tickMs = tickMs
    this.presence = new Presence(clock, () => {
      this.#relayed?.renew()
      // The owner knows the clients of all nodes.
      if (this.#shown.presence === undefined && this.board.set('presence', this.presence.list())) this.#wake()
    })
    this.#stops = []
  }

  /** Loads the newest lines. Older ones are loaded for the first client that comes back and has missed more. */
  static async open(driver: SessionDriver, options: LiveSessionOptions = {}): Promise<LiveSession> {
    const live = new LiveSession(driver, options)
    await live.#use(driver, Math.max(0, driver.session.head.seq - linesAtOpen))
    return live
  }

  #pending: CommittedLine[] | undefined
  /** Set once older lines are loaded, or being loaded. */
  #older: Promise<void> | undefined

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

  /** Whether commands that begin work are rejected, because the server waits for its runs to finish. */
  get isDraining(): boolean {
    return this.#options.isDraining?.() ?? false
  }

  /** Whether a run or a command is at work in this process. */
  get isWorking(): boolean {
    const { isBusy, runsCommands = false } = this.driver
    return (!this.isWatched && (isBusy || runsCommands)) || !this.#commands.areDone
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections
  }

  /** The delivery of a queued message; undefined if no message with this id is queued. */
  readonly deliveryOf = (messageId: string): Delivery | undefined =>
    this.session.inbox.messages.find(({ id }) => id === messageId)?.delivery

  connectionOf(clientId: string): Connection | undefined {
    return this.#byClient.get(clientId)
  }

  get hasNodes(): boolean {
    return this.#options.relay !== undefined
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isIdle(): boolean {
    return !this.isWorking && this.#connections.size === 0
  }

  /** The snapshot for a client that starts. Made before it attaches: lines in between are sent one by one. */
  async prepare(request: AttachRequest): Promise<SessionSnapshot | undefined> {
    if (this.#driver instanceof WatchedDriver) await this.#driver.caughtUp()
    if (request.after && this.#hasOlder(request.after.seq)) await (this.#older ??= this.#loadOlder())
    if (this.#reasonFor(request) === undefined) return undefined
    return this.session.snapshot({ entries: request.window ?? 50, bytes: snapshotBytes })
  }

  /** Synchronous: nothing can happen between reading the head and subscribing to later lines. */
  attach(request: AttachRequest, sink: Sink, prepared?: SessionSnapshot): Connection | 'not-prepared' {
    // It was closed while the client prepared, for example because it was idle: there may be another instance
    // by now.
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

  /** Sends all frames from now on to another node, for the clients there. End it with `detach`. */
  share(sink: Sink): Connection {
    const client = { id: '', kind: 'node' }
    const connection = new Connection(this, sink, {
      client,
      seq: this.lines.lastSeq,
      rev: this.board.rev,
      wantsText: true,
    })
    this.#connections.add(connection)
    return connection
  }

  detach(connection: Connection, code = 1000, reason = ''): void {
    if (!this.#connections.delete(connection)) return
    this.#byClient.delete(connection.client.id)
    connection.close(code, reason)
    this.presence.leave(connection.client.id)
  }

  /** Applies a client's presence. Hidden clients receive text in flight less often. */
  present(connection: Connection, news: { visibility: 'visible' | 'hidden'; typing: boolean }): void {
    const wasHidden = connection.isHidden
    connection.isHidden = news.visibility === 'hidden'
    this.presence.renew(connection.client.id, news)
    if (wasHidden && !connection.isHidden) connection.pump()
  }

  /**
   * Takes effect at most once, however often it is sent. Another command with the same id is rejected with
   * `key-reused`.
   */
  perform(id: string, clientId: string, frame: CommandFrame): Promise<Ack> {
    return this.#commands.perform(id, clientId, frame)
  }

  /** The trace of a recent command; undefined if it had none. */
  traceparentOf(commandId: string): string | undefined {
    return this.#commands.traceparentOf(commandId)
  }

  /** Calls the listener once for every command, when it has its answer. */
  onCommand(listener: (done: PerformedCommand) => void): () => void {
    return this.#commands.onCommand(listener)
  }

  /** Calls the listener for every line, also those of other processes. */
  onLine(listener: (line: Line) => void): () => void {
    return this.#lineListeners.add(listener)
  }

  /**
   * Takes over a watched session if its owner has ended. Connections stay: they receive the remaining lines and
   * all later ones. Rejects with `session-owned` otherwise, and with `session-busy` once it is closed.
   */
  async becomeWritable(): Promise<void> {
    if (!this.isWatched) return
    if (this.#isClosed) throw closedMeanwhile()
    this.#claiming ??= this.#claim().finally(() => (this.#claiming = undefined))
    await this.#claiming
  }

  /**
   * Runs a command on the node that owns the session. Undefined if none owns it, or there are no other nodes: then this
   * node may claim it. Rejects with `node-unreachable` if the owner does not answer and nobody else may take over.
   */
  async relay(command: RelayedCommand): Promise<Ack | undefined> {
    if (!(this.#driver instanceof WatchedDriver) || !this.#options.relay) return undefined
    let until = this.#clock.now() + relayMs
    for (;;) {
      if (!(this.#driver instanceof WatchedDriver)) return undefined
      const node = await this.#driver.ownerNode()
      if (node === undefined) return undefined
      this.#connect(node)
      const ack = await this.#relayed?.perform(command).catch(() => undefined)
      if (ack === 'working') {
        until = this.#clock.now() + relayMs
      } else if (ack) {
        if (ack.seq !== undefined) await this.#caughtUp(ack.seq)
        return ack
      }
      if (this.#isClosed || this.#clock.now() > until) {
        const detail = `The session is open on node ${node}, which does not answer. Try again.`
        throw new RequestProblem(503, 'node-unreachable', detail, { retry_after_ms: 1000 })
      }
      if (ack !== 'working') await this.#clock.wait(askAgainMs, new AbortController().signal)
    }
  }

  /** Waits for a line that is in the log already, so that clients see the effect of a command before its answer. */
  async #caughtUp(seq: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const stop = this.onLine((line) => line.seq >= seq && resolve())
    const waited = new AbortController()
    if (this.lines.lastSeq < seq) {
      await Promise.race([promise, this.#clock.wait(relayMs, waited.signal).catch(() => undefined)])
    }
    waited.abort()
    stop()
  }

  /** Registers a function that is called on close. */
  onClose(stop: () => void): void {
    this.#stops.push(stop)
  }

  /** Closes it, so that its clients connect again and start over. */
  startOver(): void {
    this.#options.onBroken?.()
  }

  /** Stops running work. */
  async close(code = 1001, reason = 'the session was closed'): Promise<void> {
    this.#sayGoodbye(code, reason)
    await this.#claiming?.catch(() => undefined)
    await this.driver.close()
  }

  /** For a server shutdown: runs stay open in the log, and the next server can resume them. */
  async suspend(): Promise<void> {
    this.#sayGoodbye(1012, 'the server is restarting')
    await this.#claiming?.catch(() => undefined)
    await suspendDriver(this.driver)
  }

  #sayGoodbye(code: number, reason: string): void {
    this.#isClosed = true
    for (const connection of this.#connections) {
      if (code === closeCodes.gone) connection.reply({ type: 'gone', data: { reason } })
      else connection.reply({ type: 'bye', data: { reason, retry_after_ms: 500 } })
      this.detach(connection, code, reason)
    }
    this.#endTicks()
    this.#disconnect()
    for (const stop of [...this.#driverStops, ...this.#stops]) stop()
    this.presence.close()
  }

  /** Whether a line that a client may have seen last has not been loaded. */
  #hasOlder(seq: number): boolean {
    return seq > this.session.head.seq - limits.maxBehindLines && !this.lines.reaches(seq - 1)
  }

  async #loadOlder(): Promise<void> {
    try {
      const older: OutgoingLine[] = []
      for await (const line of this.session.lines({
        after: Math.max(0, this.session.head.seq - limits.maxBehindLines),
      })) {
        if (this.lines.reaches(line.seq - 1)) break
        older.push(outgoingLine(line))
      }
      this.lines.addOlder(older)
    } catch (error) {
      this.#older = undefined
      throw error
    }
  }

  #reasonFor({ after }: AttachRequest): SnapshotReason | undefined {
    if (!after) return 'first'
    if (after.seq > this.session.head.seq) return 'cursor_ahead'
    const crc = this.lines.crcOf(after.seq)
    if (crc === undefined) return 'too_far_behind'
    return crc === after.crc ? undefined : 'history_changed'
  }

  async #claim(): Promise<void> {
    const watched = this.#driver as WatchedDriver
    const driver = await (this.#options.claim?.() ?? watched.perform()).catch(async (error: unknown) => {
      throw isOwned(error) ? await watched.problem() : error
    })
    await watched.stop()
    if (this.#isClosed) {
      await suspendDriver(driver)
      throw closedMeanwhile()
    }
    for (const stop of this.#driverStops) stop()
    this.#disconnect()
    this.#driver = driver
    this.#options.onDriver?.(this)
    try {
      await this.#use(driver, this.lines.lastSeq)
    } catch (error) {
      this.#options.onBroken?.()
      throw error
    } finally {
      await watched.session.close()
    }
  }

  /** Replaces the driver by one that is opened as the log now says. Connections stay, and an open run continues. */
  async reopen(): Promise<void> {
    await this.#claiming?.catch(() => undefined)
    const before = this.#driver
    this.#claiming = this.#replaceDriver().finally(() => (this.#claiming = undefined))
    await this.#claiming
    if (this.#isClosed || this.#driver === before) return
    await this.#driver.perform({ op: 'resume', args: { by_person: true } }, { cmd: newId(), client: 'server' })
  }

  async #replaceDriver(): Promise<void> {
    const before = this.#driver
    const next = await this.#options.claim?.()
    if (!next) return
    if (this.#isClosed) return suspendDriver(next)
    for (const stop of this.#driverStops) stop()
    this.#driver = next
    try {
      await suspendDriver(before)
      this.#options.onDriver?.(this)
      await this.#use(next, this.lines.lastSeq)
    } catch (error) {
      this.#options.onBroken?.()
      throw error
    }
  }

  /** Reads the lines after this one, and subscribes to all later ones. */
  async #use(driver: SessionDriver, after: number): Promise<void> {
    const { session } = driver
    // Lines committed meanwhile come after these.
    const missed: CommittedLine[] = []
    this.#pending = missed
    const isWatched = driver instanceof WatchedDriver
    this.#driverStops = [driver.subscribe((event) => this.#takeEvent(event))]
    if (!isWatched) {
      this.#driverStops.push(
        session.subscribe((committed) => this.#takeLine(committed)),
        session.onStorageChange((status) => this.#takeStorage(status)),
      )
    }
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
      onOwner: (node) => (node === undefined ? this.#disconnect() : this.#connect(node)),
      isTold: () => this.#relayed !== undefined,
    })
  }

  #connect(node: string): void {
    if (this.#isClosed || this.#relayed?.node === node) return
    this.#disconnect()
    this.#relayed = this.#options.relay?.(node, {
      texts: () =>
        [...this.inFlight.parts()].map(({ item, part, kind, off, text }) => ({
          item,
          part,
          kind,
          end: off + text.length,
        })),
      takeText: (text) => this.#takeRelayed(text),
      takeState: (values) => {
        this.#shown = { ...this.#shown, ...values }
        this.#showState()
        this.#wake()
      },
      takeHead: (seq) => {
        if (seq > this.lines.lastSeq && this.#driver instanceof WatchedDriver) this.#driver.look()
      },
      clients: () => this.presence.here(),
      // The driver connects it again the next time it looks: at once would be a loop while the bus is down.
      onLost: () => this.#disconnect(),
    })
  }

  #disconnect(): void {
    this.#relayed?.close()
    this.#relayed = undefined
    if (Object.keys(this.#shown).length === 0) return
    this.#shown = {}
    this.board.set('presence', this.presence.list())
    this.#showState()
    this.#wake()
  }

  /** Adds a line that was read from the log, not announced by its writer. */
  #addStored(stored: LogLine): void {
    this.lines.add(outgoingLine(stored))
    if (stored.type === 'line') this.#heed(fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq))
    this.#wake()
  }

  #heed(line: Line): void {
    this.inFlight.land(line)
    // By specification, a message leaves the queue before it is appended.
    for (const notice of this.#queueNotices.take(line)) this.#notify(notice, line.seq - 1)
    this.#lineListeners.notify(line)
  }

  #takeLine(committed: CommittedLine): void {
    if (this.#pending) this.#pending.push(committed)
    else this.#addLine(committed)
  }

  #addLine({ seq, crc, text, line }: CommittedLine): void {
    const last = this.session.head.seq
    // A line committed during the open may have been read with the others.
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

  /** If another process took the session over, clients come back and watch it. */
  #takeStorage({ type }: StorageStatus): void {
    if (type === 'lost') this.#options.onBroken?.()
    this.#showState()
    this.#wake()
  }

  #takeText(text: LiveText): void {
    this.inFlight.take(text)
    this.#stopTicks ??= tickerOf(this.#tickMs).add(() => this.#tick())
  }

  /** The owner has waited for more text already, so that screens get it at once. Hidden ones get it less often. */
  #takeRelayed(text: LiveText): void {
    this.inFlight.take(text)
    if (this.#connections.values().some(({ isHidden }) => isHidden)) {
      this.#stopTicks ??= tickerOf(this.#tickMs).add(() => this.#tick())
    }
    if (this.#isRelaying) return
    this.#isRelaying = true
    queueMicrotask(() => {
      this.#isRelaying = false
      this.#pumpAll(({ isHidden }) => !isHidden)
    })
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
    // Only the owner knows what is not in the log.
    const { run, config, commands, presence, language_servers } = this.#shown
    const values = {
      ...stateValues(this.driver, this.#pause),
      ...(run && { run }),
      ...(config && { config }),
      ...(commands && { commands }),
      ...(presence && { presence }),
      ...(language_servers && { language_servers }),
      ...(this.isWatched && this.#options.relay && { read_only: null }),
    }
    for (const [key, value] of Object.entries(values)) this.board.set(key as StateKey, value)
  }

  /** Once for all events of this turn of the event loop. */
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

function closedMeanwhile(): RequestProblem {
  return new RequestProblem(503, 'session-busy', 'The session was closed meanwhile. Try again.')
}
