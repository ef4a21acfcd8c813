import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { Clock } from '@tapetree/session/util/wait'
import { adaptedModel } from './ai-sdk-model.ts'
import type { ProviderApi } from '../hosts.ts'
import type { IdleLimits } from '../idle-timeout.ts'
import { knownLimits } from '../known-limits.ts'
import { asLanguageModelV4 } from '../language-model-v4.ts'
import type { Model, ModelLimits, ThinkingLevel } from '../model.ts'
import {
  nearestLevel,
  reasoningOf,
  anthropicFacts,
  googleFacts,
  openaiFacts,
  type ProviderFacts,
} from '../provider-facts.ts'
import type { ModelPrices } from '../model-prices.ts'
import { providerFetch } from '../provider-fetch.ts'
import { readableFetch } from '../readable-response.ts'

/**
 * A language model of any provider package of the Vercel AI SDK: specification `v2` (AI SDK 5), `v3` (AI SDK 6) or `v4`
 * (AI SDK 7). Declared here so that its types need no package of the AI SDK.
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: 'v2' | 'v3' | 'v4'
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls: unknown
  doStream(options: never): PromiseLike<{ stream: ReadableStream<{ type: string }> }>
}

/** Options by the key of a provider, as in the AI SDK: `{ azure: { serviceTier: 'priority' } }`. */
export type AiSdkProviderOptions = Record<string, Record<string, unknown>>

/** Facts that the model itself does not report. Each has a default that suits the known packages. */
export interface AiSdkModelFacts {
  /** The provider in messages and errors. Default: that of the model without its last part, such as `azure`. */
  provider?: string
  /** Context window, output limit and image support. Default: looked up by the name of the model. */
  limits?: Partial<ModelLimits>
  /** Without prices the cost of an answer is unknown. */
  prices?: ModelPrices
  /** The thinking levels that it accepts; another one becomes the nearest of them. Empty if it does not think. */
  thinkingLevels?: readonly ThinkingLevel[]
  /** Sent with every request. A function gets the current level: models before `v4` take it only from here. */
  providerOptions?: AiSdkProviderOptions | ((call: AiSdkCall) => AiSdkProviderOptions | undefined)
  /**
   * The provider options that mark a message or tool as the end of the cached prefix, for providers that need markers.
   */
  cacheMarker?: AiSdkProviderOptions
  /** The tool call ids that it accepts. Ids of another provider that do not match are replaced. */
  callIds?: RegExp
  /** Whether tool results may have images: anywhere, only after all text, or not at all. */
  resultImages?: 'anywhere' | 'after-text' | 'never'
  /** The maximum silence. */
  idle?: Partial<IdleLimits>
  clock?: Clock
}

export interface AiSdkCall {
  modelId: string
  /** Also `off` if the model decides how much to think. */
  thinkingLevel: ThinkingLevel
}

/** A model of any provider package of the Vercel AI SDK, such as Amazon Bedrock, Azure OpenAI or Google Vertex. */
export function aiSdkModel(model: AiSdkLanguageModel, facts: AiSdkModelFacts = {}): Model {
  const languageModel = asLanguageModelV4(model as unknown as LanguageModelV4)
  const { modelId } = languageModel
  const limits = { ...knownLimits(plainName(modelId)), ...facts.limits }
  const { cacheMarker: ownMarker, outputTokens = limits.outputTokens, ...family } = familyOf(languageModel, limits)
  const cacheMarker = (facts.cacheMarker as SharedV4ProviderOptions | undefined) ?? ownMarker
  return adaptedModel({
    provider: facts.provider ?? providerOf(languageModel),
    languageModel,
    facts: {
      ...family,
      fetchesImages: fetchesImages(languageModel),
      hasCacheMarkers: family.hasCacheMarkers || cacheMarker !== undefined,
      ...(facts.callIds && { callIds: facts.callIds }),
      ...(facts.resultImages && { resultImages: facts.resultImages }),
      ...(facts.thinkingLevels && { thinking: thinkingBy(facts.thinkingLevels) }),
      options: (call) => {
        const { reasoning = 'none' } = call
        const thinkingLevel = reasoning === 'none' || reasoning === 'provider-default' ? 'off' : reasoning
        const given = facts.providerOptions
        const added = typeof given === 'function' ? given({ modelId, thinkingLevel }) : given
        return merged(family.options(call), added as SharedV4ProviderOptions | undefined)
      },
    },
    limits: { ...limits, outputTokens },
    prices: facts.prices,
    idle: facts.idle,
    clock: facts.clock,
    cacheMarker,
  })
}

/** The format of the answers that a package reads. Excludes the Converse API of Bedrock. */
export type AiSdkFormat = ProviderApi

/**
 * A `fetch` for the options of a provider package. It skips and counts content that the package does not know and would
 * fail on, has no limit on silence, and uses the proxy of the environment.
 */
export function aiSdkFetch(
  format: AiSdkFormat,
  fetch: typeof globalThis.fetch = providerFetch,
): typeof globalThis.fetch {
  return readableFetch(fetch, { api: format })
}

/** `azure.responses` is a model of `azure`. */
function providerOf({ provider }: LanguageModelV4): string {
  return provider.replace(/(.)\.[^.]*$/, '$1')
}

