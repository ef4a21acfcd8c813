// Models of the provider packages, which are optional. This file imports only their types: the caller imports the packages.
import type { createAnthropic } from '@ai-sdk/anthropic'
import type { createGoogle } from '@ai-sdk/google'
import type { createOpenAI } from '@ai-sdk/openai'
import type { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { Model } from '../model.ts'
import { anthropicFacts, googleFacts, openaiCompatibleFacts, openaiFacts } from '../provider-facts.ts'
import { adaptedModel } from './ai-sdk-model.ts'
import { connectionOf, type OpenaiCompatibleOptions, type OpenaiOptions, type ProviderOptions } from './connection.ts'

/** `name`: the provider in messages and in the log, if it is not the usual one of the package. */
type Named<Options> = Options & { name?: string }

export function anthropicModel(create: typeof createAnthropic, options: Named<ProviderOptions>): Model {
  const languageModel = create(connectionOf(options, { api: 'anthropic' })).languageModel(options.model)
  return adaptedModel({ ...options, provider: options.name ?? 'anthropic', languageModel, facts: anthropicFacts })
}

export function googleModel(create: typeof createGoogle, options: Named<ProviderOptions>): Model {
  const languageModel = create(connectionOf(options, { api: 'google' })).languageModel(options.model)
  return adaptedModel({ ...options, provider: options.name ?? 'google', languageModel, facts: googleFacts })
}

export function openaiModel(create: typeof createOpenAI, options: Named<OpenaiOptions>): Model {
  const languageModel = create(connectionOf(options, { api: 'openai' })).responses(options.model)
  return adaptedModel({ ...options, provider: options.name ?? 'openai', languageModel, facts: openaiFacts })
}

export function openaiCompatibleModel(create: typeof createOpenAICompatible, options: OpenaiCompatibleOptions): Model {
  const { name, model } = options
  const { baseURL, queryParams } = splitQuery(options.baseUrl)
  const facts = openaiCompatibleFacts(options)
  const connection = connectionOf(withAzureKey(options), { api: 'openai-compatible', hasThinkTags: facts.hasThinkTags })
  const server = create({ ...connection, name, baseURL, ...(queryParams && { queryParams }), includeUsage: true })
  return adaptedModel({ ...options, provider: name, languageModel: server.chatModel(model), facts })
}

/** Azure before its v1 API accepts a key only in its own header. */
function withAzureKey(options: OpenaiCompatibleOptions): OpenaiCompatibleOptions {
  const { apiKey, baseUrl, headers } = options
  const isAzure = URL.canParse(baseUrl) && new URL(baseUrl).hostname.endsWith('.azure.com')
  return isAzure && apiKey ? { ...options, headers: { 'api-key': apiKey, ...headers } } : options
}

/** A query belongs after the path of each request: `…/deployments/gpt?api-version=…` of Azure before its v1 API. */
function splitQuery(baseUrl: string): { baseURL: string; queryParams?: Record<string, string> } {
  const at = baseUrl.indexOf('?')
  if (at === -1) return { baseURL: baseUrl }
  return { baseURL: baseUrl.slice(0, at), queryParams: Object.fromEntries(new URLSearchParams(baseUrl.slice(at))) }
}
