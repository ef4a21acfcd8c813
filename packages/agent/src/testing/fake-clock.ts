import type { Clock } from '@tapetree/session/util/wait'

interface Waiter {
  at: number
  wake: () => void
}

/** A clock that moves only by hand. */
export class FakeClock implements Clock {
  #now: number
  readonly #waiters = new Set<Waiter>()
  #onWait: (() => void)[] = []

  constructor(start = Date.parse('2026-01-01T00:00:00Z')) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  /** The remaining time of each waiter, the shortest first. */
  get waits(): number[] {
    return [...this.#waiters].map(({ at }) => at - this.#now).sort((left, right) => left - right)
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error)
        return
      }
      const stop = (): void => {
        this.#waiters.delete(waiter)
        reject(signal?.reason as Error)
      }
      const waiter: Waiter = {
        at: this.#now + ms,
        wake: () => {
          signal?.removeEventListener('abort', stop)
          resolve()
        },
      }
      signal?.addEventListener('abort', stop, { once: true })
      this.#waiters.add(waiter)
      for (const tell of this.#onWait.splice(0)) tell()
    })
  }

  /** Resolves when a caller waits, with the time it waits. */
  async waited(): Promise<number> {
    while (this.#waiters.size === 0) await new Promise<void>((resolve) => this.#onWait.push(resolve))
    return this.waits[0] as number
  }

  advance(ms: number): void {
    this.#now += ms
    for (const waiter of [...this.#waiters].sort((left, right) => left.at - right.at)) {
      if (waiter.at > this.#now) break
      this.#waiters.delete(waiter)
      waiter.wake()
    }
  }

  /** Waits until a caller waits, then advances to the first wake-up; returns how long that was. */
  async skip(): Promise<number> {
    const ms = await this.waited()
    this.advance(ms)
    return ms
  }
}
