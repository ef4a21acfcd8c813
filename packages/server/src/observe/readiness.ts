import type { Clock } from '@tapetree/agent/run'
import type { LiveSessions } from '../live/live-sessions.ts'
import { storageReason } from '../live/state-values.ts'

export interface ReadinessFacts {
  tenants: ReadonlyMap<string, LiveSessions>
  closing: AbortSignal
}

/** Why requests should go elsewhere, as a sentence; undefined if the server is ready. */
export function notReadyReason({ tenants, closing }: ReadinessFacts): string | undefined {
  if (closing.aborted) return 'The server is shutting down.'
  if ([...tenants.values()].some(({ isDraining }) => isDraining)) return 'The server is draining: it finishes its runs.'
  const isFull = tenants.size > 0 && [...tenants.values()].every((sessions) => sessions.isFull && !hasIdle(sessions))
  return isFull ? 'The limit of live sessions is reached.' : undefined
}

function hasIdle(sessions: LiveSessions): boolean {
  return sessions.opened.some(({ isIdle }) => isIdle)
}

/** How long a storage check is cached, so that readiness probes do not load the disk. */
const checkedForMs = 2000

/** Checks whether the storage of all tenants accepts writes, with a small durable write. */
export class StorageCheck {
  readonly #tenants: ReadonlyMap<string, LiveSessions>
  readonly #clock: Clock
  #last: { at: number; reason: Promise<string | undefined> } | undefined

  constructor(tenants: ReadonlyMap<string, LiveSessions>, clock: Clock) {
    this.#tenants = tenants
    this.#clock = clock
  }

  /** Why nothing can be stored, as a sentence without paths; undefined if the storage works. */
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
