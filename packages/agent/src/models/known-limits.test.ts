import { expect, test } from 'vitest'
import { knownLimits } from './known-limits.ts'

test('a model is known by how its name begins, the longest beginning first', () => {
  expect(knownLimits('claude-opus-4-5-20251101')).toEqual({ contextTokens: 200_000, outputTokens: 64_000 })
  expect(knownLimits('claude-opus-4-1')).toEqual({ contextTokens: 200_000, outputTokens: 32_000 })
  expect(knownLimits('gpt-5.4-mini')).toEqual({ contextTokens: 400_000, outputTokens: 128_000 })
})

test('the maker before a slash does not matter', () => {
  expect(knownLimits('openai/gpt-oss-120b')).toEqual({ contextTokens: 131_072, outputTokens: 65_536, hasImages: false })
})

test('a model that nobody knows has limits that are small enough for most', () => {
  expect(knownLimits('my-own-finetune')).toEqual({ contextTokens: 128_000, outputTokens: 16_384 })
})
