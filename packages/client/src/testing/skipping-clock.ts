import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'

interface Sleeper {
  at: number
  wake: () => void
}

/** A clock that only a test moves. */
export class SkippingClock implements Clock {
  #now = 1_000_000
  readonly #sleepers = new Set<Sleeper>()

  now(): number {
    return this.#now
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#sleepers.delete(sleeper)
        reject(signal?.reason as Error)
      }
      const sleeper: Sleeper = {
        at: this.#now + ms,
        wake: () => {
          signal?.removeEventListener('abort', stop)
          resolve()
        },
      }
      if (signal?.aborted) return reject(signal.reason as Error)
      signal?.addEventListener('abort', stop, { once: true })
      this.#sleepers.add(sleeper)
    })
  }

  /** Like a sleeping machine: time passes and no timer fires. */
  sleep(ms: number): void {
    this.#now += ms
  }

  /** Fires the timers due until then, in order. */
  async skip(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      await setImmediate()
      const [next] = [...this.#sleepers].filter(({ at }) => at <= end).sort((left, right) => left.at - right.at)
      if (!next) break
      this.#now = Math.max(this.#now, next.at)
      this.#sleepers.delete(next)
      next.wake()
    }
    this.#now = end
  }
}
