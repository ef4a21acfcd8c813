import { withDeadline } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'

export { systemClock, type Clock } from '@tapetree/session/util/wait'

/** Waits, and returns false if the signal aborted the wait. */
export async function waitOut(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return clock.wait(ms, signal).then(
    () => true,
    () => false,
  )
}

/** Runs work with a timeout. Its signal aborts on timeout, and when the given signal aborts. */
export async function within<T>(
  limit: { clock: Clock; ms: number; signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withDeadline({ ...limit, late: () => new Error(`It took longer than ${limit.ms} ms.`) }, work)
}
