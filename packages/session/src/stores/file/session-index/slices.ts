import { setImmediate } from 'node:timers/promises'
import { SessionError } from '../../../errors.ts'

/** Splits long work into slices, and stops it at the next pause once closed. */
export class Slices {
  #isClosed = false
  #startMs = 0

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isPauseDue(): boolean {
    return performance.now() - this.#startMs > sliceMs
  }

  /** Yields to other tasks between slices. */
  async pause(): Promise<void> {
    this.throwIfClosed()
    if (!this.isPauseDue) return
    await setImmediate()
    this.#startMs = performance.now()
  }

  throwIfClosed(): void {
    if (this.#isClosed) throw new SessionError('session-closed', 'The session store is closed.')
  }

  close(): void {
    this.#isClosed = true
  }
}

/** Runs with limited concurrency. Rejects with the first failure, after started items have finished. */
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

/** Longer work pauses here, so that other tasks can run. */
const sliceMs = 5
const parallelReads = 4
