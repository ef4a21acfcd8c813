import type { RunOutcome } from '@tapetree/session'
import type { Transcript } from '@tapetree/session/view'
import { errorMembers, type ErrorMembers, type Failure } from '../command-line/failure.ts'
import { snakeNames } from '../text/json-text.ts'
import type { RunAccount } from './run-account.ts'
import type { PromptEnd } from './run-watch.ts'

/** What a run prints on stdout, and how. */
export interface RunPrinter {
  /** Prints what is new since the last call. */
  print(transcript: Transcript): Promise<void>
  /** A prompt has its answer, or will not get one. */
  answered(result: RunResult): Promise<void>
  /** Nothing more follows. */
  end(): Promise<void>
}

/** What `--json` prints, and the last line of `--jsonl`. */
export interface RunResult {
  session_id: string
  run_id: string | null
  outcome: RunOutcome | 'handled' | 'held'
  /** The text of the last message, if it has any. */
  text: string
  /** The answer as JSON, if a schema was given and the answer matches it. */
  output?: unknown
  usage: Record<string, number>
  /** In US dollars. */
  cost: number
  turns: number
  duration_ms: number
  error: ErrorMembers | null
}

interface ResultParts {
  sessionId: string
  end: PromptEnd
  account: RunAccount
  failure: Failure | undefined
  output?: unknown
}

export function resultOf({ sessionId, end, account, failure, output }: ResultParts): RunResult {
  const { cost, ...tokens } = account.usage
  return {
    session_id: sessionId,
    run_id: end.type === 'run' ? end.end.runId : null,
    outcome: end.type === 'run' ? end.end.outcome : end.type,
    text: end.type === 'handled' ? end.say : account.text,
    ...(output !== undefined && { output }),
    usage: snakeNames(tokens) as Record<string, number>,
    cost,
    turns: account.turns,
    duration_ms: account.durationMs,
    error: failure ? errorMembers(failure) : null,
  }
}
