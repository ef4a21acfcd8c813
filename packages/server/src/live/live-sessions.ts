import { systemClock, type Clock } from '@tapetree/agent/run'
import type { WorkspaceReference } from '@tapetree/agent/tool-host'
import { closeCodes } from '@tapetree/client/protocol'
import { SessionError, type CreateOptions, type Session, type SessionStore } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { draining } from './commands.ts'
import { Listeners } from '@tapetree/session/util/listeners'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'
import { suspendDriver, type SessionDriver } from './driver.ts'
import { LiveSession } from './live-session.ts'
import { isOwned, WatchedDriver } from './watched-driver.ts'
import type { SessionRelay } from './owner-link.ts'

/** Options of a new session. */
export interface NewSession extends CreateOptions {
  model?: { provider: string; modelId: string }
  /** The tools work there. */
  workspace?: WorkspaceReference
  agent?: string
}

/**
 * Called for a session that becomes live, and again when its driver was replaced. The returned function is called before that, and when the
 * session is closed.
 */
export type LiveObserver = (live: LiveSession) => () => void

export interface LiveSessionsOptions {
  store: SessionStore
  /** Opens a driver for an existing session. */
  openDriver: (sessionId: string) => Promise<SessionDriver>
  /** Creates a session and returns its id. */
  create: (options: NewSession) => Promise<string>
  /** Maximum number of live sessions. */
  maxLive?: number
  /** An idle session without observers is closed after this long. */
  idleMs?: number
  /** How often text in flight is sent. */
  tickMs?: number
  clock?: Clock
  /**
   * Called for each session that becomes live, for metrics and traces; the returned function is called when
   * that session is closed.
   */
  observers?: readonly LiveObserver[]
  /** Reports errors that have no caller, such as a failed close of an idle session. */
  onProblem?: (problem: { sessionId: string; error: unknown }) => void
}

interface Entry {
  live: Promise<LiveSession>
  /** Set once it is open. */
  opened?: LiveSession
  /** When it was last requested, or seen at work. */
  usedAt: number
}

const defaults = {
  maxLive: 1000,
  idleMs: 10 * 60_000,
  tickMs: 33,
  clock: systemClock,
  observers: [],
  onProblem: () => undefined,
}

/** How often a draining server checks whether its runs have finished. */
const drainCheckMs = 100

/** How long a process that ends waits for what is under way in the store. */
const finishMs = 5000

/** A session that was just requested is about to be used, and is not closed to make room. */
const graceMs = 1000

/** The live sessions of one tenant: running or observed. All others are only in the store. */
export class LiveSessions {
  readonly store: SessionStore
  readonly clientIds = new ClientIds()
  readonly #options: Required<LiveSessionsOptions>
  readonly #entries = new Map<string, Entry>()
  /** Sessions that are closing: requests for them wait, and get a new instance. */
  readonly #leaving = new Map<string, Promise<void>>()
  readonly #closing = new AbortController()
  /** What `close` waits for besides the sessions. */
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #listeners = new Listeners<string>(emitWarning)
  readonly #lineListeners = new Listeners<{ live: LiveSession; line: Line }>(emitWarning)
  /** Room that is kept free for sessions that are being created. */
  #reserved = 0
  #isDraining = false
  #relay: SessionRelay | undefined
  readonly #observers: Set<LiveObserver>

  constructor(options: LiveSessionsOptions) {
    this.store = options.store
    this.#options = { ...defaults, ...options }
    this.#observers = new Set(this.#options.observers)
    void this.#closeIdle()
  }

  /** Connects sessions that other nodes own with those nodes. Call it before a session is opened. */
  useRelay(relay: SessionRelay): void {
    this.#relay = relay
  }

