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
}

export const subjects: readonly Subject[] = [
  { api: 'anthropic', provider: 'anthropic', model: 'claude-opus-5' },
  { api: 'anthropic', provider: 'anthropic', model: 'claude-sonnet-4-5' },
  { api: 'openai', provider: 'openai', model: 'gpt-5.5' },
  { api: 'google', provider: 'google', model: 'gemini-3.1-pro-preview' },
  { api: 'google', provider: 'google', model: 'gemini-2.5-flash' },
  { api: 'openaiCompatible', provider: 'local', model: 'qwen3-coder' },
  hosted('groq', 'openai/gpt-oss-120b'),
  hosted('cerebras', 'gpt-oss-120b'),
  hosted('mistral', 'magistral-medium-latest'),
  hosted('deepseek', 'deepseek-v4-pro'),
  hosted('moonshotai', 'kimi-k3.1-pro'),
  hosted('openrouter', 'google/gemini-3.1-pro-preview'),
  hosted('xai', 'grok-4.7'),
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

function hosted(host: FakeHost, model: string): Subject {
  return { api: 'openaiCompatible', provider: host, model, host }
}

export function openSubject({ api, model, provider: name, host }: Subject, fake: FakeProvider): Model {
  const options = { model, apiKey: 'test', baseUrl: fake.baseUrl(api, host === undefined ? {} : { host }) }
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
