import { createAnthropic } from '@ai-sdk/anthropic'
import { adaptedModel } from './ai-sdk-model.ts'
import type { Model } from '../model.ts'
import { anthropicFacts } from '../provider-facts.ts'
import { connectionOf, type ProviderOptions } from './connection.ts'

export type { ProviderOptions } from './connection.ts'

/** A model of Anthropic, by the Messages API. The key is taken from `ANTHROPIC_API_KEY` if none is given. */
export function anthropic(options: ProviderOptions): Model {
  const languageModel = createAnthropic(connectionOf(options, { api: 'anthropic' })).languageModel(options.model)
  return adaptedModel({ ...options, provider: 'anthropic', languageModel, facts: anthropicFacts })
}
