import { wait } from '../../util/wait.ts'
import type { Database } from './database.ts'

export interface Watched {
  tenant: string
  key: string
  /** How many lines the reader knows. */
  known: number
}

interface Watcher extends Watched {
  wake: () => void
}

/**
 * Wakes readers of sessions that grow. Appends of this process wake them at once; those of others are noticed by asking
 * for the number of lines of all watched sessions, in one statement for each tenant.
 */
export class LineWatch {
  readonly #database: Database
  readonly #watchers = new Set<Watcher>()
  #isAsking = false

  constructor(database: Database) {
    this.#database = database
  }

  async changed(watched: Watched, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const watcher: Watcher = {
        ...watched,
        wake: () => {
          this.#watchers.delete(watcher)
          signal.removeEventListener('abort', watcher.wake)
          resolve()
        },
      }
      signal.addEventListener('abort', watcher.wake, { once: true })
      this.#watchers.add(watcher)
      if (!this.#isAsking) void this.#ask()
    })
  }

  wake(key: string): void {
    for (const watcher of this.#watchers) if (watcher.key === key) watcher.wake()
  }

  /** Readers notice that the store is closed when they read. */
  close(): void {
    for (const watcher of this.#watchers) watcher.wake()
  }

  async #ask(): Promise<void> {
    this.#isAsking = true
    while (this.#watchers.size > 0) {
      for (const [tenant, watchers] of Map.groupBy(this.#watchers, (each) => each.tenant)) {
        const counts = await this.#counts(tenant, watchers)
        for (const watcher of watchers) {
          // A session that is gone wakes its readers too.
          if ((counts?.get(watcher.key) ?? (counts ? Infinity : 0)) > watcher.known) watcher.wake()
        }
      }
      await wait(intervalMs)
    }
    this.#isAsking = false
  }

  /** Undefined if the database did not answer; then the next round asks again. */
  async #counts(tenant: string, watchers: readonly Watcher[]): Promise<Map<string, number> | undefined> {
    try {
      const rows = await this.#database.call<{ key: string; lines: number }>(
        'select key, lines from tapetree.count_lines($1, $2)',
        [tenant, [...new Set(watchers.map(({ key }) => key))]],
      )
      return new Map(rows.map(({ key, lines }) => [key, lines]))
    } catch {
      return undefined
    }
  }
}

const intervalMs = 100
