import { describe, expect, test } from 'vitest'
import { ModelError, type ModelErrorKind } from '../models/model.ts'
import { defaultRetry, recoverFrom, type RecoveryHistory } from './recovery.ts'

const fresh: RecoveryHistory = { retries: 0, wasCompacted: false, random: 0 }
const after = (retries: number): RecoveryHistory => ({ ...fresh, retries })
const failure = (kind: ModelErrorKind, retryAfterMs?: number) => new ModelError(kind, 'It failed.', { retryAfterMs })

describe('recovery', () => {
  test.each(['rate-limited', 'overloaded', 'network'] as const)('waits and retries when %s', (kind) => {
    const delays = [0, 1, 2].map((retries) => recoverFrom(failure(kind), after(retries), defaultRetry))
    expect(delays).toEqual([2000, 4000, 8000].map((delayMs) => ({ type: 'retry', delayMs })))
    expect(recoverFrom(failure(kind), after(3), defaultRetry)).toMatchObject({ type: 'give-up' })
  })

  test.each(['auth', 'quota', 'refused', 'invalid-request', 'unknown'] as const)('gives up at once when %s', (kind) => {
    expect(recoverFrom(failure(kind), fresh, defaultRetry)).toEqual({ type: 'give-up', message: 'It failed.' })
  })

  test('retries an empty answer once, whatever was retried before it', () => {
    expect(recoverFrom(failure('empty-answer'), after(1), defaultRetry)).toMatchObject({ type: 'retry' })
    const again = recoverFrom(failure('empty-answer'), { ...after(1), hadEmptyAnswer: true }, defaultRetry)
    expect(again).toEqual({ type: 'give-up', message: 'It failed. A second try did not help.' })
  })

  test('compacts once when the context does not fit', () => {
    expect(recoverFrom(failure('context-overflow'), fresh, defaultRetry)).toEqual({ type: 'compact' })
    const again = recoverFrom(failure('context-overflow'), { ...fresh, wasCompacted: true }, defaultRetry)
    expect(again).toMatchObject({ type: 'give-up' })
  })

  test('waits as long as the provider asks if that is longer', () => {
    expect(recoverFrom(failure('rate-limited', 20_000), fresh, defaultRetry)).toEqual({
      type: 'retry',
      delayMs: 20_000,
    })
    expect(recoverFrom(failure('rate-limited', 500), fresh, defaultRetry)).toEqual({ type: 'retry', delayMs: 2000 })
  })

  test('does not wait longer than ten minutes, and says when to try again', () => {
    const step = recoverFrom(failure('rate-limited', 11 * 60_000), fresh, defaultRetry)
    expect(step).toEqual({ type: 'give-up', message: 'It failed. The provider asks to try again in 11 minutes.' })
  })

  test('never waits longer than the cap unless the provider asks for it', () => {
    const patient = { ...defaultRetry, maxRetries: 20 }
    expect(recoverFrom(failure('network'), after(12), patient)).toEqual({ type: 'retry', delayMs: 60_000 })
  })

  test('jitter lengthens a wait and never shortens it', () => {
    const step = recoverFrom(failure('rate-limited', 20_000), { ...fresh, random: 0.5 }, defaultRetry)
    expect(step).toEqual({ type: 'retry', delayMs: 22_000 })
  })
  test('switches to the fallback model at once when the quota is exhausted', () => {
    expect(recoverFrom(failure('quota'), { ...fresh, hasFallback: true }, defaultRetry)).toEqual({ type: 'fallback' })
  })

  test('switches to the fallback model when a provider stays overloaded, or asks for a long wait', () => {
    const tried = { ...after(defaultRetry.maxRetries), hasFallback: true }
    expect(recoverFrom(failure('overloaded'), { ...fresh, hasFallback: true }, defaultRetry).type).toBe('retry')
    expect(recoverFrom(failure('overloaded'), tried, defaultRetry)).toEqual({ type: 'fallback' })
    const long = failure('overloaded', defaultRetry.longestRetryAfterMs + 1)
    expect(recoverFrom(long, { ...fresh, hasFallback: true }, defaultRetry)).toEqual({ type: 'fallback' })
    expect(recoverFrom(failure('rate-limited'), tried, defaultRetry)).toMatchObject({ type: 'give-up' })
  })
})
