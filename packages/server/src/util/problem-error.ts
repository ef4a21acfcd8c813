import { SessionError, type SessionErrorCode } from '@tapetree/session'
import type { Problem } from '@tapetree/client'

/** Thrown by a handler or a driver to reject a request; the client receives its `problem`. */
export class RequestProblem extends Error {
  /** The same as that of the client's error: callers in this process recognize both by this name. */
  override readonly name = 'ProblemError'
  readonly problem: Problem

  constructor(status: number, type: string, detail: string, more: Record<string, unknown> = {}) {
    super(detail)
    this.problem = { ...more, type, title: titleOf(type), status, detail }
  }
}

/** Converts an error to a problem for clients. Internal errors are sent without details. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestProblem) return error.problem
  if (error instanceof SessionError) {
    const { code, message } = error
    const detail =
      code === 'storage-failed' ? storageDetail(error) : code === 'outcome-unknown' ? unknownDetail : message
    return { type: code, title: titleOf(code), status: statusOf[code] ?? 500, detail }
  }
  if (error instanceof Error && 'code' in error && (error.code === 'empty-prompt' || error.code === 'not-expanded')) {
    return { type: error.code, title: titleOf(error.code), status: 422, detail: error.message }
  }
  return { type: 'internal', title: 'Internal', status: 500 }
}

const statusOf: Partial<Record<SessionErrorCode, number>> = {
  'session-not-found': 404,
  'session-exists': 409,
  'session-owned': 409,
  'session-busy': 409,
  'session-closed': 409,
  'read-only': 409,
  'newer-format': 409,
  fenced: 503,
  'storage-failed': 507,
  'outcome-unknown': 507,
  'entry-not-found': 404,
  'invalid-entry': 422,
  'invalid-id': 400,
  'not-in-context': 409,
  'blob-missing': 404,
  'invalid-pack': 422,
  'queue-empty': 409,
  'mode-not-usable': 409,
  'message-not-found': 404,
}

/** The error's message names files of the server. Clients receive only the system's error code, such as `ENOSPC`. */
function storageDetail({ cause }: SessionError): string {
  const { code } = (cause ?? {}) as { code?: unknown }
  const why = typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? ` (${code})` : ''
  return `This could not be stored${why}, or only in part. Try again when the storage works.`
}

const unknownDetail =
  'It is not known whether this was stored. The session finds out when it is used next; repeat the command with the same id.'

function titleOf(type: string): string {
  const words = type.replaceAll('-', ' ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}

/** Reports an error that no caller can handle, as a warning of the process. */
export function emitWarning(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
}
