import { createOpenAI } from '@ai-sdk/openai'
import type { Model } from '../model.ts'
import type { OpenaiOptions } from './connection.ts'
import { openaiModel } from './from-package.ts'

export type { OpenaiOptions } from './connection.ts'

/** A model of OpenAI, with the Responses API; nothing is stored there. Default key: `OPENAI_API_KEY`. */
export function openai(options: OpenaiOptions): Model {
  return openaiModel(createOpenAI, options)
}
