import { expect, test } from 'vitest'
import { costAt } from './model-prices.ts'

test('cache reads and writes have their own prices', () => {
  const usage = { inputTokens: 1_000_000, cacheReadTokens: 600_000, cacheWriteTokens: 100_000, outputTokens: 10_000 }
  expect(costAt({ input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 }, usage)).toBeCloseTo(
    1.5 + 0.3 + 0.625 + 0.25,
  )
})

test('without cache prices the input price applies, and without counts there is no cost', () => {
  expect(costAt({ input: 5, output: 25 }, { inputTokens: 1_000_000, cacheReadTokens: 600_000 })).toBeCloseTo(5)
  expect(costAt({ input: 5, output: 25 }, {})).toBe(0)
})

test('a long request has the prices of the highest tier that it reaches, for all of it', () => {
  const prices = {
    input: 1,
    output: 10,
    tiers: [
      { inputTokensAbove: 500_000, input: 4, output: 40 },
      { inputTokensAbove: 200_000, input: 2, output: 20, cacheRead: 0.5 },
    ],
  }
  expect(costAt(prices, { inputTokens: 200_000, outputTokens: 100_000 })).toBeCloseTo(0.2 + 1)
  expect(costAt(prices, { inputTokens: 300_000, cacheReadTokens: 100_000, outputTokens: 100_000 })).toBeCloseTo(
    0.4 + 0.05 + 2,
  )
  expect(costAt(prices, { inputTokens: 600_000 })).toBeCloseTo(2.4)
})
