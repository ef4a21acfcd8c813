import { SessionError, type Cause, type EntryDraft, type Session } from '@tapetree/session'
import type { RunEnd } from './loop-context.ts'
import { Requests } from '../permissions/requests.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import type { AgentEvent } from './events.ts'

/** A run that has begun: its id is in the log. */
export interface Run {
  readonly id: string
  /** Resolves when nothing more is to be delivered, with how the last run ended. */
  readonly done: Promise<RunEnd>
}

/** Appends on the head of a run. */
export interface Head {
  append(draft: EntryDraft, request?: undefined, cause?: Cause): Promise<void>
}

/** An agent session that has the session open. */
export interface Owner {
  readonly session: Session
  /** It is closing, and starts nothing any more. */
  readonly hasLeft: boolean
  observe(event: AgentEvent): void
  /** Starts a run with the next queued message, if one may go out. */
  wake(): void
}

/** What occupies the slot: a run, or a summary that a user asked for. */
export class Occupant {
  readonly owner: Owner
  readonly controller = new AbortController()
  /** Resolves when the slot is free again; never rejects. */
  readonly over: Promise<void>
  readonly end: () => void
  /** Of a run: resolves when it is in the log, with undefined if it never got there. */
  run: Promise<Run | undefined> | undefined
  /** Of a run that has begun. */
  head: Head | undefined
  /** Its owner leaves it to be resumed: it only has to come to its end. */
  isSuspended = false

  constructor(owner: Owner) {
    this.owner = owner
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    this.end = resolve
  }
}

/** The reason for stopping a run whose owner closes while other agent sessions have the session open. */
export class OwnerLeft extends Error {
  override readonly name = 'OwnerLeft'

  constructor() {
    super('The agent session that started this run was closed.')
  }
}

/**
 * What all agent sessions on one session share in this process: one slot for a run, one lock for deciding about it, one set of
 * permission requests, one set of jobs. The writer lock of the store keeps other processes out.
 */
export class SharedSession {
  static readonly #all = new WeakMap<object, SharedSession>()
  occupant: Occupant | undefined
  /** Appends to the leaf that are not durable yet. A run begins behind them. */
  readonly appends = new Set<Promise<unknown>>()
  readonly #id: string
  readonly #owners = new Set<Owner>()
  #requests: Requests | undefined
  #jobs: Jobs | undefined
  #lock: Promise<unknown> = Promise.resolve()
  /** Queued a message while the slot was occupied. */
  #woken: Owner | undefined

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

  /** For an owner that is about to join. They go through a handle of one of the owners. */
  requestsFor(session: Session): Requests {
    if (this.#requests && this.#owners.size > 0) return this.#requests
    this.#requests?.close()
    this.#requests = new Requests(session)
    return this.#requests
  }

  /** Those of the owners; undefined if there is none. */
  get requests(): Requests | undefined {
    return this.#owners.size > 0 ? this.#requests : undefined
  }

  get jobs(): Jobs {
    this.#jobs ??= new Jobs()
    return this.#jobs
  }

  join(owner: Owner): void {
    this.#owners.add(owner)
  }

  hasOthers(owner: Owner): boolean {
    return [...this.#owners].some((each) => each !== owner && !each.hasLeft)
  }

  /** Call before the handle of this owner is closed. The last one to leave ends what nobody could find again. */
  leave(owner: Owner): { isLast: boolean } {
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

  /** One at a time: what is done about an interrupted run is done before another owner decides about it. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#lock.then(work)
    this.#lock = done.catch(() => undefined)
    return done
  }

  tell(event: AgentEvent): void {
    for (const owner of this.#owners) owner.observe(event)
  }

  /** Remembers who wants queued messages to go out when the slot is free. */
  wakeLater(owner: Owner): void {
    this.#woken = owner
  }

  /** Frees the slot; whoever queued a message meanwhile delivers it, or any other owner if that one has left. */
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
