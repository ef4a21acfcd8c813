import fc from 'fast-check'
import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { wait } from './wait.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Whether the promise has settled by now, and how. */
function watch(promise: Promise<void>): { outcome: unknown } {
  const watched: { outcome: unknown } = { outcome: 'waiting' }
  promise.then(
    () => (watched.outcome = 'over'),
    (error: unknown) => (watched.outcome = error),
  )
  return watched
}

test('a wait ends after its time, even beyond the maximum of one timer', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 33 }), async (ms) => {
      const waiting = watch(wait(ms))
      await vi.advanceTimersByTimeAsync(ms - 1)
      expect(waiting.outcome).toBe('waiting')
      await vi.advanceTimersByTimeAsync(1)
      expect(waiting.outcome).toBe('over')
      expect(vi.getTimerCount()).toBe(0)
    }),
    { numRuns: 50, examples: [[2 ** 31 - 1], [2 ** 31], [2 ** 32]] },
  )
})

test('an endless wait ends with its signal', async () => {
  const stop = new AbortController()
  const waiting = watch(wait(Infinity, stop.signal))
  await vi.advanceTimersByTimeAsync(2 ** 33)
  expect(waiting.outcome).toBe('waiting')
  stop.abort('enough')
  await vi.advanceTimersByTimeAsync(0)
  expect(waiting.outcome).toBe('enough')
})

test('an aborted wait rejects with the reason, and leaves no timer', async () => {
  const stop = new AbortController()
  const waiting = watch(wait(2 ** 32, stop.signal))
  await vi.advanceTimersByTimeAsync(2 ** 31)
  stop.abort('changed my mind')
  await vi.advanceTimersByTimeAsync(0)
  expect([waiting.outcome, vi.getTimerCount()]).toEqual(['changed my mind', 0])
})

test('a wait with an aborted signal starts no timer', async () => {
  await expect(wait(1000, AbortSignal.abort('too late'))).rejects.toBe('too late')
  expect(vi.getTimerCount()).toBe(0)
})

test('a finished wait no longer listens to its signal', async () => {
  const { signal } = new AbortController()
  const waiting = wait(5, signal)
  await vi.advanceTimersByTimeAsync(5)
  await waiting
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
