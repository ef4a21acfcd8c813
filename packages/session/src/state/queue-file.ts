import type { Inbox, WaitingMessage } from './inbox.ts'

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
