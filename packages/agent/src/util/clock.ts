import { wait } from '@tapetree/session/util/wait'

/** Time as the agent knows it, so that tests need not wait for it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Resolves after this long; rejects with the signal's reason when it is aborted before. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = { now: () => Date.now(), wait }
