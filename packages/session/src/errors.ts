export type SessionErrorCode =
  | 'session-not-found'
  | 'session-exists'
  | 'session-owned' // another writer holds the session
  | 'session-busy' // a run is open
  | 'session-closed'
  | 'read-only'
  | 'newer-format'
  | 'fenced' // another writer has taken over while we held the session
  | 'storage-failed'
  | 'entry-not-found'
  | 'invalid-entry'
  | 'invalid-id'
  | 'not-in-context'
  | 'blob-missing'
  | 'invalid-pack'
  | 'queue-empty'
  | 'message-not-found'

/** The one error of this package. `code` is for programs, the message is a sentence for people. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  readonly code: SessionErrorCode

  constructor(code: SessionErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
