import { SessionError, newId } from '@tapetree/session'
import type { Transcript } from '@tapetree/session/view'
import { setTimeout as wait } from 'node:timers/promises'
import type { OpenedSession, SessionAccess } from '../session-source.ts'
import {
  ProblemError,
  SessionCommands,
  type ClosedReason,
  type ConnectionStatus,
  type PresenceNews,
  type RunOptions,
  type SessionChange,
  type SessionHandle,
  type StateValues,
} from '@tapetree/client'
import { stateKeys, type Arguments, type Operation, type StateKey } from '@tapetree/client/protocol'
import { Listeners } from '@tapetree/session/util/listeners'

export interface FollowOptions {
  /** Opens the session wherever it is now. */
  reopen: () => Promise<OpenedSession>
  signal: AbortSignal
}

export interface FollowedSession {
  opened: OpenedSession
  /** Resolves when the session needs no more watching: it is owned here, closed or gone. */
  done: Promise<void>
}

/** How often to check for a change of owner. */
const lookMs = 2000

/** A session of another process. When that process exits, continues here or with the next owner. */
export function followOwner(first: OpenedSession, options: FollowOptions): FollowedSession {
  const moving = new MovingSession(first.handle)
  let { access } = first
  const done = stayWithSession(moving, { ...options, access: () => access, moved: (to) => (access = to) })
  const opened = {
    handle: moving,
    cwd: first.cwd,
    get access() {
      return access
    },
  }
  return { opened, done }
}

interface Following extends FollowOptions {
  access: () => SessionAccess
  moved: (to: SessionAccess) => void
}

async function stayWithSession(moving: MovingSession, { reopen, signal, access, moved }: Following): Promise<void> {
  while (!moving.isClosed && !signal.aborted && access().type !== 'owner') {
    await nextLook(moving, signal)
    const { status } = moving
    // Its owner has archived or deleted it: no one reopens it.
    if (status.type === 'closed' && status.reason === 'gone') return moving.end('gone')
    const isFine = access().type === 'attached' && status.type === 'attached'
    if (isFine || moving.isClosed || signal.aborted) continue
    const place = await reopen().catch((error: unknown) => {
      if (error instanceof SessionError && error.code === 'session-not-found') return 'gone' as const
      return undefined // the next attempt may succeed
    })
    if (!place) continue
    if (place === 'gone') return moving.end('gone')
    if (place.access.type === 'read-only') {
      await place.handle.close()
      continue
    }
    moved(place.access)
    await moving.moveTo(place.handle)
  }
  if (signal.aborted) await moving.close()
  else moving.stay()
}

/** After the interval, or as soon as the connection is cut. */
async function nextLook(moving: MovingSession, signal: AbortSignal): Promise<void> {
  const cut = new AbortController()
  const stop = moving.subscribe(({ type }) => {
    if (type === 'status' && ['waiting', 'closed'].includes(moving.status.type)) cut.abort()
  })
  await wait(lookMs, undefined, { ref: false, signal: AbortSignal.any([cut.signal, signal]) }).catch(() => undefined)
  stop()
}

/** One session for a screen, wherever it runs: at its owner, and here once the owner has exited. */
export class MovingSession extends SessionCommands implements SessionHandle {
  readonly sessionId: string
  /** Reports an error thrown by the screen; the session continues. */
  readonly #listeners = new Listeners<SessionChange>((error) => process.emitWarning(error as Error))
  #current: SessionHandle
  #stop: () => void
  #presence: PresenceNews | undefined
  /** Set when the session is over for the screen, whatever the handle says. */
  #ended: ClosedReason | undefined
  /** Set while the session is being reopened elsewhere. */
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

  override get pending(): SessionHandle['pending'] {
    return this.#current.pending
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

  /** If the owner exits before it answers, the next owner receives the command under the same id, so that it is not executed twice. */
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

  /** Switches the screen to this handle and resends unanswered commands. */
  async moveTo(next: SessionHandle): Promise<void> {
    if (this.isClosed) return next.close()
    const before = this.#current
    this.#stop()
    this.#current = next
    this.#stop = next.subscribe((change) => this.#tell(change))
    if (this.#presence) next.present(this.#presence)
    this.#moved.resolve()
    this.#moved = Promise.withResolvers<void>()
    // Before any notification, so that earlier commands keep their order.
    const closed = before.close()
    this.#tell({ type: 'status' })
    this.#tell({ type: 'transcript' })
    for (const key of stateKeys) this.#tell({ type: 'state', key })
    await closed
  }

  /** Stops looking for another owner. */
  stay(): void {
    this.#mayMove = false
    this.#moved.resolve()
  }

  /** The session is over: rejects unanswered commands. */
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

/** Whether the outcome is unknown or the command was never started. */
function isUnanswered(error: unknown): boolean {
  return error instanceof ProblemError && (error.type === 'closed' || error.type === 'shutting-down')
}
