import { payloadOf, toDisk } from '../line/codec.ts'
import type { Cause } from '../line/entry.ts'
import { SessionError } from '../errors.ts'
import { newId, newSubmissionId } from '../line/ids.ts'
import { Inbox, type InboxHold, type WaitingMessage } from '../state/inbox.ts'
import type { RecordDraft } from '../line/line.ts'
import type { Delivery, SubmissionChange } from '../line/record.ts'
import type { SessionReader } from '../log/session-reader.ts'

export interface SubmitOptions {
  delivery?: Delivery
  imageIds?: string[]
  clientId?: string
  /** Not delivered until it is released. */
  held?: boolean
  cause?: Cause
}

export interface SessionInboxParts {
  sessionId: string
  reader: SessionReader
  /** Messages that are being delivered or removed; other callers cannot take them. */
  taken: Map<string, Promise<void>>
  /** Pending changes, by the id of their line: later appends are ordered after them. */
  planned: Map<string, PlannedChange>
  append: (draft: RecordDraft, cause?: Cause) => Promise<unknown>
}

interface PlannedChange {
  change: SubmissionChange
  /** Resolves when the change is durable or has failed. */
  over: Promise<void>
}

/**
 * The queued messages of a session. The log is authoritative; this class keeps two callers from taking the same
 * message.
 */
export class SessionInbox {
  readonly #parts: SessionInboxParts

  constructor(parts: SessionInboxParts) {
    this.#parts = parts
  }

  get messages(): WaitingMessage[] {
    return this.#parts.reader.state.inbox.messages.filter(({ id }) => !this.#parts.taken.has(id))
  }

  get hold(): InboxHold | null {
    return this.#parts.reader.state.inbox.hold
  }

  next(delivery: Delivery, options: { onlyReleased?: boolean } = {}): WaitingMessage | undefined {
    const { reader, taken } = this.#parts
    const next = this.#planned().next(delivery, { ...options, isTaken: (id) => taken.has(id) })
    // A message that is not durable yet, or whose delivery is still changing, is not delivered; messages behind
    // it wait too.
    return next && reader.state.inbox.get(next.id)?.delivery === delivery ? next : undefined
  }

  async submit(message: string, options: SubmitOptions): Promise<WaitingMessage> {
    const { delivery = 'follow-up', imageIds = [], clientId, held = false, cause } = options
    const added = {
      id: newSubmissionId(),
      delivery,
      message,
      imageIds,
      queuedAt: new Date().toISOString(),
      ...(clientId !== undefined && { clientId }),
    }
    await this.#append({ action: 'add', ...added, ...(held && { held }) }, cause)
    return { ...added, held }
  }

  async change(change: SubmissionChange, cause?: Cause): Promise<void> {
    if (change.action === 'remove') return this.take(change.id, () => this.#append(change, cause))
    const id = change.action !== 'add' && 'id' in change ? change.id : undefined
    if (id !== undefined) while (!this.#waiting(id)) await this.#changed(id)
    return this.#append(change, cause)
  }

  /** Runs the work that removes a message. Until it is durable, other callers cannot take the message. */
  async take<T>(id: string, work: (message: WaitingMessage) => Promise<T>): Promise<T> {
    let message = this.#waiting(id)
    for (; !message; message = this.#waiting(id)) await this.#changed(id)
    const { taken } = this.#parts
    const { promise: over, resolve } = Promise.withResolvers<void>()
    taken.set(id, over)
    try {
      return await work(message)
    } finally {
      taken.delete(id)
      resolve()
    }
  }

  async #append(change: SubmissionChange, cause?: Cause): Promise<void> {
    const { append, planned } = this.#parts
    const id = newId()
    const { promise: over, resolve } = Promise.withResolvers<void>()
    planned.set(id, { change, over })
    try {
      await append({ type: 'submission', submission: change, id }, cause)
    } finally {
      planned.delete(id)
      resolve()
    }
  }

  /** The messages as they will be after the last pending line; deliveries use this order. */
  #planned(): Inbox {
    const { reader, planned } = this.#parts
    const { inbox } = reader.state
    if (planned.size === 0) return inbox
    const next = new Inbox()
    next.restore(inbox.toCheckpoint())
    for (const [id, { change: submission }] of planned) {
      next.change(payloadOf(toDisk({ type: 'submission', submission }, { id, timestamp: '' })))
    }
    return next
  }

  #waiting(id: string): WaitingMessage | undefined {
    return this.#parts.taken.has(id) ? undefined : this.#planned().get(id)
  }

  /**
   * For a message that is being taken: resolves when that is durable or has failed, because after a crash the
   * message may still be queued. Throws if the message is not queued.
   */
  #changed(id: string): Promise<unknown> {
    const { reader, taken, planned } = this.#parts
    const taking = taken.get(id)
    if (taking) return taking
    if (reader.state.inbox.get(id)) return Promise.all(Array.from(planned.values(), ({ over }) => over))
    throw new SessionError('message-not-found', `No message ${id} is waiting in session ${this.#parts.sessionId}.`)
  }
}
