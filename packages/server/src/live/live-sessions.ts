import { systemClock, type Clock } from '@tapetree/agent'
import { closeCodes } from '@tapetree/client'
import { SessionError, type CreateOptions, type SessionStore } from '@tapetree/session'
import { Listeners } from '@tapetree/session/util/listeners'
import { emitWarning } from '../util/emit-warning.ts'
import { ClientIds } from './client-ids.ts'
import type { SessionDriver } from './driver.ts'
import { LiveSession } from './live-session.ts'
import { RequestProblem } from '../util/problem-error.ts'
import { isOwned, WatchedDriver } from './watched-driver.ts'

/** What a new session is made with. */
export interface NewSession extends CreateOptions {
  model?: { provider: string; modelId: string }
  agent?: string
}

export interface LiveSessionsOptions {
  store: SessionStore
  /** Opens what runs a session that exists. */
  openDriver: (sessionId: string) => Promise<SessionDriver>
  /** Makes a session and gives its id. */
  create: (options: NewSession) => Promise<string>
  /** How many may be live at once. */
  maxLive?: number
  /** One that nobody watches and that does nothing is closed after this long. */
  idleMs?: number
  /** How often text in flight is handed over. */
  tickMs?: number
  clock?: Clock
  /** Told of each session that becomes live, as for metrics and traces; what it gives back is called when that session is closed. */
  observers?: readonly ((live: LiveSession) => () => void)[]
  /** What went wrong where nobody waits for an answer, such as when an idle session was closed. */
  onProblem?: (problem: { sessionId: string; error: unknown }) => void
}

interface Entry {
  live: Promise<LiveSession>
  /** Set when it is open. */
  opened?: LiveSession
  /** When it was last asked for, or seen at work. */
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

/** Who has just asked for a session is about to use it: it is not closed to make room. */
const graceMs = 1000

/** The sessions of one tenant that run, or that somebody looks at. What is not here is only in the store. */
export class LiveSessions {
  readonly store: SessionStore
  readonly clientIds = new ClientIds()
  readonly #options: Required<LiveSessionsOptions>
  readonly #entries = new Map<string, Entry>()
  /** Those on their way out: who asks for one waits, and gets a new one. */
  readonly #leaving = new Map<string, Promise<void>>()
  readonly #closing = new AbortController()
  readonly #listeners = new Listeners<string>(emitWarning)

  constructor(options: LiveSessionsOptions) {
    this.store = options.store
    this.#options = { ...defaults, ...options }
    void this.#closeIdle()
  }

  get live(): ReadonlyMap<string, Promise<LiveSession>> {
    return new Map([...this.#entries].map(([id, { live }]) => [id, live]))
  }

  /** Those that are open, without waiting for the ones that are being opened. */
  get opened(): LiveSession[] {
    return [...this.#entries.values()].flatMap(({ opened }) => opened ?? [])
  }

  /** Whether one more could be opened only if somebody left. */
  get isFull(): boolean {
    return this.#entries.size >= this.#options.maxLive
  }

  async create(options: NewSession): Promise<string> {
    const id = await this.#options.create(options)
    this.#tell(id)
    return id
  }

  /** The live session of this id; opened where it is not live yet. Rejects with `session-not-found`. */
  get(sessionId: string): Promise<LiveSession> {
    if (this.#closing.signal.aborted) {
      return Promise.reject(new RequestProblem(503, 'shutting-down', 'The server is going down.'))
    }
    const usedAt = this.#options.clock.now()
    const known = this.#entries.get(sessionId)
    if (known) {
      known.usedAt = usedAt
      return known.live
    }
    // Known before anything is awaited: whoever asks next gets the same one.
    const hasRoom = !this.isFull
    const entry: Entry = { live: this.#open(sessionId, hasRoom), usedAt }
    this.#entries.set(sessionId, entry)
    entry.live.then(
      (opened) => (entry.opened = opened),
      () => this.#forget(sessionId, entry),
    )
    return entry.live
  }

  /** The session if it is live, and nothing is opened where it is not. */
  async peek(sessionId: string): Promise<LiveSession | undefined> {
    return this.#entries.get(sessionId)?.live.catch(() => undefined)
  }

  /** For whoever changes the store beside a live session, such as by moving one to the trash. */
  changed(sessionId: string): void {
    this.#tell(sessionId)
  }

  /** Calls back when something about a session has changed that a list shows. */
  onChange(listener: (sessionId: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Closes one, as before it is deleted. */
  async release(sessionId: string): Promise<void> {
    const entry = this.#entries.get(sessionId)
    if (entry) await this.#close(sessionId, entry, (live) => live.close(4404, 'the session is gone'))
    else await this.#leaving.get(sessionId)
  }

  /** For a process that ends: runs stay open, and the next process can go on with them. */
  async close(): Promise<void> {
    this.#closing.abort()
    const all = [...this.#entries].map(([id, entry]) => this.#close(id, entry, (live) => live.suspend()))
    const ended = await Promise.allSettled([...all, ...this.#leaving.values()])
    for (const end of ended) if (end.status === 'rejected') throw end.reason
  }

  async #open(sessionId: string, hasRoom: boolean): Promise<LiveSession> {
    if (!hasRoom) await this.#makeRoom()
    await this.#leaving.get(sessionId)
    const { clock, tickMs } = this.#options
    const driver = await this.#openOrWatch(sessionId)
    const live = await LiveSession.open(driver, {
      clock,
      tickMs,
      claim: () => this.#openDriver(sessionId),
      onClaimed: (claimed) => this.#observe(claimed),
      onBroken: () => void this.#closeBroken(sessionId),
    }).catch(async (error: unknown) => {
      await driver.close()
      throw error
    })
    live.onLine(({ type }) => {
      if (listed.has(type)) this.#tell(sessionId)
    })
    if (!live.isWatched) this.#observe(live)
    return live
  }

  #observe(live: LiveSession): void {
    for (const observe of this.#options.observers) live.onClose(observe(live))
  }

  async #openDriver(sessionId: string): Promise<SessionDriver> {
    const driver = await this.#options.openDriver(sessionId)
    const { readOnlyReason } = driver.session
    if (readOnlyReason === undefined) return driver
    await driver.close()
    throw new SessionError('session-owned', readOnlyReason)
  }

  /** A session that another process writes can be watched; a command takes it over when that process has gone. */
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

  /** What was told of its log does not hold any more: everybody comes back, and begins with a snapshot. */
  async #closeBroken(sessionId: string): Promise<void> {
    const entry = this.#entries.get(sessionId)
    if (!entry) return
    await this.#close(sessionId, entry, (live) => live.close(closeCodes.restart, 'the log was changed')).catch(
      (error: unknown) => this.#options.onProblem({ sessionId, error }),
    )
  }

  /** It is gone for everybody at once; its driver may take its time. */
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

  /** The one that nobody has wanted for longest goes. */
  async #makeRoom(): Promise<void> {
    const now = this.#options.clock.now()
    const [longest] = [...this.#entries]
      .filter(([, { opened, usedAt }]) => opened?.isIdle && now - usedAt >= graceMs)
      .sort(([, left], [, right]) => left.usedAt - right.usedAt)
    if (!longest) {
      throw new RequestProblem(503, 'too-many-sessions', `${this.#options.maxLive} sessions are live already.`, {
        retry_after_ms: graceMs,
      })
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

/** Lines that change what a list shows of a session. */
const listed = new Set([
  'message',
  'session_info',
  'run_start',
  'run_end',
  'permission_request',
  'permission_result',
  'submission',
  'session_end',
])