/** Without the folders of an ARN, and without the region and vendor that Bedrock puts before a name. */
function plainName(modelId: string): string {
  return modelId.slice(modelId.lastIndexOf('/') + 1).replace(/^(?:[a-z-]+\.)+/, '')
}

/** Facts about a package. */
interface Family extends ProviderFacts {
  /** If it differs from that of Anthropic. */
  cacheMarker?: SharedV4ProviderOptions
  /** If a request may not use the full output limit of the model. */
  outputTokens?: number
}

function familyOf({ provider, modelId }: LanguageModelV4, { outputTokens }: ModelLimits): Family {
  // Claude with the Messages API: at Anthropic, Bedrock and Vertex.
  if (/(?:^|\.)anthropic\b/.test(provider)) return anthropicFacts
  if (/^(?:openai|bedrock-mantle)\.responses$/.test(provider)) return openaiFacts
  if (/^azure\b.*\.responses$/.test(provider)) return azureFacts
  if (/^google\.vertex\b/.test(provider)) return vertexFacts
  if (/^google\b/.test(provider)) return googleFacts
  if (/^amazon-bedrock\b/.test(provider)) return bedrockFacts(modelId, outputTokens)
  return otherFacts
}

/**
 * A deployment may have any name: the package decides whether the model reasons, by that name or by `forceReasoning`.
 */
const azureFacts: Family = {
  ...openaiFacts,
  namespace: 'azure',
  options: ({ reasoning }) => {
    const hasSummary = reasoning !== undefined && reasoning !== 'none'
    const options = { store: false, ...(hasSummary && { reasoningSummary: 'auto' }) }
    // The package for `v2` reads the key of OpenAI, later ones their own.
    return { azure: options, openai: options }
  },
}

/** Its metadata has two keys and is kept unchanged. */
const { signatureKey: _, ...vertexFacts }: Family = { ...googleFacts, namespace: 'googleVertex' }

/** Bedrock's Converse API, for models of many vendors. */
function bedrockFacts(modelId: string, outputTokens: number): Family {
  const facts: Family = {
    ...otherFacts,
    api: 'bedrock-converse',
    namespace: 'amazonBedrock',
    resultImages: 'anywhere',
    callIds: /^[a-zA-Z0-9_-]{1,64}$/,
  }
  if (!/\bclaude\b/.test(modelId)) return facts
  // Older ones reject cache points.
  const isCached = !/claude-(?:instant|v?2|3-(?:opus|sonnet|haiku|5-sonnet))/.test(modelId)
  const thinking: ProviderFacts['thinking'] = (level, id) => anthropicFacts.thinking(level, id)
  return {
    ...facts,
    thinking,
    needsThinkingBeforeCalls: (id) => anthropicFacts.needsThinkingBeforeCalls?.(id) === true,
    ...(isCached && { cacheMarker: { bedrock: { cachePoint: { type: 'default' } } } }),
    // Only models with a budget have no level above `high`.
    ...(thinking('max', modelId) === 'high' && budgetFacts(outputTokens)),
  }
}

/**
 * The package adds the thinking budget to the requested output, and Bedrock rejects a sum above the limit of the model.
 * So each gets half of it.
 */
function budgetFacts(outputTokens: number): Pick<Family, 'outputTokens' | 'options'> {
  const half = Math.floor(outputTokens / 2)
  const shares: Partial<Record<string, number>> = { minimal: 0.1, low: 0.25, medium: 0.5, high: 1 }
  return {
    outputTokens: half,
    options: ({ reasoning = 'none' }) => {
      const share = shares[reasoning]
      if (share === undefined) return undefined
      return { bedrock: { reasoningConfig: { type: 'enabled', budgetTokens: Math.max(1024, half * share) } } }
    },
  }
}

/** Facts that suit most packages. */
const otherFacts: Family = {
  api: 'ai-sdk',
  namespace: '',
  hasCacheMarkers: false,
  resultImages: 'never',
  fetchesImages: false,
  marksFailedResults: true,
  callIds: /^[^]+$/,
  thinking: thinkingBy(['low', 'medium', 'high']),
  options: () => undefined,
}

function thinkingBy(levels: readonly ThinkingLevel[]): ProviderFacts['thinking'] {
  return (level) => {
    if (level === 'off') return levels.includes('off') ? 'none' : undefined
    const nearest = nearestLevel(level, levels)
    return nearest && reasoningOf(nearest)
  }
}

/** The AI SDK downloads images that a model does not fetch; we omit them and give their URL. */
function fetchesImages({ supportedUrls }: LanguageModelV4): boolean {
  // A promise has no members, and nothing is known before it resolves.
  return Object.entries(supportedUrls).some(
    ([mediaType, patterns]) =>
      /^(?:image\/|\*)/.test(mediaType) &&
      Array.isArray(patterns) &&
      patterns.some((pattern: RegExp) => pattern.test('https://example.com/image.png')),
  )
}

function merged(
  base: SharedV4ProviderOptions | undefined,
  added: SharedV4ProviderOptions | undefined,
): SharedV4ProviderOptions | undefined {
  if (!base || !added) return base ?? added
  const keys = new Set([...Object.keys(base), ...Object.keys(added)])
  return Object.fromEntries([...keys].map((key) => [key, { ...base[key], ...added[key] }]))
}
