import { knownModels, type KnownModel } from '../models/known-models.ts'
import type { ModelInfo } from './model-info.ts'

/** Which of the provider files makes its models. */
export type ProviderApi = 'anthropic' | 'openai' | 'google' | 'openai-compatible'

/** Who serves models, and how it is reached. */
export interface ModelProvider {
  id: string
  name: string
  api: ProviderApi
  baseUrl: string
  /** The first is the one to set; the others are read as well. Empty where no key is needed. */
  keyVariables: readonly string[]
  /** What to ask for, below the base URL, to see whether a key is accepted. */
  keyCheckPath?: string
  headers?: Readonly<Record<string, string>> | undefined
  /** Its name in genai-prices. */
  pricesId?: string
  /** The id of the model that a new session uses if the user names none. */
  defaultModel?: string
}

/**
 * The default models are chosen by hand: the current generation, good at coding with tools, at a middle price. When `known-models.ts`
 * is written anew, go through them again.
 */
export const catalogueProviders: readonly (ModelProvider & { defaultModel: string })[] = [
  {
    id: 'anthropic',
    name: 'Anthropic',
    api: 'anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    keyVariables: ['ANTHROPIC_API_KEY'],
    pricesId: 'anthropic',
    defaultModel: 'claude-sonnet-5-5',
  },
  {
    id: 'openai',
    name: 'OpenAI',
    api: 'openai',
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    pricesId: 'openai',
    defaultModel: 'gpt-6.1-sol',
  },
  {
    id: 'google',
    name: 'Google',
    api: 'google',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    pricesId: 'google',
    defaultModel: 'gemini-4-argon',
  },
  compatible('xai', 'xAI', 'https://api.x.ai/v1', {
    keyVariables: ['XAI_API_KEY'],
    pricesId: 'x-ai',
    defaultModel: 'grok-4.7',
  }),
  compatible('deepseek', 'DeepSeek', 'https://api.deepseek.com/v1', {
    keyVariables: ['DEEPSEEK_API_KEY'],
    defaultModel: 'deepseek-v4-pro',
  }),
  compatible('mistral', 'Mistral', 'https://api.mistral.ai/v1', {
    keyVariables: ['MISTRAL_API_KEY'],
    defaultModel: 'mistral-large-4',
  }),
  compatible('moonshotai', 'Moonshot AI', 'https://api.moonshot.ai/v1', {
    keyVariables: ['MOONSHOT_API_KEY'],
    defaultModel: 'kimi-k3.1-pro',
  }),
  compatible('zai', 'Z.ai', 'https://api.z.ai/api/paas/v4', { keyVariables: ['ZAI_API_KEY'], defaultModel: 'glm-5.3' }),
  compatible('groq', 'Groq', 'https://api.groq.com/openai/v1', {
    keyVariables: ['GROQ_API_KEY'],
    defaultModel: 'qwen/qwen3.8-27b',
  }),
  compatible('cerebras', 'Cerebras', 'https://api.cerebras.ai/v1', {
    keyVariables: ['CEREBRAS_API_KEY'],
    defaultModel: 'qwen-3.8-27b',
  }),
  compatible('openrouter', 'OpenRouter', 'https://openrouter.ai/api/v1', {
    keyVariables: ['OPENROUTER_API_KEY'],
    defaultModel: 'anthropic/claude-sonnet-5.5',
    // Its list of models is open to everybody.
    keyCheckPath: '/key',
  }),
]

/** Without prices: they depend on the day. */
export function catalogueModels(provider: ModelProvider): ModelInfo[] {
  return knownModels.filter((known) => known.provider === provider.id).map((known) => infoOf(known, provider))
}

function infoOf(known: KnownModel, provider: ModelProvider): ModelInfo {
  const [keyVariable] = provider.keyVariables
  return {
    provider: provider.id,
    id: known.id,
    name: known.name,
    contextWindow: known.contextTokens,
    maxOutputTokens: known.outputTokens,
    thinkingLevels: known.thinking,
    images: known.hasImages,
    ...(keyVariable !== undefined && { keyVariable }),
    source: 'catalogue',
  }
}

function compatible(
  id: string,
  name: string,
  baseUrl: string,
  more: Pick<ModelProvider, 'keyVariables'> & { defaultModel: string } & Partial<ModelProvider>,
): ModelProvider & { defaultModel: string } {
  return { id, name, api: 'openai-compatible', baseUrl, pricesId: id, ...more }
}
