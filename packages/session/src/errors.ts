export type SessionErrorCode =
  | 'session-not-found'
  | 'session-exists'
  | 'session-owned' // another writer holds the session
  | 'session-busy' // a run is open
  | 'session-closed'
  | 'read-only'
  | 'newer-format'
  | 'fenced' // another writer took over while this process held the session
  | 'storage-failed'
  | 'outcome-unknown' // the storage did not say whether it has the lines
  | 'entry-not-found'
  | 'invalid-entry'
  | 'invalid-id'
  | 'not-in-context'
  | 'blob-missing'
  | 'invalid-pack'
  | 'queue-empty'
  | 'mode-not-usable' // this machine cannot run commands in a sandbox
  | 'message-not-found'

/** The only error class of this package. Programs read `code`; the message is a sentence for people. */
export class SessionError extends Error {
  override readonly name = 'SessionError'
  readonly code: SessionErrorCode

  constructor(code: SessionErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
