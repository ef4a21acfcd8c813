import type { RunOutcome } from '@tapetree/session'
import type { ReasoningPolicy } from '@tapetree/session/view'
import type { Limits } from './limits.ts'
import { defaultCompaction, type CompactionSettings } from '../summary/compaction.ts'
import { defaultRetry, type RetryPolicy } from './recovery.ts'

/**
 * What a steer does to the tool calls of an answer. `skip-remaining` skips calls that have not started, `after-batch` runs all calls
 * first, `interrupt` also stops the running ones.
 */
export type SteerPolicy = 'skip-remaining' | 'after-batch' | 'interrupt'

export interface RunSettings {
  steerPolicy: SteerPolicy
  runLimits: Limits
  sessionLimits: Limits
  retry: RetryPolicy
  compaction: CompactionSettings
  reasoning: ReasoningPolicy
  maxOutputTokens?: number
  temperature?: number
  /** How long a queued message is announced before it is delivered. */
  followUpDelayMs: number
  /** If false, a queued message is delivered only after a person releases it, or sends a later prompt. */
  sendsFollowUps: boolean
}

export const defaultRunSettings: RunSettings = {
  steerPolicy: 'skip-remaining',
  runLimits: { logBytesPerTurn: 64 * 1024 * 1024 },
  sessionLimits: {},
  retry: defaultRetry,
  compaction: defaultCompaction,
  reasoning: 'auto',
  followUpDelayMs: 0,
  sendsFollowUps: true,
}

/** How a run ended. */
export interface RunEnd {
  runId: string
  outcome: RunOutcome
  /** Why it did not complete: the kind of the error, `limit:turns` or another limit, or `repeating-calls`. */
  reason?: string
  message?: string
}
