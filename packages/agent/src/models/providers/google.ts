import { createGoogle } from '@ai-sdk/google'
import { adaptedModel } from './ai-sdk-model.ts'
import type { Model } from '../model.ts'
import { googleFacts } from '../provider-facts.ts'
import { connectionOf, type ProviderOptions } from './connection.ts'

export type { ProviderOptions } from './connection.ts'

/** A model of Google, with the Gemini API. Default key: `GOOGLE_GENERATIVE_AI_API_KEY`. */
export function google(options: ProviderOptions): Model {
  const languageModel = createGoogle(connectionOf(options, { api: 'google' })).languageModel(options.model)
  return adaptedModel({ ...options, provider: 'google', languageModel, facts: googleFacts })
}
