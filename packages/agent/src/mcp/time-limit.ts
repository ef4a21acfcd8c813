import type { Clock } from '../clock.ts'
import { ServerProblem } from './server-problem.ts'

export interface TimeLimit {
  ms: number
  clock: Clock
  signal: AbortSignal
  /** What is said when the time is over. */
  late: string
}

/** The outcome of work that keeps to its time; work that does not hear the signal is left behind. */
export async function withinLimit<T>(
  { ms, clock, signal, late }: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const finished = new AbortController()
  const overdue = new AbortController()
  const timer = clock.wait(ms, finished.signal).then(
    () => overdue.abort(new ServerProblem(late)),
    () => undefined, // it was in time
  )
  try {
    const given = AbortSignal.any([signal, overdue.signal])
    return await untilAborted(work(given), given)
  } finally {
    finished.abort()
    await timer
  }
}

/** Waits no longer than the signal allows. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const done = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true, signal: done.signal })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    done.abort()
    void promise.catch(() => undefined)
  }
}
