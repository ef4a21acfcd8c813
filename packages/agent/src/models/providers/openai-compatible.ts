import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { aiSdkModel } from '../ai-sdk-model.ts'
import type { Model, ThinkingLevel } from '../model.ts'
import { openaiCompatibleFacts } from '../provider-facts.ts'
import { connectionOf } from './connection.ts'
import type { ProviderOptions } from './provider-options.ts'

export interface OpenaiCompatibleOptions extends ProviderOptions {
  /** Who it is, such as `ollama` or `openrouter`: the provider that messages name. */
  name: string
  baseUrl: string
  /** The levels that the server accepts as `reasoning_effort`: `low`, `medium` and `high` if absent. */
  thinkingLevels?: readonly ThinkingLevel[]
}

/** A model behind any server that speaks OpenAI's Chat Completions: Ollama, llama.cpp, vLLM, OpenRouter, Groq and many more. */
export function openaiCompatible(options: OpenaiCompatibleOptions): Model {
  const { name, model, baseUrl } = options
  const facts = openaiCompatibleFacts(options)
  const connection = connectionOf(options, { api: 'openai-compatible', hasThinkTags: facts.hasThinkTags })
  const server = createOpenAICompatible({ ...connection, name, baseURL: baseUrl, includeUsage: true })
  return aiSdkModel({ ...options, provider: name, languageModel: server.chatModel(model), facts })
}
