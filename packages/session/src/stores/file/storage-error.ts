import { SessionError } from '../../errors.ts'

/** Wraps an error of the file system. */
export function storageError(what: string, cause: unknown): SessionError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new SessionError('storage-failed', `${what}: ${reason}`, { cause })
}
