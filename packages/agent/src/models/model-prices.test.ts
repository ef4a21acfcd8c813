import { expect, test } from 'vitest'
import { costAt } from './model-prices.ts'

test('what was read from the cache or written to it has prices of its own', () => {
  const usage = { inputTokens: 1_000_000, cacheReadTokens: 600_000, cacheWriteTokens: 100_000, outputTokens: 10_000 }
  expect(costAt({ input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 }, usage)).toBeCloseTo(
    1.5 + 0.3 + 0.625 + 0.25,
  )
})

test('without such prices it costs what all input costs, and without counts nothing', () => {
  expect(costAt({ input: 5, output: 25 }, { inputTokens: 1_000_000, cacheReadTokens: 600_000 })).toBeCloseTo(5)
  expect(costAt({ input: 5, output: 25 }, {})).toBe(0)
})
