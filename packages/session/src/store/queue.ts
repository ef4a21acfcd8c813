import { SessionError } from '../errors.ts'
import { queuedMessageOf, type QueuedMessage } from '../state/inbox.ts'
import type { Session } from './session.ts'

/** The part of the store that a queue uses. */
interface QueueStore {
  open(sessionId: string): Promise<Session>
}

/** The queued follow-ups of one session. Stateless: all instances use the session's inbox, which its log orders. */
export class Queue {
  readonly #store: QueueStore
  readonly #sessionId: string

  /** @internal Queues come from a store. */
  constructor(store: QueueStore, sessionId: string) {
    this.#store = store
    this.#sessionId = sessionId
  }

  async add(message: string, imageIds?: readonly string[] | null, clientId?: string): Promise<QueuedMessage> {
    return this.#withSession(async (session) => {
      const options = { imageIds: [...(imageIds ?? [])], ...(clientId !== undefined && { clientId }) }
      return queuedMessageOf(await session.submit(message, options))
    })
  }

  /** Removes and returns the first message. Rejects with `queue-empty`. */
  async pop(): Promise<QueuedMessage> {
    return this.#withSession(async (session) => {
      const [first] = followUps(session)
      if (!first) throw new SessionError('queue-empty', `No message is waiting in session ${session.id}.`)
      await session.changeInbox({ action: 'remove', id: first.id })
      return first
    })
  }

  async get(messageId: string): Promise<QueuedMessage> {
    return this.#withSession((session) => {
      const message = followUps(session).find(({ id }) => id === messageId)
      if (!message) throw notFound(messageId, session.id)
      return message
    })
  }

  async list(): Promise<QueuedMessage[]> {
    return this.#withSession(followUps)
  }

  async remove(messageId: string): Promise<void> {
    await this.#withSession(async (session) => {
      if (!followUps(session).some(({ id }) => id === messageId)) throw notFound(messageId, session.id)
      await session.changeInbox({ action: 'remove', id: messageId })
    })
  }

  async clear(): Promise<void> {
    await this.#withSession((session) => session.changeInbox({ action: 'clear', delivery: 'follow-up' }))
  }

  async length(): Promise<number> {
    return (await this.list()).length
  }

  async #withSession<T>(work: (session: Session) => T | Promise<T>): Promise<T> {
    await using session = await this.#store.open(this.#sessionId)
    return await work(session)
  }
}

function followUps(session: Session): QueuedMessage[] {
  return session.inbox.messages.filter(({ delivery }) => delivery === 'follow-up').map(queuedMessageOf)
}

function notFound(messageId: string, sessionId: string): SessionError {
  return new SessionError('message-not-found', `No message ${messageId} is waiting in session ${sessionId}.`)
}
