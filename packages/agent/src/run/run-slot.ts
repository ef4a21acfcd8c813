import { SessionError, type Cause, type Session } from '@tapetree/session'
import type { EntryDraft } from '@tapetree/session/format'
import { Requests } from '../permissions/requests.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import { SessionSuspended } from '../tools/tool.ts'
import { nextWaiting, OwnerLeft } from './delivery.ts'
import type { AgentEvent } from './events.ts'
import type { CurrentRun, OpenRun } from './open-run.ts'
import { run, type RunStart } from './run.ts'
import type { RunDeps } from './run-deps.ts'
import { BackgroundCompaction } from '../summary/background-compaction.ts'
import type { RunEnd, RunSettings } from './run-settings.ts'

/** A run whose `run_start` is in the log. */
export interface Run {
  readonly id: string
  /** Resolves when no queued message may be delivered, with the end of the last run. */
  readonly done: Promise<RunEnd>
}

interface RunSlotOptions {
  session: Session
  deps: () => RunDeps
  observe: (event: AgentEvent) => void
}

/**
 * The run slot of a session, as one of its owners sees it. A session has at most one run at a time: all agent sessions on it in this
 * process share the slot. A run uses the model, the tools and the gate of the owner that started it, and ends when that owner closes.
 */
export class RunSlot {
  readonly session: Session
  readonly observe: (event: AgentEvent) => void
  readonly #deps: () => RunDeps
  readonly #shared: SharedSession
  /** This owner is closing and starts nothing more. */
  hasLeft = false

  constructor({ session, deps, observe }: RunSlotOptions) {
    this.session = session
    this.observe = observe
    this.#deps = deps
    this.#shared = SharedSession.of(session)
  }

  get isBusy(): boolean {
    return this.#shared.occupant !== undefined
  }

