import type { ModelError, ModelErrorKind } from '../models/model.ts'

export interface RetryPolicy {
  maxRetries: number
  baseMs: number
  capMs: number
  /** The longest wait that a provider may ask for. If it asks for more, the run gives up. */
  longestRetryAfterMs: number
  /** Lengthens a wait by up to this fraction; never shortens it. */
  jitter: number
}

export const defaultRetry: RetryPolicy = {
  maxRetries: 3,
  baseMs: 2000,
  capMs: 60_000,
  longestRetryAfterMs: 10 * 60_000,
  jitter: 0.2,
}

/** The recovery steps since the last answer. */
export interface RecoveryHistory {
  retries: number
  /** The context was compacted because it did not fit. */
  wasCompacted: boolean
  /** An empty answer was retried. */
  hadEmptyAnswer?: boolean
  /** A fallback model is available. */
  hasFallback?: boolean
  /** In [0, 1), for the jitter. */
  random: number
}

export type RecoveryStep =
  | { type: 'retry'; delayMs: number }
  | { type: 'compact' }
  | { type: 'fallback' }
  | { type: 'give-up'; message: string }

const passing = new Set<ModelErrorKind>(['rate-limited', 'overloaded', 'network', 'empty-answer'])

/** Decides how to recover from a failed model call. Pure. */
export function recoverFrom(error: ModelError, history: RecoveryHistory, policy: RetryPolicy): RecoveryStep {
  if (error.kind === 'context-overflow') {
    if (!history.wasCompacted) return { type: 'compact' }
    return { type: 'give-up', message: `The context does not fit, and compacting it did not help. ${error.message}` }
  }
  if (error.kind === 'empty-answer' && history.hadEmptyAnswer)
    return { type: 'give-up', message: `${error.message} A second try did not help.` }
  if (error.kind === 'quota' && history.hasFallback) return { type: 'fallback' }
  if (!passing.has(error.kind)) return { type: 'give-up', message: error.message }
  const { retryAfterMs = 0 } = error
  const canFallBack = error.kind === 'overloaded' && history.hasFallback
  if (retryAfterMs > policy.longestRetryAfterMs) {
    if (canFallBack) return { type: 'fallback' }
    const minutes = Math.ceil(retryAfterMs / 60_000)
    return { type: 'give-up', message: `${error.message} The provider asks to try again in ${minutes} minutes.` }
  }
  if (history.retries >= policy.maxRetries) {
    if (canFallBack) return { type: 'fallback' }
    return { type: 'give-up', message: `${error.message} (${history.retries} retries did not help.)` }
  }
  const backoff = Math.min(policy.capMs, policy.baseMs * 2 ** history.retries)
  const delayMs = Math.round(Math.max(retryAfterMs, backoff) * (1 + policy.jitter * history.random))
  return { type: 'retry', delayMs }
}
