import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Ticker } from './ticker.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test.each([
  { functions: 300, periodMs: 32 },
  { functions: 1000, periodMs: 100 },
])('$functions functions are each called every $periodMs ms, and few of them in the same turn', async (given) => {
  const ticker = new Ticker(32)
  let inThisTurn = 0
  let mostInATurn = 0
  const counts = Array.from({ length: given.functions }, () => 0)
  const removes = counts.map((_, index) =>
    ticker.add(() => {
      counts[index] = (counts[index] ?? 0) + 1
      inThisTurn++
      mostInATurn = Math.max(mostInATurn, inThisTurn)
    }),
  )
  for (let ms = 0; ms < 10 * given.periodMs; ms++) {
    inThisTurn = 0
    await vi.advanceTimersByTimeAsync(1)
  }
  expect(mostInATurn).toBeLessThan(100)
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(9)
  expect(Math.max(...counts)).toBeLessThanOrEqual(11)
  for (const remove of removes) remove()
})

test('an empty ticker keeps no timer', async () => {
  const ticker = new Ticker(32)
  const calls: string[] = []
  const remove = ticker.add(() => {
    calls.push('once')
    remove()
  })
  await vi.advanceTimersByTimeAsync(200)
  expect({ calls, timers: vi.getTimerCount() }).toEqual({ calls: ['once'], timers: 0 })
  const removeAgain = ticker.add(() => void calls.push('again'))
  await vi.advanceTimersByTimeAsync(40)
  removeAgain()
  expect(calls).toContain('again')
})
