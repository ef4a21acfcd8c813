import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { adaptedModel } from './ai-sdk-model.ts'
import type { Model, ThinkingLevel } from '../model.ts'
import { openaiCompatibleFacts } from '../provider-facts.ts'
import { connectionOf, type ProviderOptions } from './connection.ts'

export interface OpenaiCompatibleOptions extends ProviderOptions {
  /** The provider name in messages, such as `ollama` or `openrouter`. */
  name: string
  baseUrl: string
  /** The levels that the server accepts as `reasoning_effort`. Default: `low`, `medium` and `high`. */
  thinkingLevels?: readonly ThinkingLevel[]
}

/**
 * A model on any server with the Chat Completions format of OpenAI: Ollama, llama.cpp, vLLM, OpenRouter, Groq and many
 * more.
 */
export function openaiCompatible(options: OpenaiCompatibleOptions): Model {
  const { name, model } = options
  const { baseURL, queryParams } = splitQuery(options.baseUrl)
  const facts = openaiCompatibleFacts(options)
  const connection = connectionOf(withAzureKey(options), { api: 'openai-compatible', hasThinkTags: facts.hasThinkTags })
  const server = createOpenAICompatible({
    ...connection,
    name,
    baseURL,
    ...(queryParams && { queryParams }),
    includeUsage: true,
  })
  return adaptedModel({ ...options, provider: name, languageModel: server.chatModel(model), facts })
}

/** Azure before its v1 API accepts a key only in its own header. */
function withAzureKey(options: OpenaiCompatibleOptions): OpenaiCompatibleOptions {
  const { apiKey, baseUrl, headers } = options
  const isAzure = URL.canParse(baseUrl) && new URL(baseUrl).hostname.endsWith('.azure.com')
  return isAzure && apiKey !== undefined ? { ...options, headers: { 'api-key': apiKey, ...headers } } : options
}

/** A query belongs after the path of each request: `…/deployments/gpt?api-version=…` of Azure before its v1 API. */
function splitQuery(baseUrl: string): { baseURL: string; queryParams?: Record<string, string> } {
  const at = baseUrl.indexOf('?')
  if (at === -1) return { baseURL: baseUrl }
  return { baseURL: baseUrl.slice(0, at), queryParams: Object.fromEntries(new URLSearchParams(baseUrl.slice(at))) }
}
