import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { Model } from '../model.ts'
import type { OpenaiCompatibleOptions } from './connection.ts'
import { openaiCompatibleModel } from './from-package.ts'

export type { OpenaiCompatibleOptions } from './connection.ts'

/**
 * A model on any server with the Chat Completions format of OpenAI: Ollama, llama.cpp, vLLM, OpenRouter, Groq and many
 * more.
 */
export function openaiCompatible(options: OpenaiCompatibleOptions): Model {
  return openaiCompatibleModel(createOpenAICompatible, options)
}
