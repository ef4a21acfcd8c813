import { ProblemError } from '@tapetree/client'
import { SessionError, type SessionErrorCode } from '@tapetree/session'
import { exitCodes, type ExitCode } from './exit-code.ts'
import { Failure } from './failure.ts'

/** Converts any error to a failure. Recognizes errors of other packages by name and code, so that it loads none of them. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof SessionError) return fromSession(error)
  if (error instanceof ProblemError) return fromProblem(error.type, error.message, error)
  if (!(error instanceof Error)) return new Failure(exitCodes.runFailed, String(error), { type: 'unknown' })
  const { code, problem } = error as { code?: unknown; problem?: { type?: unknown } }
  if (error.name === 'RegistryError') return fromRegistry(error, String(code))
  if (error.name === 'SettingsError') {
    return new Failure(exitCodes.configuration, error.message, {
      type: String(code),
      next: ['tapetree config show --origin'],
      cause: error,
    })
  }
  if (error.name === 'ProblemError') return fromProblem(String(problem?.type), error.message, error)
  if (error.name === 'AbortError') {
    return new Failure(exitCodes.interrupted, 'Interrupted.', { type: 'interrupted', cause: error })
  }
  return fromSystem(error, typeof code === 'string' ? code : undefined)
}

const systemCodes: Record<string, ExitCode> = {
  ENOENT: exitCodes.notFound,
  EACCES: exitCodes.configuration,
  EPERM: exitCodes.configuration,
  EADDRINUSE: exitCodes.configuration,
}

/** An error of the operating system, as a sentence. */
const systemSentences: Record<string, string> = {
  ENOTDIR: 'Part of this path is a file, not a folder.',
  EISDIR: 'This is a folder, not a file.',
  EROFS: 'The file system is read-only.',
  ENOSPC: 'The disk is full.',
  EDQUOT: 'Your disk quota is exhausted.',
}

function fromSystem(error: Error, code: string | undefined): Failure {
  const type = code?.toLowerCase() ?? 'unknown'
  const sentence = code === undefined ? undefined : systemSentences[code]
  if (error.name === 'OutputError') {
    return new Failure(exitCodes.configuration, 'The output cannot be written.', {
      type,
      why: sentence ?? error.message,
      cause: error,
    })
  }
  if (sentence === undefined) {
    const exit = code === undefined ? undefined : systemCodes[code]
    return new Failure(exit ?? exitCodes.runFailed, error.message, { type, cause: error })
  }
  const { path } = error as NodeJS.ErrnoException
  const message = path === undefined ? sentence : `${path}: ${sentence}`
  return new Failure(exitCodes.configuration, message, {
    type,
    why: error.message,
    next: ['tapetree doctor'],
    cause: error,
  })
}

const sessionCodes: Record<SessionErrorCode, ExitCode> = {
  'session-not-found': exitCodes.notFound,
  'entry-not-found': exitCodes.notFound,
  'message-not-found': exitCodes.notFound,
  'session-owned': exitCodes.ownedElsewhere,
  'read-only': exitCodes.ownedElsewhere,
  fenced: exitCodes.ownedElsewhere,
  'newer-format': exitCodes.configuration,
  'blob-missing': exitCodes.damaged,
  'invalid-pack': exitCodes.damaged,
  'invalid-id': exitCodes.usage,
  'session-exists': exitCodes.runFailed,
  'session-busy': exitCodes.runFailed,
  'session-closed': exitCodes.runFailed,
  'storage-failed': exitCodes.runFailed,
  'outcome-unknown': exitCodes.runFailed,
  'invalid-entry': exitCodes.runFailed,
  'not-in-context': exitCodes.runFailed,
  'queue-empty': exitCodes.runFailed,
  'mode-not-usable': exitCodes.configuration,
}

const sessionNext: Partial<Record<SessionErrorCode, readonly string[]>> = {
  'session-not-found': ['tapetree sessions list'],
  'entry-not-found': ['tapetree sessions show <session>'],
  'blob-missing': ['tapetree log verify <session>'],
}

function fromSession(error: SessionError): Failure {
  return new Failure(sessionCodes[error.code], error.message, {
    type: error.code,
    next: sessionNext[error.code] ?? [],
    cause: error,
  })
}

function fromRegistry(error: Error, code: string): Failure {
  const { suggestions = [] } = error as { suggestions?: readonly string[] }
  const otherwise = code === 'unknown-model' ? ['tapetree models'] : keyHelp
  return new Failure(exitCodes.noModel, error.message, {
    type: code,
    next: suggestions.length > 0 ? suggestions.map((each) => `tapetree --model ${each}`) : otherwise,
    cause: error,
  })
}

/** Commands that help a user without a key. */
export const keyHelp: readonly string[] = ['tapetree login <provider>', 'tapetree tour']

const problemCodes: Record<string, ExitCode> = {
  'model-not-usable': exitCodes.noModel,
  'not-found': exitCodes.notFound,
  'session-not-found': exitCodes.notFound,
  'entry-not-found': exitCodes.notFound,
  'request-not-found': exitCodes.notFound,
  'folder-not-found': exitCodes.notFound,
  unreachable: exitCodes.notFound,
  'session-owned': exitCodes.ownedElsewhere,
  'not-signed-in': exitCodes.noModel,
  'role-too-small': exitCodes.permissionNeeded,
  'invalid-command': exitCodes.usage,
}

function fromProblem(type: string, message: string, cause: unknown): Failure {
  return new Failure(problemCodes[type] ?? exitCodes.runFailed, message, {
    type,
    next: type === 'model-not-usable' ? keyHelp : [],
    cause,
  })
}
