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

const makers: Record<ProviderApi, { package: string; load: () => Promise<Maker> }> = {
  anthropic: {
    package: '@ai-sdk/anthropic',
    load: async () => (await import('../providers/anthropic.ts')).anthropic,
  },
  openai: { package: '@ai-sdk/openai', load: async () => (await import('../providers/openai.ts')).openai },
  google: { package: '@ai-sdk/google', load: async () => (await import('../providers/google.ts')).google },
  'openai-compatible': {
    package: '@ai-sdk/openai-compatible',
    load: async () => (await import('../providers/openai-compatible.ts')).openaiCompatible,
  },
}

async function load({ name, api }: ModelProvider): Promise<Maker> {
  const maker = makers[api]
  try {
    return await maker.load()
  } catch (cause) {
    if (!isMissing(cause, maker.package)) throw cause
    throw new RegistryError(
      'missing-package',
      `Models of ${name} need the package ${maker.package}, which is not installed. Install it beside @tapetree/agent.`,
      { cause },
    )
  }
}

function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ERR_MODULE_NOT_FOUND' && message.includes(`'${name}'`)
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