  /** Runs `work` under the lock that all owners share, so that only one of them decides about an interrupted run. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#shared.alone(work)
  }

  /** Resolves when `run_start` is durable. Rejects with `session-busy` if the slot is occupied. `settings` are for this run only. */
  async start(start: RunStart, settings: Partial<RunSettings> = {}): Promise<Run> {
    const occupant = this.#occupy()
    const { signal } = occupant.controller
    const { promise: begun, resolve } = Promise.withResolvers<string>()
    occupant.current.begun = resolve
    occupant.current.appended = () => this.#shared.appended()
    const done = this.#hold(occupant, async () => {
      await this.#shared.appended()
      const deps = this.#deps()
      const ownDeps = { ...deps, settings: { ...deps.settings, ...settings } }
      let end = await run(start, ownDeps, signal, occupant.current)
      // A message may have arrived after the run looked at the queue, or new settings may release one.
      while (end.outcome === 'completed' && !signal.aborted && this.#hasQueued) {
        const next = run({ type: 'waiting' }, this.#deps(), signal, occupant.current)
        end = (await next.catch(unlessRemoved)) ?? end
      }
      return end
    })
    // The caller of `start` gets the error; `abort` ignores it.
    done.catch(() => undefined)
    const started = Promise.race([begun, done.then(({ runId }) => runId)]).then((id): Run => ({ id, done }))
    occupant.run = started.catch(() => undefined)
    return started
  }

  /**
   * Occupies the slot with work that must not overlap a run, such as a summary. Until it ends, prompts are queued or rejected. `abort`
   * of any owner aborts the signal, and so does closing this owner.
   */
  async exclusively<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const occupant = await this.alone(async () => this.#occupy())
    const { signal } = occupant.controller
    return this.#hold(occupant, async () => {
      signal.throwIfAborted()
      return work(signal)
    })
  }

  /** The current run of any owner. Waits for the end of an occupant that is not a run, or that is suspended. */
  async liveRun(): Promise<Run | undefined> {
    for (;;) {
      const { occupant } = this.#shared
      if (!occupant) return undefined
      const live = occupant.isSuspended ? undefined : await occupant.run
      if (this.#shared.occupant !== occupant) continue
      // If several runs follow each other, this is the one that is open now.
      if (live) return { ...live, id: this.session.openRun?.runId ?? live.id }
      await occupant.over
    }
  }

  /** Starts a run with the next queued message, if it may be delivered. If the slot is occupied, it does so later. */
  wake(): void {
    // An aborted run does not look at the queue again.
    if (this.isBusy) this.#shared.wakeLater(this)
    if (this.isBusy || this.hasLeft || !this.#hasQueued || this.session.openRun) return
    // The message may have been removed meanwhile; how the run ends is in the log.
    void this.start({ type: 'waiting' }).catch(() => undefined)
  }

  /** The head of the open run, or else the leaf. */
  get head(): string | null {
    return (this.#shared.occupant?.current.open ?? { head: this.session.leafId }).head
  }

  /** Appends to the head of the open run, or else to the leaf. */
  async append(draft: EntryDraft, cause?: Cause): Promise<void> {
    const { appends } = this.#shared
    const appended = this.#append(draft, cause)
    appends.add(appended)
    try {
      await appended
    } finally {
      appends.delete(appended)
    }
  }

  async #append(draft: EntryDraft, cause?: Cause): Promise<void> {
    const openRun = (): OpenRun | undefined => this.#shared.occupant?.current.open
    while (openRun()?.headMove) await openRun()?.headMove
    const open = openRun()
    if (open) await open.append(draft, undefined, cause)
    else await this.session.append(draft, cause && { cause })
  }

  /** Notifies every owner. */
  tell(event: AgentEvent): void {
    this.#shared.tell(event)
  }

  /** Stops the occupant of the slot, of any owner. Resolves when it has ended. */
  async abort(): Promise<void> {
    const { occupant } = this.#shared
    occupant?.controller.abort()
    await occupant?.over
  }

  /** Resolves when nothing occupies the slot. A queued message that may be delivered occupies it again at once. */
  async untilFree(): Promise<void> {
    while (this.#shared.occupant) await this.#shared.occupant.over
  }

  /** Stops what this owner has started, and nothing else. This owner starts nothing more. */
  async leave(): Promise<void> {
    this.hasLeft = true
    const own = this.#own
    own?.controller.abort(this.#shared.hasOthers(this) ? new OwnerLeft() : undefined)
    await own?.over
    // A decision of this owner about an interrupted run needs its session handle until the end.
    await this.#shared.alone(() => Promise.resolve())
  }

  /** This owner starts nothing more, and another one will resume its run. Resolves when the run has ended by itself. */
  async suspend(): Promise<void> {
    this.hasLeft = true
    const own = this.#own
    if (own) own.isSuspended = true
    if (own?.current.open) own.current.open.isLeft = true
    await own?.over
  }

  /** Call after `suspend`: stops a run that did not end by itself. */
  async stop(reason: Error): Promise<void> {
    const own = this.#own
    own?.controller.abort(reason)
    await own?.over
  }

  busy(): SessionError {
    return this.#shared.busy()
  }

  get #own(): Occupant | undefined {
    const { occupant } = this.#shared
    return occupant?.owner === this ? occupant : undefined
  }

  /** Takes the slot at once, or throws. */
  #occupy(): Occupant {
    if (this.hasLeft) throw new SessionError('session-closed', `Session ${this.session.id} is closed.`)
    if (this.isBusy) throw this.busy()
    const occupant = new Occupant(this)
    this.#shared.occupant = occupant
    return occupant
  }

  /**
   * Work stops at once if another process has taken the session over: nothing of it could be recorded. Commands continue, because
   * that process attaches to them.
   */
  async #hold<T>(occupant: Occupant, work: () => Promise<T>): Promise<T> {
    const stop = this.session.onStorageChange(({ type }) => {
      if (type === 'lost') occupant.controller.abort(new SessionSuspended())
    })
    try {
      return await work()
    } finally {
      stop()
      this.#shared.free(occupant)
    }
  }

  get #hasQueued(): boolean {
    return nextWaiting(this.session, this.#deps().settings) !== undefined
  }
}

/** The message was held or removed before it could be delivered. */
function unlessRemoved(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'message-not-found') return undefined
  throw error
}

