import { createGoogle } from '@ai-sdk/google'
import type { Model } from '../model.ts'
import type { ProviderOptions } from './connection.ts'
import { googleModel } from './from-package.ts'

export type { ProviderOptions } from './connection.ts'

/** A model of Google, with the Gemini API. Default key: `GOOGLE_GENERATIVE_AI_API_KEY`. */
export function google(options: ProviderOptions): Model {
  return googleModel(createGoogle, options)
}
