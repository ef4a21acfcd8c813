import type { ReasoningPolicy } from '@tapetree/session'
import type { Limits } from './limits.ts'
import type { SteerPolicy } from './loop-context.ts'
import { defaultCompaction, type CompactionSettings } from '../summary/compaction.ts'
import { defaultRetry, type RetryPolicy } from './recovery.ts'

export interface RunSettings {
  steerPolicy: SteerPolicy
  runLimits: Limits
  sessionLimits: Limits
  retry: RetryPolicy
  compaction: CompactionSettings
  reasoning: ReasoningPolicy
  maxOutputTokens?: number
  temperature?: number
  /** How long a waiting message is announced before it goes out. */
  followUpDelayMs: number
  /** False: a waiting message goes out only when a person releases it, or prompts after it came. */
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
