import { emitWarning } from '../util/problem-error.ts'
import type { MessageListener } from './session-bus.ts'

/** The subscriptions of one node. */
export class TopicListeners {
  readonly #topics = new Map<string, Set<{ listener: MessageListener }>>()

  get topics(): string[] {
    return [...this.#topics.keys()]
  }

  has(topic: string): boolean {
    return this.#topics.has(topic)
  }

  /** The returned function removes this registration: a listener added twice is called twice. */
  add(topic: string, listener: MessageListener): () => void {
    const registrations = this.#topics.get(topic) ?? new Set()
    const own = { listener }
    this.#topics.set(topic, registrations.add(own))
    return () => {
      registrations.delete(own)
      if (registrations.size === 0 && this.#topics.get(topic) === registrations) this.#topics.delete(topic)
    }
  }

  /** Calls the listeners that are registered now, even if one throws. Those removed during the call are skipped. */
  deliver(topic: string, message: Uint8Array, from: string): void {
    const registrations = this.#topics.get(topic)
    if (!registrations) return
    for (const each of [...registrations]) {
      if (!registrations.has(each)) continue
      try {
        each.listener(message, from)
      } catch (error) {
        emitWarning(error)
      }
    }
  }

  clear(): void {
    for (const registrations of this.#topics.values()) registrations.clear()
    this.#topics.clear()
  }
}
