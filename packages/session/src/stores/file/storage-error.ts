import { SessionError } from '../../errors.ts'

/** What the file system refused, as the error of this package. */
export function storageError(what: string, cause: unknown): SessionError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new SessionError('storage-failed', `${what}: ${reason}`, { cause })
}
