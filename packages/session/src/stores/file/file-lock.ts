import { setTimeout as delay } from 'node:timers/promises'
import { acquireWriterLock, type WriterLock } from './writer-lock.ts'

/** Most holders make only one small write. */
const defaultPatienceMs = 10_000
const retryMs = 10

/** Another process held the lock for too long. */
export class FileLockedError extends Error {
  constructor(path: string) {
    super(`Another process holds the lock on ${path}. Try again.`)
  }
}

/**
 * Runs work while no other process runs work on the same file, so that read-modify-write loses no change. The
 * lock is `<path>.lock` and is released when the process ends. The folder must exist.
 * Waits for `patienceMs` while another process holds it.
 */
export async function withFileLock<T>(
  path: string,
  work: () => Promise<T>,
  { patienceMs = defaultPatienceMs }: { patienceMs?: number } = {},
): Promise<T> {
  const lock = await acquirePatiently(path, patienceMs)
  try {
    return await work()
  } finally {
    lock.release()
  }
}

async function acquirePatiently(path: string, patienceMs: number): Promise<WriterLock> {
  const until = Date.now() + patienceMs
  for (;;) {
    const attempt = await acquireWriterLock(`${path}.lock`)
    if (attempt.type === 'locked') return attempt.lock
    if (attempt.type === 'unavailable') throw new Error(attempt.reason)
    if (Date.now() > until) throw new FileLockedError(path)
    await delay(retryMs * (1 + Math.random()))
  }
}
