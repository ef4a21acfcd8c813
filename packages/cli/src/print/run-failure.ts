import type { TranscriptError } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { keyHelp } from '../command-line/failure-of.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'
import type { Refusal } from './refuse-requests.ts'
import type { PromptEnd } from './run-watch.ts'

/** Everything that determines the result of a run for a script. */
interface RunEnding {
  sessionId: string
  end: PromptEnd
  /** The state of the session at the end. */
  error: TranscriptError | null
  /** Permissions refused because no user was present. */
  refusals: readonly Refusal[]
  /** Why this process stopped it. */
  stopped: StopReason | undefined
}

/** Why the run was stopped by its caller. `unread`: its output can no longer be written. */
export type StopReason = 'interrupted' | 'timeout' | 'unread'

/** Undefined on success. */
export function failureOfRun({ sessionId, end, error, refusals, stopped }: RunEnding): Failure | undefined {
  const goOn = [goOnWith(sessionId)]
  if (stopped) return stoppedFailure(sessionId, stopped)
  if (end.type === 'held') {
    const next = [`tapetree attach ${sessionId}`]
    return new Failure(exitCodes.runFailed, 'The prompt was not sent.', {
      type: 'held',
      why: harmlessLine(end.reason),
      next,
    })
  }
  if (end.type === 'handled') return undefined
  const { outcome, reason } = end.end
  if (reason?.startsWith('limit:')) {
    return new Failure(exitCodes.limitReached, said(error, 'The run reached a limit.'), {
      type: reason,
      next: goOn,
    })
  }
  if (refusals.length > 0) return permissionNeeded(sessionId, refusals)
  switch (outcome) {
    case 'completed':
      return undefined
    case 'failed':
      return failed(error, reason, goOn)
    case 'aborted':
      return new Failure(exitCodes.runFailed, 'The run was stopped before it was done.', {
        type: 'run-aborted',
        next: goOn,
      })
    case 'abandoned':
      return new Failure(exitCodes.runFailed, 'The run was abandoned.', { type: 'run-abandoned', next: goOn })
    default:
      return outcome satisfies never
  }
}

export function stoppedFailure(sessionId: string, reason: StopReason): Failure {
  const details = { why: `Everything so far is saved in session ${sessionId}.`, next: [goOnWith(sessionId)] }
  switch (reason) {
    case 'interrupted':
      return new Failure(exitCodes.interrupted, 'Interrupted.', { type: 'interrupted', ...details })
    case 'unread':
      return new Failure(exitCodes.interrupted, 'The reader of the output has gone, so the run was stopped.', {
        type: 'output-closed',
        ...details,
      })
    case 'timeout':
      return new Failure(exitCodes.limitReached, 'The run exceeded --timeout and was stopped.', {
        type: 'limit:timeout',
        ...details,
      })
    default:
      return reason satisfies never
  }
}

function goOnWith(sessionId: string): string {
  return `tapetree run --session ${sessionId} "Go on"`
}

function failed(error: TranscriptError | null, reason: string | undefined, goOn: string[]): Failure {
  const message = said(error, 'The run failed.')
  if (reason === 'auth') return new Failure(exitCodes.noModel, message, { type: 'auth', next: keyHelp })
  return new Failure(exitCodes.runFailed, message, { type: reason ?? 'run-failed', next: goOn })
}

function said(error: TranscriptError | null, otherwise: string): string {
  return error && error.message !== '' ? harmless(error.message) : otherwise
}

/** Names the requests, and the rules that would have allowed them. */
function permissionNeeded(sessionId: string, refusals: readonly Refusal[]): Failure {
  const asked = [...new Set(refusals.map(({ title }) => harmlessLine(title)))]
  const rules = [...new Set(refusals.flatMap((refusal) => refusal.rules))]
  const allow = rules.map((rule) => `--allow ${shellWord(harmlessLine(rule))}`)
  const isCovered = refusals.every((refusal) => refusal.rules.length > 0)
  const why = [
    ...asked.slice(1),
    ...(isCovered ? [] : ['A rule cannot allow all of it: use tapetree attach to answer.']),
  ]
  return new Failure(
    exitCodes.permissionNeeded,
    `A permission is required, and no user is present to grant it: ${asked[0]}`,
    {
      type: 'permission-needed',
      ...(why.length > 0 && { why: why.join('\n') }),
      next:
        allow.length > 0
          ? [`tapetree run --session ${sessionId} ${allow.join(' ')} "Go on"`]
          : [`tapetree --session ${sessionId}`],
    },
  )
}

/** Quotes a text as one shell word, for commands that users copy. */
function shellWord(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
