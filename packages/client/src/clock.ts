import { withDeadline } from '@tapetree/session/util/deadline'
import { wait } from '@tapetree/session/util/wait'

/** Time as the client knows it, so that tests need not wait for it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Resolves after this long; rejects with the signal's reason when it is aborted before. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = { now: () => Date.now(), wait }

/** Waits, and says whether it was the time that came to an end. */
export async function waitOut(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return clock.wait(ms, signal).then(
    () => true,
    () => false,
  )
}

/** Does something that must not take longer than this: its signal is aborted then, and when the given one is. */
export async function within<T>(
  limit: { clock: Clock; ms: number; signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withDeadline({ ...limit, late: () => new Error(`It took longer than ${limit.ms} ms.`) }, work)
}
