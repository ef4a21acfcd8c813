import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { settledWithin, untilAborted, withDeadline } from './deadline.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const never = new Promise<never>(() => undefined)
const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

describe('of settling, timeout and abort', () => {
  test('the first one is reported, and no timer and no listener are left', async () => {
    const time = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(Infinity))
    await fc.assert(
      fc.asyncProperty(time, time, time, fc.boolean(), async (settleMs, lateMs, abortMs, isRejected) => {
        fc.pre(new Set([settleMs, lateMs, abortMs]).size === 3)
        const stop = new AbortController()
        const work = settleMs === Infinity ? never : after(settleMs)
        const promise = work.then(() => (isRejected ? Promise.reject(new Error('broken')) : 'done'))
        if (abortMs !== Infinity) void after(abortMs).then(() => stop.abort())
        const outcome = settledWithin(promise, { ms: lateMs, signal: stop.signal })
        const first = Math.min(settleMs, lateMs, abortMs)
        await vi.advanceTimersByTimeAsync(first)
        expect(await outcome).toBe(first === settleMs ? 'settled' : first === lateMs ? 'late' : 'aborted')
        expect(getEventListeners(stop.signal, 'abort')).toEqual([])
        await vi.advanceTimersByTimeAsync(10)
        expect(vi.getTimerCount()).toBe(0)
      }),
    )
  })

  test('a rejection clears the timer as well', async () => {
    expect(await settledWithin(Promise.reject(new Error('broken')), { ms: 1000 })).toBe('settled')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a signal that is aborted already starts no timer', async () => {
    expect(await settledWithin(never, { ms: 1000, signal: AbortSignal.abort() })).toBe('aborted')
    expect(vi.getTimerCount()).toBe(0)
  })
})

test("a promise with a signal gives its outcome, or the signal's reason", async () => {
  const stop = new AbortController()
  expect(await untilAborted(Promise.resolve('done'), stop.signal)).toBe('done')
  await expect(untilAborted(Promise.reject(new Error('broken')), stop.signal)).rejects.toThrow('broken')
  const waiting = untilAborted(never, stop.signal)
  stop.abort('enough')
  await expect(waiting).rejects.toBe('enough')
})

describe('work with a deadline', () => {
  const late = (): Error => new Error('It took too long.')

  test('returns its outcome if it is in time', async () => {
    expect(await withDeadline({ ms: 1000, late }, () => Promise.resolve('done'))).toBe('done')
    await expect(withDeadline({ ms: 1000, late }, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('is aborted and abandoned on timeout, even if it ignores its signal', async () => {
    let given: AbortSignal | undefined
    const outcome = withDeadline({ ms: 1000, late }, (signal) => ((given = signal), never))
    const rejected = expect(outcome).rejects.toThrow('It took too long.')
    await vi.advanceTimersByTimeAsync(1000)
    await rejected
    expect(given?.reason).toEqual(late())
  })

  test("is aborted with the signal's reason, and not started if that was aborted before", async () => {
    const stop = new AbortController()
    const outcome = withDeadline({ ms: 1000, late, signal: stop.signal }, () => never)
    stop.abort('enough')
    await expect(outcome).rejects.toBe('enough')
    const begin = vi.fn<() => Promise<never>>(() => never)
    await expect(withDeadline({ ms: 1000, late, signal: stop.signal }, begin)).rejects.toBe('enough')
    expect(begin).not.toHaveBeenCalled()
  })
})
