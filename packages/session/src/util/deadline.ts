import { wait } from './wait.ts'

export interface Patience {
  /** Default: for ever. */
  ms?: number
  /** Measures the time. Default: the timers of the machine. */
  clock?: { wait(ms: number, signal?: AbortSignal): Promise<void> }
  signal?: AbortSignal | undefined
}

/**
 * Waits until a promise settles, its time is over or the signal is aborted, and says which came first. Never rejects; a promise that
 * rejects later is not reported as unhandled. When it resolves, no timer and no listener are left.
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
        () => undefined, // stopped: something else came first
      )
    })
  } finally {
    over.abort()
  }
}

/** The outcome of a promise, or the reason of the signal if that is aborted first. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if ((await settledWithin(promise, { signal })) === 'aborted') throw signal.reason
  return promise
}

/**
 * The outcome of work that has a limited time. When the time is over or the signal is aborted, the signal of the work is aborted and
 * this rejects at once, with `late()` or the reason: work that ignores its signal is left behind.
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
