import { payloadOf, toDisk } from './codec.ts'
import type { Cause } from './entry.ts'
import { SessionError } from './errors.ts'
import { newId, newSubmissionId } from './ids.ts'
import { Inbox, type InboxHold, type WaitingMessage } from './inbox.ts'
import type { RecordDraft } from './line.ts'
import type { Delivery, SubmissionChange } from './record.ts'
import type { SessionReader } from './session-reader.ts'

export interface SubmitOptions {
  delivery?: Delivery
  imageIds?: string[]
  clientId?: string
  cause?: Cause
}

export interface SessionInboxParts {
  sessionId: string
  reader: SessionReader
  /** Messages that are being delivered or removed: for everybody else they are gone already. */
  taken: Set<string>
  /** Changes on their way to the disk, by the id of their line: whatever is appended now comes behind them. */
  planned: Map<string, SubmissionChange>
  append: (draft: RecordDraft, cause?: Cause) => Promise<unknown>
}

/** The waiting messages of a session, as its openers change them. The log decides; this only keeps two from taking one. */
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
    // One that is not durable itself, or not as such, has nobody been told of yet; those behind it wait with it.
    return next && reader.state.inbox.get(next.id)?.delivery === delivery ? next : undefined
  }

  async submit(message: string, options: SubmitOptions): Promise<WaitingMessage> {
    const { delivery = 'follow-up', imageIds = [], clientId, cause } = options
    const added = {
      id: newSubmissionId(),
      delivery,
      message,
      imageIds,
      queuedAt: new Date().toISOString(),
      ...(clientId !== undefined && { clientId }),
    }
    await this.#append({ action: 'add', ...added }, cause)
    return { ...added, held: false }
  }

  async change(change: SubmissionChange, cause?: Cause): Promise<void> {
    if (change.action === 'remove') return this.take(change.id, () => this.#append(change, cause))
    if (change.action !== 'add' && 'id' in change && change.id !== undefined) this.#waiting(change.id)
    return this.#append(change, cause)
  }

  /** Does what takes a message out. Until that is durable nobody else can take it. */
  async take<T>(id: string, work: (message: WaitingMessage) => Promise<T>): Promise<T> {
    const message = this.#waiting(id)
    const { taken } = this.#parts
    taken.add(id)
    try {
      return await work(message)
    } finally {
      taken.delete(id)
    }
  }

  async #append(change: SubmissionChange, cause?: Cause): Promise<void> {
    const { append, planned } = this.#parts
    const id = newId()
    planned.set(id, change)
    try {
      await append({ type: 'submission', submission: change, id }, cause)
    } finally {
      planned.delete(id)
    }
  }

  /** The messages as they will be behind the last line that is on its way: what a delivery goes by. */
  #planned(): Inbox {
    const { reader, planned } = this.#parts
    const { inbox } = reader.state
    if (planned.size === 0) return inbox
    const next = new Inbox()
    next.restore(inbox.toCheckpoint())
    for (const [id, submission] of planned) {
      next.change(payloadOf(toDisk({ type: 'submission', submission }, { id, timestamp: '' })))
    }
    return next
  }

  #waiting(id: string): WaitingMessage {
    const waiting = this.#parts.taken.has(id) ? undefined : this.#planned().get(id)
    if (waiting) return waiting
    throw new SessionError('message-not-found', `No message ${id} is waiting in session ${this.#parts.sessionId}.`)
  }
}
