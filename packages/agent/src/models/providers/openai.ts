import { createOpenAI } from '@ai-sdk/openai'
import { adaptedModel } from './ai-sdk-model.ts'
import type { Model } from '../model.ts'
import { openaiFacts } from '../provider-facts.ts'
import { connectionOf, type ProviderOptions } from './connection.ts'

export interface OpenaiOptions extends ProviderOptions {
  /** Requests with the same key find the same cache; one for each session is a good choice. */
  promptCacheKey?: string
}

/** A model of OpenAI, by the Responses API; nothing is stored there. The key is taken from `OPENAI_API_KEY` if none is given. */
export function openai(options: OpenaiOptions): Model {
  const languageModel = createOpenAI(connectionOf(options, { api: 'openai' })).responses(options.model)
  return adaptedModel({ ...options, provider: 'openai', languageModel, facts: openaiFacts })
}
