import { createAnthropic } from '@ai-sdk/anthropic'
import { adaptedModel } from './ai-sdk-model.ts'
import type { Model } from '../model.ts'
import { anthropicFacts } from '../provider-facts.ts'
import { connectionOf, type ProviderOptions } from './connection.ts'

export type { ProviderOptions } from './connection.ts'

/** A model of Anthropic, with the Messages API. Default key: `ANTHROPIC_API_KEY`. */
export function anthropic(options: ProviderOptions): Model {
  const languageModel = createAnthropic(connectionOf(options, { api: 'anthropic' })).languageModel(options.model)
  return adaptedModel({ ...options, provider: 'anthropic', languageModel, facts: anthropicFacts })
}
