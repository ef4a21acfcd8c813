import type { Clock } from '@tapetree/agent'
import type { LiveSessions } from '../live/live-sessions.ts'
import { storageReason } from '../live/state-values.ts'

export interface ReadinessFacts {
  tenants: ReadonlyMap<string, LiveSessions>
  closing: AbortSignal
}

/** Why requests should go elsewhere just now, in a sentence; undefined where all is well. */
export function notReadyReason({ tenants, closing }: ReadinessFacts): string | undefined {
  if (closing.aborted) return 'The server is going down.'
  const isFull = tenants.size > 0 && [...tenants.values()].every((sessions) => sessions.isFull && !hasIdle(sessions))
  return isFull ? 'No more sessions can be live at once.' : undefined
}

function hasIdle(sessions: LiveSessions): boolean {
  return sessions.opened.some(({ isIdle }) => isIdle)
}

/** So long a look at the storage counts: whoever asks about readiness must not keep the disk busy. */
const checkedForMs = 2000

/** Says whether the storage of all tenants takes lines, by making a small write durable. */
export class StorageCheck {
  readonly #tenants: ReadonlyMap<string, LiveSessions>
  readonly #clock: Clock
  #last: { at: number; reason: Promise<string | undefined> } | undefined

  constructor(tenants: ReadonlyMap<string, LiveSessions>, clock: Clock) {
    this.#tenants = tenants
    this.#clock = clock
  }

  /** Why nothing can be stored just now, in a sentence without paths; undefined if it can. */
  async reason(): Promise<string | undefined> {
    const now = this.#clock.now()
    if (!this.#last || now - this.#last.at >= checkedForMs) this.#last = { at: now, reason: this.#check() }
    return this.#last.reason
  }

  async #check(): Promise<string | undefined> {
    const checks = [...this.#tenants.values()].map(({ store }) => store.checkStorage())
    const failed = (await Promise.allSettled(checks)).find(({ status }) => status === 'rejected')
    if (failed?.status !== 'rejected') return undefined
    return storageReason(failed.reason as { cause?: unknown })
  }
}
