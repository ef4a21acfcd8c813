/** The timers of Node and of browsers fire at once if they are set for longer than this. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Resolves after `ms`, however long that is; `Infinity` waits for the signal alone. Rejects with the reason of the signal when it is
 * aborted. Either way no timer and no listener are left behind.
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
