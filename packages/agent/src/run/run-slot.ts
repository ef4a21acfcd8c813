import { SessionError, type Cause, type EntryDraft, type Session } from '@tapetree/session'
import type { RunEnd } from './loop-context.ts'
import type { AgentEvent } from './events.ts'
import type { AgentParts } from './agent-parts.ts'
import { nextWaiting } from './next-waiting.ts'
import { run, type RunStart } from './run.ts'
import { Occupant, OwnerLeft, SharedSession, type Head, type Owner, type Run } from './shared-session.ts'

export interface RunSlotOptions {
  session: Session
  parts: () => AgentParts
  observe: (event: AgentEvent) => void
}

/**
 * The one run that a session may have at a time, as one of its owners sees it. All agent sessions on a session in this process have
 * the same slot: a run has the model, the tools and the gate of the owner that started it, and ends with that owner at the latest.
 */
export class RunSlot implements Owner {
  readonly session: Session
  readonly observe: (event: AgentEvent) => void
  readonly #parts: () => AgentParts
  readonly #shared: SharedSession
  /** It starts nothing any more. */
  hasLeft = false

  constructor({ session, parts, observe }: RunSlotOptions) {
    this.session = session
    this.observe = observe
    this.#parts = parts
    this.#shared = SharedSession.of(session)
  }

  get isBusy(): boolean {
    return this.#shared.occupant !== undefined
  }

  /** One at a time, of all owners: what is done about an interrupted run is done before anybody else decides about it. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#shared.alone(work)
  }

  /** Resolves when the run is in the log. Rejects with `session-busy` if the slot is occupied. */
  async start(start: RunStart): Promise<Run> {
    const occupant = this.#occupy()
    const begun = Promise.withResolvers<string>()
    const done = this.#hold(occupant, async () => {
      const stop = this.session.subscribe(({ line }) => {
        if (line.type === 'run_start') begun.resolve(line.runStart.runId)
      })
      return this.#work(start, occupant).finally(stop)
    })
    // The caller hears of a failure; whoever aborts the run need not.
    done.catch(() => undefined)
    const run = Promise.race([begun.promise, done.then(({ runId }) => runId)]).then((id): Run => ({ id, done }))
    occupant.run = run.catch(() => undefined)
    return run
  }

  /**
   * Does something else that must not meet a run, such as writing a summary: until it is over, prompts are queued or rejected. The
   * signal is aborted when anybody stops what goes on, or this owner leaves.
   */
  async exclusively<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const occupant = await this.alone(async () => this.#occupy())
    const { signal } = occupant.controller
    return this.#hold(occupant, async () => {
      signal.throwIfAborted()
      return work(signal)
    })
  }

  /** The run that goes on, whoever started it. Waits for the end of what is no run, or is only coming to its end. */
  async liveRun(): Promise<Run | undefined> {
    for (;;) {
      const { occupant } = this.#shared
      if (!occupant) return undefined
      const live = occupant.isSuspended ? undefined : await occupant.run
      if (this.#shared.occupant !== occupant) continue
      // Of several runs in a row it is the one that is open now.
      if (live) return { ...live, id: this.session.openRun?.runId ?? live.id }
      await occupant.over
    }
  }

  /** Starts with the next queued message, if the slot is free and it may go out. */
  wake(): void {
    // A run that is about to end does not look again if it was stopped.
    if (this.isBusy) this.#shared.wakeLater(this)
    if (this.isBusy || this.hasLeft || !this.#hasWaiting || this.session.openRun) return
    // Somebody may have taken it back just now; how the run ends is in the log.
    void this.start({ type: 'waiting' }).catch(() => undefined)
  }

  /** Appends where the conversation stands, also while a run goes on. */
  async append(draft: EntryDraft, cause?: Cause): Promise<void> {
    const head = this.#shared.occupant?.head
    if (head) return head.append(draft, undefined, cause)
    const { appends } = this.#shared
    const appended = this.session.append(draft, cause && { cause })
    appends.add(appended)
    try {
      await appended
    } finally {
      appends.delete(appended)
    }
  }

  /** Tells every owner. */
  tell(event: AgentEvent): void {
    this.#shared.tell(event)
  }

  /** Stops what goes on, whoever started it. Resolves when it has ended. */
  async abort(): Promise<void> {
    const { occupant } = this.#shared
    occupant?.controller.abort()
    await occupant?.over
  }

  /** Stops what this owner has started, and nothing else. From now on it starts nothing. */
  async leave(): Promise<void> {
    this.hasLeft = true
    const own = this.#own
    own?.controller.abort(this.#shared.hasOthers(this) ? new OwnerLeft() : undefined)
    await own?.over
    // What this owner was deciding about an interrupted run needs its handle until it is over.
    await this.#shared.alone(() => Promise.resolve())
  }

  /** From now on this owner starts nothing, and its run is to be resumed by somebody else. Resolves when that has ended. */
  async suspend(): Promise<void> {
    this.hasLeft = true
    const own = this.#own
    if (own) own.isSuspended = true
    await own?.over
  }

  /** After `suspend`: stops what did not end by itself. */
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

  async #hold<T>(occupant: Occupant, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      this.#shared.free(occupant)
    }
  }

  async #work(start: RunStart, occupant: Occupant): Promise<RunEnd> {
    const { appends } = this.#shared
    while (appends.size > 0) await Promise.allSettled(appends)
    let end = await this.#run(start, occupant)
    // What came in after the run had looked for the last time.
    while (this.#hasWaiting && end.outcome === 'completed' && !occupant.controller.signal.aborted) {
      const waiting = await this.#run({ type: 'waiting' }, occupant).catch(unlessTakenBack)
      end = waiting ?? end
    }
    return end
  }

  #run(start: RunStart, occupant: Occupant): Promise<RunEnd> {
    const onRun = (head: Head): void => void (occupant.head = head)
    return run(start, { ...this.#parts(), onRun }, occupant.controller.signal)
  }

  get #hasWaiting(): boolean {
    return nextWaiting(this.session, this.#parts().settings) !== undefined
  }
}

function unlessTakenBack(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'message-not-found') return undefined
  throw error
}
