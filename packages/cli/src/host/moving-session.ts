import {
  ProblemError,
  SessionCommands,
  stateKeys,
  type Arguments,
  type ClosedReason,
  type ConnectionStatus,
  type Operation,
  type PresenceNews,
  type RunOptions,
  type SessionChange,
  type SessionHandle,
  type StateKey,
  type StateValues,
} from '@tapetree/client'
import { newId, type Transcript } from '@tapetree/session'
import { Listeners } from '@tapetree/session/util/listeners'

/** One session for a screen, wherever it is just now: at its owner, and here when that one has gone. */
export class MovingSession extends SessionCommands implements SessionHandle {
  readonly sessionId: string
  /** A screen that throws is reported, and the session goes on. */
  readonly #listeners = new Listeners<SessionChange>((error) => process.emitWarning(error as Error))
  #current: SessionHandle
  #stop: () => void
  #presence: PresenceNews | undefined
  /** Set where it is over for the screen, whatever the handle says. */
  #ended: ClosedReason | undefined
  /** While somebody looks for the next place of it. */
  #mayMove = true
  #moved = Promise.withResolvers<void>()

  constructor(first: SessionHandle) {
    super()
    this.sessionId = first.sessionId
    this.#current = first
    this.#stop = first.subscribe((change) => this.#tell(change))
  }

  get transcript(): Transcript {
    return this.#current.transcript
  }

  get status(): ConnectionStatus {
    return this.#ended === undefined ? this.#current.status : { type: 'closed', reason: this.#ended }
  }

  get isClosed(): boolean {
    return this.#ended !== undefined
  }

  state<Key extends StateKey>(key: Key): StateValues[Key] | undefined {
    return this.#current.state(key)
  }

  subscribe(listener: (change: SessionChange) => void): () => void {
    return this.#listeners.add(listener)
  }

  /**
   * What its owner has not answered when it ends is given to the next one, under the same id: where the first one did it after all, it
   * is not done again.
   */
  async run<Op extends Operation>(op: Op, args: Arguments<Op>, options: RunOptions = {}): Promise<unknown> {
    const id = options.id ?? newId()
    for (;;) {
      const place = this.#current
      try {
        return await place.run(op, args, { ...options, id })
      } catch (error) {
        if (!isUnanswered(error)) throw error
        if (place === this.#current && this.#mayMove) await this.#moved.promise
        if (place === this.#current || this.isClosed) throw error
      }
    }
  }

  async loadOlder(count?: number): Promise<boolean> {
    return this.#current.loadOlder(count)
  }

  forgetOlder(keep: number): void {
    this.#current.forgetOlder(keep)
  }

  present(presence: PresenceNews): void {
    this.#presence = presence
    this.#current.present(presence)
  }

  /** The screen goes on with this one. What the one before has not answered is given to it. */
  async moveTo(next: SessionHandle): Promise<void> {
    if (this.isClosed) return next.close()
    const before = this.#current
    this.#stop()
    this.#current = next
    this.#stop = next.subscribe((change) => this.#tell(change))
    if (this.#presence) next.present(this.#presence)
    this.#moved.resolve()
    this.#moved = Promise.withResolvers<void>()
    // Before anybody is told: what was asked for earlier comes first.
    const closed = before.close()
    this.#tell({ type: 'status' })
    this.#tell({ type: 'transcript' })
    for (const key of stateKeys) this.#tell({ type: 'state', key })
    await closed
  }

  /** Nobody looks for another place of it any more. */
  stay(): void {
    this.#mayMove = false
    this.#moved.resolve()
  }

  /** It is over: what has no answer is rejected. */
  async end(reason: ClosedReason): Promise<void> {
    if (this.isClosed) return
    this.#ended = reason
    this.stay()
    this.#stop()
    this.#tell({ type: 'status' })
    await this.#current.close()
  }

  async close(): Promise<void> {
    await this.end('closed')
  }

  #tell(change: SessionChange): void {
    this.#listeners.notify(change)
  }
}

/** Whether nobody knows what came of it, or nobody began with it. */
function isUnanswered(error: unknown): boolean {
  return error instanceof ProblemError && (error.type === 'closed' || error.type === 'shutting-down')
}
