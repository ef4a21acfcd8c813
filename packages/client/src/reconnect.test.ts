import { describe, expect, test } from 'vitest'
import { closeCodes } from './protocol/frames.ts'
import { afterEnd, type ConnectionEnd } from './reconnect.ts'

const cut: ConnectionEnd = { code: 1006, reason: '', attachedMs: 0 }

describe('after the end of a connection', () => {
  test('the next attempt comes after 0.5 s, doubling to 30 s', () => {
    const delays: number[] = []
    let failures = 0
    for (let round = 0; round < 9; round++) {
      const next = afterEnd(cut, failures, () => 1)
      if (next.type === 'give-up') throw new Error(next.reason)
      delays.push(next.delayMs)
      failures = next.failures
    }
    expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  })

  test('the delay has full jitter, so that clients do not reconnect all at once', () => {
    expect(afterEnd(cut, 3, () => 0)).toEqual({ type: 'again', delayMs: 0, failures: 4 })
    expect(afterEnd(cut, 3, () => 0.25)).toEqual({ type: 'again', delayMs: 1000, failures: 4 })
  })

  test('a connection that lasted is not a failure, one that was cut at once is', () => {
    expect(afterEnd({ ...cut, attachedMs: 5000 }, 6, () => 1)).toEqual({ type: 'again', delayMs: 500, failures: 1 })
    expect(afterEnd({ ...cut, attachedMs: 4999 }, 6, () => 1)).toEqual({ type: 'again', delayMs: 30_000, failures: 7 })
  })

  test('the server may ask for more time', () => {
    expect(afterEnd({ ...cut, retryAfterMs: 700 }, 0, () => 0.5)).toMatchObject({ delayMs: 950 })
  })

  test('there is no next attempt if it would be rejected again', () => {
    const outcomes = Object.entries(closeCodes).map(([name, code]) => [name, afterEnd({ ...cut, code }, 0, () => 0)])
    expect(outcomes.filter(([, next]) => (next as { type: string }).type === 'give-up')).toEqual([
      ['auth', { type: 'give-up', reason: 'unauthorized' }],
      ['origin', { type: 'give-up', reason: 'forbidden' }],
      ['gone', { type: 'give-up', reason: 'gone' }],
      ['replaced', { type: 'give-up', reason: 'replaced' }],
    ])
  })
})
