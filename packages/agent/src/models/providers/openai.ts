import { createOpenAI } from '@ai-sdk/openai'
import { adaptedModel } from './ai-sdk-model.ts'
import type { Model } from '../model.ts'
import { openaiFacts } from '../provider-facts.ts'
import { connectionOf, type ProviderOptions } from './connection.ts'

export interface OpenaiOptions extends ProviderOptions {
  /** Requests with the same key share a cache; one key for each session is a good choice. */
  promptCacheKey?: string
}

/** A model of OpenAI, with the Responses API; nothing is stored there. Default key: `OPENAI_API_KEY`. */
export function openai(options: OpenaiOptions): Model {
  const languageModel = createOpenAI(connectionOf(options, { api: 'openai' })).responses(options.model)
  return adaptedModel({ ...options, provider: 'openai', languageModel, facts: openaiFacts })
}
