import { knownModels } from '../known-models.ts'
import type { Model } from '../model.ts'
import type { ProviderOptions } from '../providers/connection.ts'
import type { ModelProvider, ProviderApi } from './catalogue.ts'
import { RegistryError, type ModelInfo } from './model-info.ts'

export interface MakeModelOptions extends Omit<ProviderOptions, 'model' | 'baseUrl' | 'headers' | 'limits' | 'prices'> {
  promptCacheKey?: string
}

/** Loads the provider package now; it may not be installed. */
export async function makeModel(info: ModelInfo, provider: ModelProvider, options: MakeModelOptions): Promise<Model> {
  const make = await load(provider)
  return make({
    ...options,
    model: info.id,
    name: provider.id,
    baseUrl: provider.baseUrl,
    ...(provider.headers && { headers: provider.headers }),
    limits: { contextTokens: info.contextWindow, outputTokens: info.maxOutputTokens, hasImages: info.images },
    thinkingLevels: sayableLevels(info),
  })
}

type Making = Omit<ProviderOptions, 'baseUrl'> & {
  name: string
  baseUrl: string
  thinkingLevels: ModelInfo['thinkingLevels']
  promptCacheKey?: string
}
type Maker = (options: Making) => Model

const packages: Record<ProviderApi, string> = {
  anthropic: '@ai-sdk/anthropic',
  openai: '@ai-sdk/openai',
  google: '@ai-sdk/google',
  'openai-compatible': '@ai-sdk/openai-compatible',
}

async function load({ name, api }: ModelProvider): Promise<Maker> {
  const make = await import('../providers/from-package.ts')
  // Bundlers accept that a package is missing only if `await import` is written inside `try`.
  try {
    switch (api) {
      case 'anthropic': {
        const { createAnthropic } = await import('@ai-sdk/anthropic')
        return (options) => make.anthropicModel(createAnthropic, options)
      }
      case 'openai': {
        const { createOpenAI } = await import('@ai-sdk/openai')
        return (options) => make.openaiModel(createOpenAI, options)
      }
      case 'google': {
        const { createGoogle } = await import('@ai-sdk/google')
        return (options) => make.googleModel(createGoogle, options)
      }
      case 'openai-compatible':
        break
    }
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    return (options) => make.openaiCompatibleModel(createOpenAICompatible, options)
  } catch (cause) {
    if (!isMissing(cause, packages[api])) throw cause
    throw new RegistryError(
      'missing-package',
      `Models of ${name} need the package ${packages[api]}, which is not installed. Install it beside @tapetree/agent.`,
      { cause },
    )
  }
}

/** Node reports a missing package by a code; in a bundle, the code of the bundler throws an error of its own. */
function isMissing(error: unknown, name: string): boolean {
  const { code = '', message } = error as NodeJS.ErrnoException
  const isAbout = message.includes(`'${name}'`) || message.includes(`"${name}"`)
  return isAbout && (code.endsWith('MODULE_NOT_FOUND') || message.startsWith('Could not resolve'))
}

/**
 * The levels that may be sent as `reasoning_effort`. For listed models it is known whether `off` can be sent; for
 * others `off` sends nothing. A model that does not think never gets a level.
 */
function sayableLevels({ provider, id, thinkingLevels }: ModelInfo): ModelInfo['thinkingLevels'] {
  const spoken = thinkingLevels.filter((level) => level !== 'off')
  const isListed = knownModels.some((known) => known.provider === provider && known.id === id)
  return isListed && spoken.length > 0 ? thinkingLevels : spoken
}
