import type { ServerFrame } from '@tapetree/client/protocol'
import type { WaitingMessage } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'

/** Derives queue notices from lines, one by one. Steers are not in the queue. */
export class QueueNotices {
  readonly #queued: Set<string>

  constructor(waiting: readonly WaitingMessage[]) {
    this.#queued = new Set(waiting.filter(({ delivery }) => delivery === 'follow-up').map(({ id }) => id))
  }

  take(line: Line): ServerFrame[] {
    if (line.type === 'message') return this.#removed(line.message.submissionId)
    if (line.type !== 'submission') return []
    const { submission } = line
    switch (submission.action) {
      case 'add':
        return submission.delivery === 'follow-up' ? this.#added(submission.id) : []
      case 'edit':
        if (submission.delivery === 'steer') return this.#removed(submission.id)
        return submission.delivery === 'follow-up' ? this.#added(submission.id) : []
      case 'remove':
        return this.#removed(submission.id)
      case 'clear':
        return submission.delivery === 'steer' ? [] : this.#cleared()
      default:
        return []
    }
  }

  #added(id: string): ServerFrame[] {
    if (this.#queued.has(id)) return []
    this.#queued.add(id)
    return [this.#updated('added', id)]
  }

  #removed(id: string | undefined): ServerFrame[] {
    return id !== undefined && this.#queued.delete(id) ? [this.#updated('removed', id)] : []
  }

  #cleared(): ServerFrame[] {
    this.#queued.clear()
    return [this.#updated('cleared', null)]
  }

  #updated(action: 'added' | 'removed' | 'cleared', messageId: string | null): ServerFrame {
    return { type: 'queue_updated', data: { queue_length: this.#queued.size, action, message_id: messageId } }
  }
}
