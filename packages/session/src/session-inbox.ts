import type { Cause } from './entry.ts'
import { SessionError } from './errors.ts'
import { newSubmissionId } from './ids.ts'
import type { InboxHold, WaitingMessage } from './inbox.ts'
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

  next(delivery: Delivery): WaitingMessage | undefined {
    return this.#parts.reader.state.inbox.next(delivery, (id) => this.#parts.taken.has(id))
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
    await this.#parts.append({ type: 'submission', submission: change }, cause)
  }

  #waiting(id: string): WaitingMessage {
    const waiting = this.messages.find((message) => message.id === id)
    if (waiting) return waiting
    throw new SessionError('message-not-found', `No message ${id} is waiting in session ${this.#parts.sessionId}.`)
  }
}
