import { knownLimits } from '../known-limits.ts'
import { thinkingLevels, type ThinkingLevel } from '../model.ts'
import type { ModelPrices } from '../model-prices.ts'
import type { ModelProvider, ProviderApi } from './catalogue.ts'
import { RegistryError, type ModelInfo } from './model-info.ts'

/** A provider of the user's own, or what the user changes in one of the catalogue: what is not said is as it is there. */
export interface ProviderAddition {
  name?: string
  /** Whose wire format it speaks: OpenAI's Chat Completions if absent. */
  api?: ProviderApi
  baseUrl?: string
  /** The environment variable with its key; without one it needs none. */
  keyVariable?: string
  headers?: Readonly<Record<string, string>>
  models?: readonly ModelAddition[]
}

interface ModelAddition {
  id: string
  name?: string
  contextTokens?: number
  outputTokens?: number
  thinkingLevels?: readonly ThinkingLevel[]
  hasImages?: boolean
  prices?: ModelPrices
}

/** Ids stand in references and are shown: no blanks, and nothing that moves a cursor. */
export const modelIdPattern = /^[\w@~./][\w.:@/+~=-]{0,199}$/
const providerIdPattern = /^[a-zA-Z0-9][\w-]{0,63}$/

export function addProvider(
  id: string,
  addition: ProviderAddition,
  base: ModelProvider | undefined,
): { provider: ModelProvider; models: ModelInfo[] } {
  const { name, api, keyVariable, headers, models = [], baseUrl = base?.baseUrl } = addition
  if (!providerIdPattern.test(id)) throw invalid(id, 'has a name that is not made of letters, digits, - and _')
  if (baseUrl === undefined) throw invalid(id, 'needs a baseUrl')
  if (!URL.canParse(baseUrl)) throw invalid(id, 'has a baseUrl that is no URL')
  const unfit = models.find((model) => !modelIdPattern.test(model.id))
  if (unfit) throw invalid(id, `has a model whose id is not fit to be shown: ${JSON.stringify(unfit.id)}`)
  const provider: ModelProvider = {
    name: id,
    api: 'openai-compatible',
    ...base,
    ...(name !== undefined && { name }),
    ...(api !== undefined && { api }),
    id,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    keyVariables: keyVariable === undefined ? (base?.keyVariables ?? []) : [keyVariable],
    ...(headers && { headers: { ...base?.headers, ...headers } }),
  }
  return { provider, models: models.map((model) => addedModel(model, provider)) }
}

function addedModel(model: ModelAddition, provider: ModelProvider): ModelInfo {
  const assumed = assumedModel(model.id, provider, 'user')
  const contextWindow = model.contextTokens ?? assumed.contextWindow
  return {
    ...assumed,
    name: model.name ?? model.id,
    contextWindow,
    maxOutputTokens: Math.min(model.outputTokens ?? assumed.maxOutputTokens, contextWindow),
    thinkingLevels: model.thinkingLevels ?? assumed.thinkingLevels,
    images: model.hasImages ?? assumed.images,
    ...(model.prices && { prices: model.prices }),
  }
}

/** A model of which nobody has said anything but its id. */
export function assumedModel(id: string, provider: ModelProvider, source: ModelInfo['source']): ModelInfo {
  const { contextTokens, outputTokens, hasImages = true } = knownLimits(id)
  const [keyVariable] = provider.keyVariables
  return {
    provider: provider.id,
    id,
    name: id,
    contextWindow: contextTokens,
    maxOutputTokens: outputTokens,
    thinkingLevels: provider.api === 'openai-compatible' ? ['off', 'low', 'medium', 'high'] : thinkingLevels,
    images: hasImages,
    ...(keyVariable !== undefined && { keyVariable }),
    source,
  }
}

function invalid(id: string, what: string): RegistryError {
  return new RegistryError('invalid-provider', `The provider ${JSON.stringify(id)} in the settings ${what}.`)
}
