import { hosts, type Host, type ProviderApi } from '../hosts.ts'
import { knownModels, type KnownModel } from '../known-models.ts'
import type { ModelInfo } from './model-info.ts'
import type { calcPrice, ModelPrice } from '@pydantic/genai-prices'
import type { ModelPrices } from '../model-prices.ts'

export type { ProviderApi } from '../hosts.ts'

/** A provider of models, and how to reach it. */
export interface ModelProvider {
  id: string
  name: string
  api: ProviderApi
  baseUrl: string
  /** The first is the one to set; the others are read too. Empty if no key is needed. */
  keyVariables: readonly string[]
  /** The path below the base URL for a key check. */
  keyCheckPath?: string
  headers?: Readonly<Record<string, string>> | undefined
  /** Its name in genai-prices. */
  pricesId?: string
  /** The id of the model that a new session uses if the user names none. */
  defaultModel?: string
}

/** The hosts whose models are listed. */
export const catalogueProviders: readonly (ModelProvider & { defaultModel: string })[] = hosts.flatMap((host) =>
  host.defaultModel === undefined ? [] : [{ ...providerOf(host), defaultModel: host.defaultModel }],
)

/** A host without the facts that only the adapter needs. */
export function providerOf(host: Host): ModelProvider {
  const { id, name, api, baseUrl, keyVariables, keyCheckPath, pricesId } = host
  return {
    id,
    name,
    api,
    baseUrl,
    keyVariables,
    ...(keyCheckPath !== undefined && { keyCheckPath }),
    ...(pricesId !== undefined && { pricesId }),
  }
}

/** Without prices: they depend on the date. */
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

/** Published prices, offline: those of our table if they are newer, else those of genai-prices. */
export interface CataloguePrices {
  /** Some prices change at a date, some with the time of day. */
  pricesOf(provider: ModelProvider, modelId: string, date: Date): ModelPrices | undefined
  /** Undefined if no model has exactly this name. */
  publishedModel(provider: ModelProvider, modelId: string): { contextWindow?: number } | undefined
}

export async function loadCataloguePrices(): Promise<CataloguePrices> {
  const published = await loadPublishedPrices()
  return {
    ...published,
    pricesOf: (provider, modelId, date) => ownPrices(provider, modelId) ?? published.pricesOf(provider, modelId, date),
  }
}

/** The prices of genai-prices alone. The table is large, so it is loaded on demand. */
export async function loadPublishedPrices(): Promise<CataloguePrices> {
  const { calcPrice } = await import('@pydantic/genai-prices')
  return {
    pricesOf: (provider, modelId, date) => {
      const found = lookUp(calcPrice, provider, modelId, date)
      return found ? fromPublished(found.model_price) : undefined
    },
    publishedModel: (provider, modelId) => {
      const model = lookUp(calcPrice, provider, modelId, new Date())?.model
      // The library also matches models by prefix, which would accept a typo.
      if (model?.id !== modelId) return undefined
      return model.context_window === undefined ? {} : { contextWindow: model.context_window }
    },
  }
}

function ownPrices(provider: ModelProvider, modelId: string): ModelPrices | undefined {
  return knownModels.find((known) => known.provider === provider.id && known.id === modelId)?.prices
}

type Look = typeof calcPrice

function lookUp(look: Look, { pricesId }: ModelProvider, modelId: string, timestamp: Date): ReturnType<Look> {
  return pricesId === undefined ? null : look({}, modelId, { providerId: pricesId, timestamp })
}

/** Each kind of token may have its own tiers there; here the tiers are those of all kinds together. */
function fromPublished(price: ModelPrice): ModelPrices | undefined {
  const marks = Object.values(price).flatMap((each) => (typeof each === 'object' ? each.tiers : []))
  const base = at(price, -1)
  if (!base) return undefined
  const starts = [...new Set(marks.map(({ start }) => start))].sort((left, right) => left - right)
  if (starts.length === 0) return base
  return { ...base, tiers: starts.map((start) => ({ inputTokensAbove: start, ...(at(price, start) ?? base) })) }
}

function at(price: ModelPrice, start: number): ModelPrices | undefined {
  const of = (key: string): number | undefined => {
    const value = price[key]
    if (typeof value !== 'object') return value
    return value.tiers.findLast((tier) => tier.start <= start)?.price ?? value.base
  }
  const [input, output] = [of('input_mtok'), of('output_mtok')]
  const [cacheRead, cacheWrite] = [of('cache_read_mtok'), of('cache_write_mtok')]
  if (input === undefined || output === undefined) return undefined
  return {
    input,
    output,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  }
}
