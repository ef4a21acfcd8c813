import { findProvider } from '@pydantic/genai-prices'
import { expect, test } from 'vitest'
import { knownLimits } from './known-limits.ts'

test('a model is matched by the prefix of its name, the longest prefix first', () => {
  expect(knownLimits('claude-opus-4-5-20251101')).toEqual({ contextTokens: 200_000, outputTokens: 64_000 })
  expect(knownLimits('claude-opus-4-1')).toEqual({ contextTokens: 200_000, outputTokens: 32_000 })
  expect(knownLimits('gpt-5.4-mini')).toEqual({ contextTokens: 400_000, outputTokens: 128_000 })
})

test('the vendor before a slash does not matter', () => {
  expect(knownLimits('openai/gpt-oss-120b')).toEqual({ contextTokens: 131_072, outputTokens: 65_536, hasImages: false })
})

test('an unknown model gets limits that are small enough for most', () => {
  expect(knownLimits('my-own-finetune')).toEqual({ contextTokens: 128_000, outputTokens: 16_384 })
})

test.each(['anthropic', 'openai', 'google', 'mistral', 'x-ai', 'deepseek', 'moonshotai', 'perplexity'])(
  'the guessed window of a model of %s is not larger than the published one',
  (providerId) => {
    const { models = [] } = findProvider({ providerId }) ?? {}
    // A million often means 2 to the power of 20. Models that do not chat are excluded.
    const published = models.flatMap(({ id, context_window: window }) =>
      window ? [{ id, window: window * 1.06 }] : [],
    )
    const chatting = published.filter(
      ({ id }) => !/embed|tts|image|audio|realtime|transcribe|ocr|voxtral|computer/.test(id),
    )
    expect(chatting.length).toBeGreaterThan(2)
    expect(chatting.filter(({ id, window }) => knownLimits(id).contextTokens > window)).toEqual([])
  },
)

test.each([
  ['claude-3-haiku-20240307', 4096],
  ['claude-3-5-sonnet-20241022', 8192],
  ['gpt-4-turbo', 4096],
  ['gemini-2.0-flash', 8192],
  ['deepseek-chat', 8192],
])('a request to %s does not exceed its output limit', (id, outputTokens) => {
  expect(knownLimits(id).outputTokens).toBeLessThanOrEqual(outputTokens)
})

test.each([
  ['deepseek-chat', false],
  ['Qwen3-235B-A22B', false],
  ['qwen3-vl-30b', true],
  ['kimi-k2-instruct', false],
  ['kimi-k2.5', true],
  ['llama3.1:8b', false],
  ['llama-4-scout', true],
  ['glm-4.6', false],
  ['glm-4.5v', true],
  ['grok-3-mini', false],
  ['gpt-4o', true],
])('%s takes images: %s', (id, hasImages) => {
  expect(knownLimits(id).hasImages ?? true).toBe(hasImages)
})
