import type { DiskLine } from '@tapetree/session/format'
import type { Transcript } from '@tapetree/session/view'
import { Listeners } from '@tapetree/session/util/listeners'
import type { Cursor, ServerFrame } from './protocol/frames.ts'
import type { EventPage } from './protocol/rest.ts'
import type { StateKey } from './protocol/state-values.ts'
import { readOlder, Replica } from './replica.ts'
import { SessionCommands } from './session-commands.ts'
import type { ConnectionStatus, SessionChange } from './session-handle.ts'
import type { StateValues } from './state-values.ts'

/** Frames that change the replica or are passed on; the other frames concern the connection. */
export type ReplicaFrame = Exclude<ServerFrame, { type: 'attached' | 'ack' | 'pong' | 'gone' | 'bye' }>

/**
 * What the session handles with a `Replica` share. A subclass connects: it passes on what it receives, and sends
 * commands in `run`.
 */
export abstract class ReplicaSession extends SessionCommands {
  protected readonly replica = new Replica()
  readonly #listeners: Listeners<SessionChange>
  #status: ConnectionStatus = { type: 'connecting' }

  /** `onProblem` is called when a listener throws. */
  constructor(onProblem?: (error: unknown) => void) {
    super()
    this.#listeners = new Listeners(onProblem)
  }

  get transcript(): Transcript {
    return this.replica.transcript
  }

  get status(): ConnectionStatus {
    return this.#status
  }

  state<Key extends StateKey>(key: Key): StateValues[Key] | undefined {
    return this.replica.value(key)
  }

  subscribe(listener: (change: SessionChange) => void): () => void {
    return this.#listeners.add(listener)
  }

  forgetOlder(keep: number): void {
    if (this.replica.forgetOlder(keep)) this.tell({ type: 'transcript' })
  }

  /** Implements `loadOlder`. `pageBefore` reads the lines before a seq. */
  protected async prependOlder(count: number, pageBefore: (seq: number) => Promise<EventPage>): Promise<boolean> {
    const { oldest } = this.replica
    if (!oldest) return false
    const { lines, hasOlder } = await readOlder(oldest, count, pageBefore)
    if (this.replica.prepend(oldest, lines, hasOlder)) this.tell({ type: 'transcript' })
    return this.replica.oldest !== undefined
  }

  /** Returns false if the session continues from an entry that is not loaded: the caller attaches again, without a cursor. */
  protected takeLine(disk: DiskLine, cursor: Cursor): boolean {
    const isWhole = this.replica.takeLine(disk, cursor)
    this.tell({ type: 'transcript' })
    if (!isWhole) this.replica.forgetCursor()
    return isWhole
  }

  protected takeLost(seq: number, count: number): void {
    this.replica.takeLost(seq, count)
    this.tell({ type: 'transcript' })
  }

  /** Returns false if text was missed: the caller attaches again. */
  protected takeFrame(frame: ReplicaFrame): boolean {
    switch (frame.type) {
      case 'delta':
      case 'partial': {
        const before = this.transcript
        const isComplete = this.replica.takeText(frame.type, frame.data)
        if (this.transcript !== before) this.tell({ type: 'transcript' })
        return isComplete
      }
      case 'state': {
        const { key, value } = frame.data
        if (this.replica.takeState(key, value, frame.rev)) this.tell({ type: 'state', key })
        return true
      }
      case 'queue_updated':
      case 'queue_message_sending':
      case 'queue_message_sent':
        this.tell({ type: 'notice', notice: frame })
        return true
      default:
        frame satisfies never
        return true
    }
  }

  protected setStatus(status: ConnectionStatus): void {
    this.#status = status
    this.tell({ type: 'status' })
  }

  protected tell(change: SessionChange): void {
    this.#listeners.notify(change)
  }
}
