import type { SessionHandle } from '@tapetree/client'
import { leftBehindIn } from './left-behind.ts'

interface IdleOptions {
  /** Ends the waiting. */
  signal: AbortSignal
  /** Told once, when there is a run to wait for. */
  onWaiting: () => void
}

/** Resolves when nothing goes on in a session, and nothing that waits goes out by itself. */
export function untilIdle(handle: SessionHandle, { signal, onWaiting }: IdleOptions): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const isIdle = (): boolean => !isAtWork(handle) || handle.status.type === 'closed' || signal.aborted
  let isTold = false
  const look = (): void => {
    if (isIdle()) return resolve()
    if (isTold || handle.transcript.run === null) return
    isTold = true
    onWaiting()
  }
  const stop = handle.subscribe(look)
  signal.addEventListener('abort', look)
  look()
  return promise.finally(() => {
    stop()
    signal.removeEventListener('abort', look)
  })
}

/** The log and the state are told side by side: either may be the first to know. */
function isAtWork(handle: SessionHandle): boolean {
  const { run } = handle.transcript
  return handle.state('run')?.isBusy === true || (run !== null && leftBehindIn(handle) !== run.runId)
}
