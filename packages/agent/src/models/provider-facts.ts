import type { SharedV4ProviderOptions, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { hostOf, type ReportedCost, type ReturnedReasoning } from './hosts.ts'
import { thinkingLevels, type ThinkingLevel } from './model.ts'

/** How a provider differs from the others: all facts that the adapter needs. */
export interface ProviderFacts {
  /** The wire format. */
  api: string
  /** Its key in provider options and provider metadata. */
  namespace: string
  /** The member of its metadata with the signature of reasoning, which we keep separately. */
  signatureKey?: string
  /** It caches up to explicit markers. */
  hasCacheMarkers: boolean
  /** Images in tool results: anywhere, only after all text, or not at all. */
  resultImages: 'anywhere' | 'after-text' | 'never'
  /** It fetches images by URL. */
  fetchesImages: boolean
  /** It can mark failed results; otherwise a failed result is sent as plain text. */
  marksFailedResults: boolean
  /** The call ids it accepts. */
  callIds: RegExp
  /** How an assistant message returns its reasoning. Default: as native blocks. */
  reasoning?: ReturnedReasoning | undefined
  /** Assistant messages with calls must have the reasoning member, if only as an empty string. */
  needsReasoning?: boolean | undefined
  /** Adjacent assistant messages must be sent as one: calls must follow a user message or results. */
  joinsAnswers?: boolean | undefined
  /** A user message must not follow tool results directly. */
  needsAnswerAfterResults?(modelId: string): boolean
  /** Reasoning is part of the text, between `<think>` tags. */
  hasThinkTags?: boolean | undefined
  /** `beside`: its usage counts reasoning tokens in addition to completion tokens, even if no total says so. */
  reasoningTokens?: 'inside' | 'beside' | undefined
  /** The member of its usage with the cost of a request. */
  cost?: ReportedCost | undefined
  /** The output limit of a request without one. */
  defaultOutputTokens?: number | undefined
  /** It silently drops input that does not fit. */
  cutsSilently?: boolean | undefined
  /** With thinking on, it rejects a turn that continues after calls without the thinking before them. */
  needsThinkingBeforeCalls?(modelId: string): boolean
  thinking(level: ThinkingLevel, modelId: string): Reasoning
  options(call: ProviderCall): SharedV4ProviderOptions | undefined
}

interface ProviderCall {
  modelId: string
  reasoning: Reasoning
  promptCacheKey: string | undefined
}

const anyId = /^[^]+$/

export const anthropicFacts: ProviderFacts = {
  api: 'anthropic-messages',
  namespace: 'anthropic',
  signatureKey: 'signature',
  hasCacheMarkers: true,
  resultImages: 'anywhere',
  fetchesImages: true,
  marksFailedResults: true,
  callIds: hostOf({ id: 'anthropic' })?.callIds ?? anyId,
  thinking: (level, modelId) => {
    // Models before 3.7 do not support the parameter.
    if (/claude-(?:instant|2|3(?!-7))/.test(modelId)) return undefined
    if (!thinksByBudget.test(modelId)) return reasoningOf(level)
    // A higher level would leave almost no tokens for the answer.
    return reasoningOf(level === 'xhigh' || level === 'max' ? 'high' : level)
  },
  needsThinkingBeforeCalls: (modelId) => thinksByBudget.test(modelId),
  options: () => undefined,
}

/** These have a token budget for thinking; later ones decide themselves. */
const thinksByBudget = /claude-(?:3-7|(?:opus|sonnet|haiku)-4(?!-[6-9]))/

export const openaiFacts: ProviderFacts = {
  api: 'openai-responses',
  namespace: 'openai',
  signatureKey: 'reasoningEncryptedContent',
  hasCacheMarkers: false,
  resultImages: 'anywhere',
  fetchesImages: true,
  // The provider package would send it as JSON in JSON.
  marksFailedResults: false,
  callIds: hostOf({ id: 'openai' })?.callIds ?? anyId,
  thinking: (level, modelId) => {
    const accepted = openaiEfforts.find(({ models }) => models.test(modelId))?.levels
    if (!accepted) return reasoningOf(level)
    const nearest = nearestLevel(level, accepted)
    return nearest && reasoningOf(nearest)
  },
  options: ({ modelId, reasoning, promptCacheKey }) => ({
    openai: {
      // Otherwise OpenAI stores the items, and expects references to them.
      store: false,
      ...(!thinksNothing.test(modelId) && { include: ['reasoning.encrypted_content'] }),
      // `auto` is the only kind of summary that every model supports.
      ...(reasoning !== undefined && reasoning !== 'none' && { reasoningSummary: 'auto' }),
      ...(promptCacheKey !== undefined && { promptCacheKey }),
    },
  }),
}

/** These answer 400 to a request for encrypted reasoning. */
const thinksNothing = /^(?:gpt-3|gpt-4|chatgpt|gpt-5-chat)/

/** Models that accept fewer efforts than their provider package assumes. */
const openaiEfforts: readonly { models: RegExp; levels: readonly ThinkingLevel[] }[] = [
  { models: /^o\d/, levels: ['low', 'medium', 'high'] },
  { models: /^gpt-5-pro/, levels: ['high'] },
  { models: /^gpt-5[^-]*-pro/, levels: ['medium', 'high', 'xhigh'] },
  { models: /-chat-latest$/, levels: [] },
  { models: /^gpt-5(?:\.1)?-codex(?!-max)/, levels: ['low', 'medium', 'high'] },
  { models: /-codex/, levels: ['low', 'medium', 'high', 'xhigh'] },
]

export const googleFacts: ProviderFacts = {
  api: 'google-generate-content',
  namespace: 'google',
  signatureKey: 'thoughtSignature',
  joinsAnswers: true,
  hasCacheMarkers: false,
  // Models before Gemini 3 would get one answer for each text of a result.
  resultImages: 'after-text',
  fetchesImages: false,
  marksFailedResults: true,
  callIds: anyId,
  thinking: (level, modelId) => (/gemini-(?:1|2\.0)|gemma/.test(modelId) ? undefined : reasoningOf(level)),
  options: ({ reasoning }) =>
    reasoning === undefined || reasoning === 'none'
      ? undefined
      : { google: { thinkingConfig: { includeThoughts: true } } },
}

/** The facts of a host in the table; for any other server, facts that suit most of them. */
export function openaiCompatibleFacts(options: {
  name: string
  baseUrl?: string
  thinkingLevels?: readonly ThinkingLevel[]
}): ProviderFacts {
  const { name, thinkingLevels = ['low', 'medium', 'high'] } = options
  const host = hostOf({ id: name, ...(options.baseUrl !== undefined && { baseUrl: options.baseUrl }) })
  return {
    api: 'openai-chat-completions',
    namespace: name,
    hasCacheMarkers: false,
    // The provider package would send them as base64 text.
    resultImages: 'never',
    fetchesImages: true,
    marksFailedResults: true,
    callIds: host?.callIds ?? anyId,
    reasoning: host?.reasoning ?? 'reasoning_content',
    needsReasoning: host?.needsReasoning !== undefined,
    needsAnswerAfterResults: (modelId) => host?.needsAnswerAfterResults ?? mistralModels.test(modelId),
    hasThinkTags: host?.hasThinkTags ?? host === undefined,
    reasoningTokens: host?.reasoningTokens,
    cost: host?.cost,
    defaultOutputTokens: host?.defaultOutputTokens,
    cutsSilently: host?.cutsSilently,
    thinking: (level) => {
      if (level === 'off') return thinkingLevels.includes('off') ? 'none' : undefined
      const nearest = nearestLevel(level, thinkingLevels)
      return nearest && reasoningOf(nearest)
    },
    options: () => undefined,
  }
}

/** Their chat templates reject a user message directly after tool results, on any host. */
const mistralModels = /(?:mistral|ministral|magistral|devstral|codestral)/i

/** How much a model should think; undefined lets the model decide. */
type Reasoning = LanguageModelV4CallOptions['reasoning']

export function reasoningOf(level: ThinkingLevel): Reasoning {
  return level === 'off' ? 'none' : level
}

/** The level itself if it is accepted, else the next lower one, else the next higher one. */
export function nearestLevel(level: ThinkingLevel, accepted: readonly ThinkingLevel[]): ThinkingLevel | undefined {
  const place = thinkingLevels.indexOf(level)
  const lower = thinkingLevels.slice(0, place + 1).findLast((each) => accepted.includes(each))
  return lower ?? thinkingLevels.slice(place).find((each) => accepted.includes(each))
}
