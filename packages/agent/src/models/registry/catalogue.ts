import { hosts, type Host, type ProviderApi } from '../hosts.ts'
import { knownModels, type KnownModel } from '../known-models.ts'
import type { ModelInfo } from './model-info.ts'

export type { ProviderApi } from '../hosts.ts'

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

/** The hosts whose models are listed. */
export const catalogueProviders: readonly (ModelProvider & { defaultModel: string })[] = hosts.flatMap((host) =>
  host.defaultModel === undefined ? [] : [{ ...providerOf(host), defaultModel: host.defaultModel }],
)

/** A host as the registry knows it, without the facts that only the adapter needs. */
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
