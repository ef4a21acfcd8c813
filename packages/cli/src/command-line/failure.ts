import { exitCodes, type ExitCode } from './exit-code.ts'
import { jsonText } from '../text/json-text.ts'

export interface FailureDetails {
  /** A machine-readable kind, such as `session-not-found`. */
  type: string
  /** The reason, as a sentence, if the message does not give it. */
  why?: string
  /** Commands to try next, as the user would type them. */
  next?: readonly string[]
  cause?: unknown
}

/** Why a command failed: message, reason and next commands for people, an exit code for scripts. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly code: ExitCode
  readonly type: string
  readonly why: string | undefined
  readonly next: readonly string[]

  constructor(code: ExitCode, message: string, { type, why, next = [], cause }: FailureDetails) {
    super(message, { cause })
    this.code = code
    this.type = type
    this.why = why
    this.next = next
  }
}

export function usageFailure(message: string, next: readonly string[] = ['tapetree --help']): Failure {
  return new Failure(exitCodes.usage, message, { type: 'usage', next })
}

/** As printed on stderr under `--json`. */
export function failureJson(failure: Failure): string {
  return jsonText({ error: errorMembers(failure) })
}

export interface ErrorMembers {
  code: ExitCode
  type: string
  message: string
  why?: string
  next: readonly string[]
}

/** The error as scripts see it. */
export function errorMembers({ code, type, message, why, next }: Failure): ErrorMembers {
  return { code, type, message, ...(why !== undefined && { why }), next }
}
