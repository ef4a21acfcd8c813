/** Timers in Node and browsers fire immediately if set for longer than this. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Resolves after `ms`, without an upper limit; `Infinity` waits for the signal alone. Rejects with the signal's
 * reason on abort. Leaves no timer or listener.
 */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    let timer: ReturnType<typeof setTimeout>
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const sleep = (leftMs: number): void => {
      timer = setTimeout(
        () => {
          if (leftMs > longestTimerMs) return sleep(leftMs - longestTimerMs)
          signal?.removeEventListener('abort', stop)
          resolve()
        },
        Math.min(leftMs, longestTimerMs),
      )
    }
    sleep(ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** A source of time, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Resolves after `ms`; rejects with the signal's reason if it aborts first. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = { now: () => Date.now(), wait }