/** What occupies the slot: a run, or a summary that a user asked for. */
class Occupant {
  readonly owner: RunSlot
  readonly controller = new AbortController()
  /** Resolves when the slot is free again; never rejects. */
  readonly over: Promise<void>
  readonly end: () => void
  /** Of a run: resolves when `run_start` is durable, with undefined if the run failed before. */
  run: Promise<Run | undefined> | undefined
  /** Its `open` is set while a run occupies the slot. */
  readonly current: CurrentRun = {}
  /** Its owner is closing and leaves the run to be resumed. */
  isSuspended = false

  constructor(owner: RunSlot) {
    this.owner = owner
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    this.end = resolve
  }
}

/**
 * What all agent sessions on one session share in this process: one slot for a run, one lock for deciding about it, one set of
 * permission requests, one set of jobs. The writer lock of the store keeps other processes out.
 */
export class SharedSession {
  static readonly #all = new WeakMap<object, SharedSession>()
  occupant: Occupant | undefined
  /** Entries from outside of runs that are not durable yet. */
  readonly appends = new Set<Promise<unknown>>()
  readonly #id: string
  readonly #owners = new Set<RunSlot>()
  #requests: Requests | undefined
  #jobs: Jobs | undefined
  #lock: Promise<unknown> = Promise.resolve()
  /** Queued a message while the slot was occupied. */
  #woken: RunSlot | undefined

  private constructor(id: string) {
    this.#id = id
  }

  static of({ id, sharedKey }: Session): SharedSession {
    const known = SharedSession.#all.get(sharedKey)
    if (known) return known
    const shared = new SharedSession(id)
    SharedSession.#all.set(sharedKey, shared)
    return shared
  }

  /** For an owner that is about to join. The requests use the session handle of one of the owners. */
  requestsFor(session: Session): Requests {
    if (this.#requests && this.#owners.size > 0) return this.#requests
    this.#requests?.close()
    this.#requests = new Requests(session)
    return this.#requests
  }

  /** Undefined if there is no owner. */
  get requests(): Requests | undefined {
    return this.#owners.size > 0 ? this.#requests : undefined
  }

  /** The summary that is made while runs go on. */
  readonly background = new BackgroundCompaction()

  get jobs(): Jobs {
    this.#jobs ??= new Jobs()
    return this.#jobs
  }

  join(owner: RunSlot): void {
    this.#owners.add(owner)
  }

  hasOthers(owner: RunSlot): boolean {
    return [...this.#owners].some((each) => each !== owner && !each.hasLeft)
  }

  /** Call before the session handle of this owner is closed. The last owner must then close the jobs. */
  leave(owner: RunSlot): { isLast: boolean } {
    this.#owners.delete(owner)
    const [next] = this.#owners
    if (next) {
      this.#requests?.moveTo(next.session)
      return { isLast: false }
    }
    this.#requests?.close()
    this.#requests = undefined
    return { isLast: true }
  }

  async closeJobs(): Promise<void> {
    const jobs = this.#jobs
    this.#jobs = undefined
    await jobs?.close()
  }

  /** Runs `work` under a lock: an owner that decides about an interrupted run is done before another one decides. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#lock.then(work)
    this.#lock = done.catch(() => undefined)
    return done
  }

  /** Resolves when entries from outside of runs are durable: a run begins behind them. */
  async appended(): Promise<void> {
    while (this.appends.size > 0) await Promise.allSettled(this.appends)
  }

  tell(event: AgentEvent): void {
    for (const owner of this.#owners) owner.observe(event)
  }

  /** Remembers to wake this owner when the slot is free. */
  wakeLater(owner: RunSlot): void {
    this.#woken = owner
  }

  /** Frees the slot and wakes the owner that queued a message meanwhile, or another owner if that one has left. */
  free(occupant: Occupant): void {
    this.occupant = undefined
    occupant.end()
    this.tell({ type: 'agent_idle' })
    const woken = this.#woken
    this.#woken = undefined
    const wasLeft = occupant.controller.signal.reason instanceof OwnerLeft
    if (!woken && !wasLeft) return
    const open = [...this.#owners].filter(({ hasLeft }) => !hasLeft)
    const next = woken && open.includes(woken) ? woken : open[0]
    next?.wake()
  }

  busy(): SessionError {
    const what = this.occupant && !this.occupant.run ? 'a summary' : 'a run'
    return new SessionError('session-busy', `Session ${this.#id} is busy with ${what}.`)
  }
}
