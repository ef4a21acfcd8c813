import { setImmediate } from 'node:timers/promises'
import { SessionError } from '../../../errors.ts'

/** Cuts long work into slices, and ends it at the next pause once closed. */
export class Slices {
  #isClosed = false
  #startMs = 0

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isPauseDue(): boolean {
    return performance.now() - this.#startMs > sliceMs
  }

  /** Lets others run between two slices of work. */
  async pause(): Promise<void> {
    this.throwIfClosed()
    if (!this.isPauseDue) return
    await setImmediate()
    this.#startMs = performance.now()
  }

  throwIfClosed(): void {
    if (this.#isClosed) throw new SessionError('session-closed', 'The store has been closed.')
  }

  close(): void {
    this.#isClosed = true
  }
}

/** Some at a time. The first failure ends it, when those that have begun are done. */
export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  let failure: { error: unknown } | undefined
  const workers = Array.from({ length: parallelReads }, async () => {
    for (const item of rest) {
      if (failure) return
      try {
        await work(item)
      } catch (error) {
        failure = { error }
      }
    }
  })
  await Promise.all(workers)
  if (failure) throw failure.error
}

/** Longer work is cut here, so that nobody else waits. */
const sliceMs = 5
const parallelReads = 4
