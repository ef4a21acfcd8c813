import { createAnthropic } from '@ai-sdk/anthropic'
import type { Model } from '../model.ts'
import type { ProviderOptions } from './connection.ts'
import { anthropicModel } from './from-package.ts'

export type { ProviderOptions } from './connection.ts'

/** A model of Anthropic, with the Messages API. Default key: `ANTHROPIC_API_KEY`. */
export function anthropic(options: ProviderOptions): Model {
  return anthropicModel(createAnthropic, options)
}
