import { wait } from './wait.ts'

export interface Patience {
  /** Timeout. Default: none. */
  ms?: number
  /** Measures the time. Default: real timers. */
  clock?: { wait(ms: number, signal?: AbortSignal): Promise<void> }
  signal?: AbortSignal | undefined
}

/**
 * Waits until a promise settles, the timeout expires or the signal aborts, and returns which came first. Never
 * rejects; a later rejection of the promise is not reported as unhandled. Leaves no timer or listener.
 */
export async function settledWithin(
  promise: Promise<unknown>,
  { ms = Infinity, clock = { wait }, signal }: Patience,
): Promise<'settled' | 'late' | 'aborted'> {
  const over = new AbortController()
  try {
    return await new Promise((resolve) => {
      const settled = (): void => resolve('settled')
      promise.then(settled, settled)
      if (signal?.aborted) return resolve('aborted')
      signal?.addEventListener('abort', () => resolve('aborted'), { once: true, signal: over.signal })
      if (ms === Infinity) return
      clock.wait(ms, over.signal).then(
        () => resolve('late'),
        () => undefined, // stopped: another outcome came first
      )
    })
  } finally {
    over.abort()
  }
}

/** The outcome of a promise, or the signal's reason if it aborts first. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if ((await settledWithin(promise, { signal })) === 'aborted') throw signal.reason
  return promise
}

/**
 * The outcome of work with a timeout. On timeout or abort, aborts the signal of the work and rejects at once
 * with `late()` or the reason; work that ignores its signal is abandoned.
 */
export async function withDeadline<T>(
  { late, signal, ...patience }: Patience & { ms: number; late: () => Error },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  const overdue = new AbortController()
  const given = signal ? AbortSignal.any([signal, overdue.signal]) : overdue.signal
  const done = work(given)
  const outcome = await settledWithin(done, { ...patience, signal })
  if (outcome === 'late') overdue.abort(late())
  if (outcome !== 'settled') throw given.reason
  return done
}
