import type { Model } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { google } from '@tapetree/agent/models/google'
import { openai } from '@tapetree/agent/models/openai'
import { openaiCompatible } from '@tapetree/agent/models/openai-compatible'
import type { FakeApi, FakeHost, FakeProvider } from '@tapetree/agent/testing'

/** A model of a provider or a compatible host. */
export interface Subject {
  api: FakeApi
  provider: string
  model: string
  host?: FakeHost
  prices: SubjectPrices
}

/** US dollars for a million tokens. */
export interface SubjectPrices extends Rates {
  /** For every token of a request with more input than this. */
  long?: Rates & { above: number }
}

interface Rates {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
}

const cheap: SubjectPrices = { input: 0.25, output: 1.1, cacheRead: 0.025, cacheWrite: 0.25 }
const dear: SubjectPrices = { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 }
const dearWhenLong: SubjectPrices = {
  ...{ input: 3, output: 15, cacheRead: 0.75, cacheWrite: 3 },
  long: { above: 2500, input: 6, output: 30, cacheRead: 1.5, cacheWrite: 6 },
}

export const subjects: readonly Subject[] = [
  { api: 'anthropic', provider: 'anthropic', model: 'claude-opus-5', prices: dear },
  { api: 'anthropic', provider: 'anthropic', model: 'claude-sonnet-4-5', prices: dearWhenLong },
  { api: 'openai', provider: 'openai', model: 'gpt-5.5', prices: dear },
  { api: 'google', provider: 'google', model: 'gemini-3.1-pro-preview', prices: dearWhenLong },
  { api: 'google', provider: 'google', model: 'gemini-2.5-flash', prices: cheap },
  { api: 'openaiCompatible', provider: 'local', model: 'qwen3-coder', prices: cheap },
  hosted('groq', 'openai/gpt-oss-120b'),
  hosted('cerebras', 'gpt-oss-120b'),
  hosted('mistral', 'magistral-medium-latest'),
  hosted('deepseek', 'deepseek-v4-pro'),
  hosted('moonshotai', 'kimi-k3.1-pro'),
  hosted('openrouter', 'google/gemini-3.1-pro-preview', dearWhenLong),
  hosted('xai', 'grok-4.7', dearWhenLong),
  hosted('zai', 'glm-5.3'),
  hosted('together', 'deepseek-ai/DeepSeek-V3.2'),
  hosted('fireworks', 'accounts/fireworks/models/glm-5'),
  hosted('ollama', 'qwen3'),
  hosted('lmstudio', 'qwen3'),
  hosted('llamacpp', 'qwen3'),
  hosted('vllm', 'Qwen/Qwen3-32B'),
]

/** Every way to switch from one to another. */
export const pairs: readonly [from: Subject, to: Subject][] = subjects.flatMap((from) =>
  subjects.flatMap((to): [Subject, Subject][] => (from === to ? [] : [[from, to]])),
)

function hosted(host: FakeHost, model: string, prices = cheap): Subject {
  return { api: 'openaiCompatible', provider: host, model, host, prices }
}

export function openSubject(
  { api, model, provider: name, host, prices: { long, ...rates } }: Subject,
  { fake, hasSocket }: { fake: FakeProvider; hasSocket: boolean },
): Model {
  const baseUrl = fake.baseUrl(api, host === undefined ? {} : { host })
  const prices = { ...rates, ...(long && { tiers: [{ ...long, inputTokensAbove: long.above }] }) }
  const options = { model, apiKey: 'test', baseUrl, prices, ...(!hasSocket && { fetch: fake.fetch }) }
  switch (api) {
    case 'anthropic':
      return anthropic(options)
    case 'openai':
      return openai(options)
    case 'google':
      return google(options)
    default:
      return openaiCompatible({ ...options, name })
  }
}

export function nameOf({ provider, model }: Subject): string {
  return `${provider}/${model}`
}
