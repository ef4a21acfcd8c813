import { setTimeout as delay } from 'node:timers/promises'
import { acquireWriterLock, type WriterLock } from './writer-lock.ts'

/** Other processes hold the lock for the time of one small write. */
const patienceMs = 10_000
const retryMs = 10

/** Another process held the lock of a file for too long. */
export class FileLockedError extends Error {
  constructor(path: string) {
    super(`Another process has locked ${path}. Try again.`)
  }
}

/**
 * Does something to a file while no other process does: read, change and replace it here, and no change is lost. The lock is a file
 * beside it, `<path>.lock`, and ends with the process. The folder must exist.
 */
export async function withFileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = await acquirePatiently(path)
  try {
    return await work()
  } finally {
    lock.release()
  }
}

async function acquirePatiently(path: string): Promise<WriterLock> {
  const until = Date.now() + patienceMs
  for (;;) {
    const attempt = await acquireWriterLock(`${path}.lock`)
    if (attempt.type === 'locked') return attempt.lock
    if (attempt.type === 'unavailable') throw new Error(attempt.reason)
    if (Date.now() > until) throw new FileLockedError(path)
    await delay(retryMs * (1 + Math.random()))
  }
}
