import { knownLimits } from '../known-limits.ts'
import { thinkingLevels, type ThinkingLevel } from '../model.ts'
import type { ModelPrices } from '../model-prices.ts'
import type { ModelProvider, ProviderApi } from './catalogue.ts'
import { RegistryError, type ModelInfo } from './model-info.ts'

/** A user-defined provider, or changes to one of the catalogue: missing members keep their values there. */
export interface ProviderAddition {
  name?: string
  /** Its wire format. Default: Chat Completions of OpenAI. */
  api?: ProviderApi
  baseUrl?: string
  /** The environment variable of its key; absent if it needs none. */
  keyVariable?: string
  headers?: Readonly<Record<string, string>>
  models?: readonly ModelAddition[]
}

export interface ModelAddition {
  id: string
  name?: string
  contextTokens?: number
  outputTokens?: number
  thinkingLevels?: readonly ThinkingLevel[]
  hasImages?: boolean
  prices?: ModelPrices
}

/** Ids are part of references and are displayed: no blanks, and no control characters. */
export const modelIdPattern = /^[\w@~./][\w.:@/+~=-]{0,199}$/
const providerIdPattern = /^[a-zA-Z0-9][\w-]{0,63}$/

export function addProvider(
  id: string,
  addition: ProviderAddition,
  base: ModelProvider | undefined,
): { provider: ModelProvider; models: ModelInfo[] } {
  const { name, api, keyVariable, headers, models = [], baseUrl = base?.baseUrl } = addition
  if (!providerIdPattern.test(id)) throw invalid(id, 'has an invalid name: use only letters, digits, - and _')
  if (baseUrl === undefined) throw invalid(id, 'needs a baseUrl')
  if (!URL.canParse(baseUrl)) throw invalid(id, 'has a baseUrl that is not a URL')
  const unfit = models.find((model) => !modelIdPattern.test(model.id))
  if (unfit) throw invalid(id, `has a model with an invalid id: ${JSON.stringify(unfit.id)}`)
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

/** A model of which only the id is known. */
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
