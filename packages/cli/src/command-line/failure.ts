import { exitCodes, type ExitCode } from './exit-code.ts'
import { jsonText } from '../text/json-text.ts'

export interface FailureDetails {
  /** A name for the kind, such as `session-not-found`: what a program decides by. */
  type: string
  /** Why it is so, where the message does not say. A sentence. */
  why?: string
  /** Commands that help, as they would be typed. */
  next?: readonly string[]
  cause?: unknown
}

/** What a command could not do: said as what, why and the next command, and told to a script by its exit code. */
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

/** As it stands on stderr under `--json`. */
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

/** What a script is told of it. */
export function errorMembers({ code, type, message, why, next }: Failure): ErrorMembers {
  return { code, type, message, ...(why !== undefined && { why }), next }
}