  get live(): ReadonlyMap<string, Promise<LiveSession>> {
    return new Map([...this.#entries].map(([id, { live }]) => [id, live]))
  }

  /** The open sessions, without those that are being opened. */
  get opened(): LiveSession[] {
    return [...this.#entries.values()].flatMap(({ opened }) => opened ?? [])
  }

  /** Whether another session could be opened only by closing one. */
  get isFull(): boolean {
    return this.#entries.size + this.#reserved >= this.#options.maxLive
  }

  /**
   * Reserves room for one more live session, so that a session is created only if it can also be opened. Release it in
   * the same step in which the session is requested. Rejects with `too-many-sessions`.
   */
  async reserve(): Promise<Disposable> {
    if (this.#isDraining) throw draining()
    const hasRoom = !this.isFull
    let isHeld = true
    this.#reserved++
    const release = (): void => {
      if (isHeld) this.#reserved--
      isHeld = false
    }
    try {
      if (!hasRoom) await this.#makeRoom()
    } catch (error) {
      release()
      throw error
    }
    return { [Symbol.dispose]: release }
  }

  async create(options: NewSession): Promise<string> {
    const id = await this.#options.create(options)
    this.#tell(id)
    return id
  }

  /** Returns the live session of this id; opens it if needed. Rejects with `session-not-found`. */
  get(sessionId: string): Promise<LiveSession> {
    if (this.#closing.signal.aborted) {
      return Promise.reject(new RequestProblem(503, 'shutting-down', 'The server is shutting down.'))
    }
    const usedAt = this.#options.clock.now()
    const known = this.#entries.get(sessionId)
    if (known) {
      known.usedAt = usedAt
      return known.live
    }
    // Registered before anything is awaited, so that concurrent requests share one instance.
    const hasRoom = !this.isFull
    const entry: Entry = { live: this.#open(sessionId, hasRoom), usedAt }
    this.#entries.set(sessionId, entry)
    entry.live.then(
      (opened) => (entry.opened = opened),
      () => this.#forget(sessionId, entry),
    )
    return entry.live
  }

  /** Returns the session if it is live; opens nothing. */
  async peek(sessionId: string): Promise<LiveSession | undefined> {
    return this.#entries.get(sessionId)?.live.catch(() => undefined)
  }

  /** Reports a change in the store beside a live session, such as a move to the trash. */
  changed(sessionId: string): void {
    this.#tell(sessionId)
  }

  /** Calls the listener when a session changes in a way that a list shows. */
  onChange(listener: (sessionId: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Adds an observer for sessions that become live from now on. The returned function removes it. */
  observe(observer: LiveObserver): () => void {
    this.#observers.add(observer)
    return () => void this.#observers.delete(observer)
  }

  /** Calls the listener for every line of every live session, also of one that another process writes. */
  onLine(listener: (committed: { live: LiveSession; line: Line }) => void): () => void {
    return this.#lineListeners.add(listener)
  }

  /** Closes one, for example before it is deleted. */
  async release(sessionId: string): Promise<void> {
    const entry = this.#entries.get(sessionId)
    if (entry) await this.#close(sessionId, entry, (live) => live.close(4404, 'the session is gone'))
    else await this.#leaving.get(sessionId)
  }

  /**
   * Closes the live session of an earlier claim, if another process has taken the session over and this one has claimed
   * it again. Its clients come back.
   */
  async closeOutdated(session: Session): Promise<void> {
    const live = await this.peek(session.id)
    if (live && !live.isWatched && live.session.sharedKey !== session.sharedKey) await this.#closeBroken(session.id)
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  get isClosing(): boolean {
    return this.#closing.signal.aborted
  }

  /** Does something with sessions of the store that `close` waits for, for some seconds: the store is closed after it. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const underWay = work()
    this.#underWay.add(underWay)
    return underWay.finally(() => this.#underWay.delete(underWay))
  }

  /**
   * From now on, rejects commands that begin work with `draining`. Resolves when no run is at work, or when the signal is
   * aborted. Call `close` afterwards.
   */
  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true
    const isWorking = (): boolean => [...this.#entries.values()].some(({ opened }) => opened?.isWorking)
    while (isWorking() && !signal.aborted) {
      await this.#options.clock.wait(drainCheckMs, signal).catch(() => undefined)
    }
  }

  /** For a process that ends: runs stay open, and the next process can resume them. */
  async close(): Promise<void> {
    this.#closing.abort()
    const all = [...this.#entries].map(([id, entry]) => this.#close(id, entry, (live) => live.suspend()))
    const ended = await Promise.allSettled([...all, ...this.#leaving.values()])
    await this.#finishUnderWay()
    for (const end of ended) if (end.status === 'rejected') throw end.reason
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** A storage that does not answer holds up the end of a process for some seconds only. */
  async #finishUnderWay(): Promise<void> {
    if (this.#underWay.size === 0) return
    const isDone = new AbortController()
    const limit = this.#options.clock.wait(finishMs, isDone.signal).catch(() => undefined)
    await Promise.race([Promise.allSettled(this.#underWay), limit])
    isDone.abort()
  }

  async #open(sessionId: string, hasRoom: boolean): Promise<LiveSession> {
    if (!hasRoom) await this.#makeRoom()
    await this.#leaving.get(sessionId)
    const { clock, tickMs } = this.#options
    const relay = this.#relay
    const driver = await this.#openOrWatch(sessionId)
    let stopObserving = (): void => undefined
    const observe = (live: LiveSession): void => {
      stopObserving()
      stopObserving = this.#observe(live)
    }
    const live = await LiveSession.open(driver, {
      clock,
      tickMs,
      claim: () => this.#openDriver(sessionId),
      isDraining: () => this.#isDraining,
      ...(relay && { relay: (node, target) => relay(sessionId, node, target) }),
      onDriver: observe,
      onBroken: () => void this.#closeBroken(sessionId),
    }).catch(async (error: unknown) => {
      await suspendDriver(driver)
      throw error
    })
    live.onLine((line) => {
      if (listed.has(line.type)) this.#tell(sessionId)
      this.#lineListeners.notify({ live, line })
    })
    if (!live.isWatched) observe(live)
    live.onClose(() => stopObserving())
    return live
  }

  #observe(live: LiveSession): () => void {
    const stops = [...this.#observers].map((observe) => observe(live))
    return () => {
      for (const stop of stops) stop()
    }
  }

  async #openDriver(sessionId: string): Promise<SessionDriver> {
    const driver = await this.#options.openDriver(sessionId)
    const { readOnlyReason } = driver.session
    if (readOnlyReason === undefined) return driver
    await driver.close()
    throw new SessionError('session-owned', readOnlyReason)
  }

  /** A session that another process writes can be watched; a command takes it over when that process has ended. */
  async #openOrWatch(sessionId: string): Promise<SessionDriver> {
    const { store, clock } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#openDriver(sessionId)
      } catch (error) {
        if (!isOwned(error) || attempt === maxAttempts) throw error
        // Its owner may end between the two: then it can be opened after all.
        const watched = await WatchedDriver.open(sessionId, { store, clock })
        if (watched) return watched
      }
    }
  }

  /** The sent lines are no longer valid: all clients reconnect, and start with a snapshot. */
  async #closeBroken(sessionId: string): Promise<void> {
    const entry = this.#entries.get(sessionId)
    if (!entry) return
    await this.#close(sessionId, entry, (live) => live.close(closeCodes.restart, 'the log was changed')).catch(
      (error: unknown) => this.#options.onProblem({ sessionId, error }),
    )
  }

  /** Removed from the list at once; its driver may take longer. */
  async #close(sessionId: string, entry: Entry, end: (live: LiveSession) => Promise<void>): Promise<void> {
    this.#forget(sessionId, entry)
    const before = this.#leaving.get(sessionId)
    const left = (async (): Promise<void> => {
      await before
      const live = await entry.live.catch(() => undefined)
      if (live) await end(live)
    })()
    const leaving = left
      .catch(() => undefined)
      .then(() => {
        if (this.#leaving.get(sessionId) === leaving) this.#leaving.delete(sessionId)
      })
    this.#leaving.set(sessionId, leaving)
    await left
  }

  #forget(sessionId: string, entry: Entry): void {
    if (this.#entries.get(sessionId) === entry) this.#entries.delete(sessionId)
  }

  #tell(sessionId: string): void {
    this.#listeners.notify(sessionId)
  }

  /** Closes the least recently used idle session. */
  async #makeRoom(): Promise<void> {
    const now = this.#options.clock.now()
    const [longest] = [...this.#entries]
      .filter(([, { opened, usedAt }]) => opened?.isIdle && now - usedAt >= graceMs)
      .sort(([, left], [, right]) => left.usedAt - right.usedAt)
    if (!longest) {
      throw new RequestProblem(
        503,
        'too-many-sessions',
        `The limit of ${this.#options.maxLive} live sessions is reached. Close one, then try again.`,
        {
          retry_after_ms: graceMs,
        },
      )
    }
    await this.#closeQuietly(...longest)
  }

  async #closeIdle(): Promise<void> {
    const { clock, idleMs } = this.#options
    const { signal } = this.#closing
    for (;;) {
      const isOver = await clock.wait(Math.max(1000, idleMs / 10), signal).then(
        () => false,
        () => true,
      )
      if (isOver) return
      for (const [id, entry] of this.#entries) {
        if (!entry.opened?.isIdle) entry.usedAt = clock.now()
        else if (clock.now() - entry.usedAt >= idleMs) await this.#closeQuietly(id, entry)
      }
    }
  }

  async #closeQuietly(sessionId: string, entry: Entry): Promise<void> {
    await this.#close(sessionId, entry, (live) => live.close(1001, 'idle')).catch((error: unknown) =>
      this.#options.onProblem({ sessionId, error }),
    )
  }
}

const maxAttempts = 3

/** Line types that change the list row of a session. */
const listed: ReadonlySet<string> = new Set<Line['type']>([
  'message',
  'session_info',
  'run_start',
  'run_end',
  'permission_request',
  'permission_result',
  'submission',
  'session_end',
])

/** Client names that the server itself writes into logs. */
const reserved: ReadonlySet<string> = new Set(['rest', 'server', 'task'])
/** Beyond this, a token gives up its least recently used ids. */
const maxPerToken = 1000

/**
 * Client ids belong to the token that uses them first, until it is revoked or the server restarts. Logs name
 * clients by them, so the node that owns a session decides for clients of all nodes.
 */
export class ClientIds {
  readonly #owners = new Map<string, string>()
  /** Ordered by last use. */
  readonly #byToken = new Map<string, Set<string>>()

  /** Throws `client-id-taken` if the id belongs to another token or to the server. */
  claim(clientId: string, tokenId: string): void {
    const owner = this.#owners.get(clientId)
    if (reserved.has(clientId) || (owner !== undefined && owner !== tokenId)) {
      const detail = `The client id ${clientId} belongs to another token. Choose another one.`
      throw new RequestProblem(403, 'client-id-taken', detail)
    }
    const own = this.#byToken.get(tokenId) ?? new Set()
    own.delete(clientId)
    this.#byToken.set(tokenId, own.add(clientId))
    this.#owners.set(clientId, tokenId)
    const [oldest] = own
    if (own.size > maxPerToken && oldest !== undefined) {
      own.delete(oldest)
      this.#owners.delete(oldest)
    }
  }

  /** As `claim`, for a command from another node, which may also come from the server there. */
  claimFromNode(clientId: string, tokenId: string): void {
    if (!reserved.has(clientId)) this.claim(clientId, tokenId)
  }

  /** Releases the ids of a revoked token. */
  release(tokenId: string): void {
    for (const clientId of this.#byToken.get(tokenId) ?? []) this.#owners.delete(clientId)
    this.#byToken.delete(tokenId)
  }
}
