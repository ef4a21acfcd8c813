import { textOr } from '../line/codec.ts'
import type { Delivery } from '../line/record.ts'

/** A message that was accepted and is not delivered yet. */
export interface WaitingMessage {
  id: string
  delivery: Delivery
  message: string
  imageIds: string[]
  queuedAt: string
  clientId?: string
  held: boolean
}

/** Why no message is delivered automatically at the moment. */
export interface InboxHold {
  reason: string
}

/**
 * The queued messages, folded from the log. A `submission` record changes them; the message that delivers one
 * removes it. A change to a message that is no longer queued is ignored: another change came first.
 */
export class Inbox {
  #messages: WaitingMessage[] = []
  #hold: InboxHold | null = null
  /** Messages that were queued when a person released the queue or sent a prompt. */
  #released = new Set<string>()

  get messages(): readonly WaitingMessage[] {
    return this.#messages
  }

  get hold(): InboxHold | null {
    return this.#hold
  }

  get(id: string): WaitingMessage | undefined {
    return this.#messages.find((message) => message.id === id)
  }

  /** In the order of the log and of `move`; the first is delivered next. */
  waiting(delivery: Delivery): WaitingMessage[] {
    return this.#messages.filter((message) => message.delivery === delivery)
  }

  /** The next message that may be delivered: none if the inbox is held; held messages are skipped. */
  next(
    delivery: Delivery,
    { isTaken = () => false, onlyReleased = false }: { isTaken?: (id: string) => boolean; onlyReleased?: boolean } = {},
  ): WaitingMessage | undefined {
    if (this.#hold) return undefined
    return this.#messages.find(
      ({ id, delivery: own, held }) =>
        own === delivery && !held && !isTaken(id) && (!onlyReleased || this.#released.has(id)),
    )
  }

  /** Applies the payload of a `submission` record. */
  change(payload: Record<string, unknown>): void {
    const id = typeof payload['id'] === 'string' ? payload['id'] : undefined
    switch (payload['action']) {
      case 'add':
        if (id !== undefined && !this.get(id)) this.#messages.push(readWaiting(id, payload))
        return
      case 'edit':
        this.#update(id, (message) => ({ ...message, ...readChanges(payload) }))
        return
      case 'move':
        this.#move(id, payload['before_id'])
        return
      case 'hold':
        if (id === undefined) {
          this.#hold = { reason: textOr(payload['reason'], 'held') }
          this.#released.clear()
        } else {
          this.#update(id, (message) => ({ ...message, held: true }))
          this.#released.delete(id)
        }
        return
      case 'release':
        if (id === undefined) this.#letGo()
        else {
          this.#update(id, (message) => ({ ...message, held: false }))
          if (this.get(id)) this.#released.add(id)
        }
        return
      case 'remove':
        this.delivered(id)
        return
      case 'clear':
        for (const { id: cleared } of this.#messages.filter(
          ({ delivery }) => (payload['delivery'] ?? delivery) === delivery,
        )) {
          this.delivered(cleared)
        }
        return
      default:
        return // an action of a newer version
    }
  }

  delivered(id: unknown): void {
    this.#messages = this.#messages.filter((message) => message.id !== id)
    this.#released.delete(id as string)
  }

  /** After a run that did not complete, a person must act before the next message is delivered. */
  runEnded(outcome: unknown): void {
    if (outcome === 'completed') {
      if (this.#hold?.reason === lostLines) this.#hold = null
    } else {
      this.#hold = { reason: `the last run was ${textOr(outcome, 'ended')}` }
    }
  }

  /** A prompt lifts the hold: a person has seen its reason. */
  prompted(): void {
    this.#letGo()
  }

  linesLost(): void {
    this.#hold = { reason: lostLines }
  }

  toCheckpoint(): unknown {
    return { messages: this.#messages, hold: this.#hold, released: [...this.#released] }
  }

  restore(saved: unknown): void {
    const { messages, hold, released = [] } = saved as SavedInbox
    this.#messages = [...messages]
    this.#hold = hold
    this.#released = new Set(released)
  }

  #letGo(): void {
    this.#hold = null
    this.#released = new Set(this.#messages.map(({ id }) => id))
  }

  #update(id: string | undefined, change: (message: WaitingMessage) => WaitingMessage): void {
    this.#messages = this.#messages.map((message) => (message.id === id ? change(message) : message))
  }

  #move(id: string | undefined, beforeId: unknown): void {
    const moved = this.#messages.find((message) => message.id === id)
    if (!moved || beforeId === id) return
    const rest = this.#messages.filter((message) => message !== moved)
    const before = rest.findIndex((message) => message.id === beforeId)
    rest.splice(before === -1 ? rest.length : before, 0, moved)
    this.#messages = rest
  }
}

interface SavedInbox {
  messages: WaitingMessage[]
  hold: InboxHold | null
  released?: string[]
}

const lostLines = 'lines of the log were lost'

function readWaiting(id: string, payload: Record<string, unknown>): WaitingMessage {
  return {
    id,
    delivery: payload['delivery'] === 'steer' ? 'steer' : 'follow-up',
    message: textOr(payload['message'], ''),
    imageIds: readIds(payload['image_ids']),
    queuedAt: textOr(payload['queued_at'], ''),
    ...(typeof payload['client_id'] === 'string' && { clientId: payload['client_id'] }),
    held: payload['held'] === true,
  }
}

function readChanges(payload: Record<string, unknown>): Partial<WaitingMessage> {
  const { message, delivery } = payload
  return {
    ...(typeof message === 'string' && { message }),
    ...((delivery === 'steer' || delivery === 'follow-up') && { delivery }),
    ...(payload['image_ids'] !== undefined && { imageIds: readIds(payload['image_ids']) }),
  }
}

function readIds(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'string') : []
}

/** A queued follow-up, as in the queue file and in REST responses. */
export interface QueuedMessage {
  id: string
  message: string
  image_ids: string[]
  queued_at: string
  client_id?: string
}

export interface QueueFile {
  messages: QueuedMessage[]
  updated_at: string
}

/** Content of `queue.json`: a copy of the queued follow-ups. The log is authoritative. */
export function queueFileOf(inbox: Inbox, now: Date): QueueFile {
  return { messages: inbox.waiting('follow-up').map(queuedMessageOf), updated_at: now.toISOString() }
}

export function queuedMessageOf(waiting: WaitingMessage): QueuedMessage {
  return {
    id: waiting.id,
    message: waiting.message,
    image_ids: waiting.imageIds,
    queued_at: waiting.queuedAt,
    ...(waiting.clientId !== undefined && { client_id: waiting.clientId }),
  }
}
