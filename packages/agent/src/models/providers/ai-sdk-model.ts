import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { markPrompt, markTools } from '../request/cache-markers.ts'
import { defaultIdle, type IdleLimits } from '../idle-timeout.ts'
import { knownLimits } from '../known-limits.ts'
import type { Model, ModelCall, ModelLimits, ModelRequest, ThinkingLevel } from '../model.ts'
import { costAt, type ModelPrices } from '../model-prices.ts'
import type { ProviderFacts } from '../provider-facts.ts'
import { toPrompt } from '../request/provider-prompt.ts'
import { hashOf } from '../../util/request-hash.ts'
import { lacksThinking } from '../returned-reasoning.ts'
import { streamParts } from '../response/stream-parts.ts'

export interface AiSdkModelOptions {
  /** The provider name in messages. */
  provider: string
  languageModel: LanguageModelV4
  facts: ProviderFacts
  limits?: Partial<ModelLimits> | undefined
  prices?: ModelPrices | undefined
  idle?: Partial<IdleLimits> | undefined
  clock?: Clock | undefined
  /** Removed from errors: some servers repeat it. */
  apiKey?: string | undefined
  /** Sent with every request of this model, in addition to the facts. */
  promptCacheKey?: string | undefined
  /** Provider options that mark the end of the cached prefix. Default: those of Anthropic. */
  cacheMarker?: SharedV4ProviderOptions | undefined
}

const adapter = 'ai-sdk'
/** Increase it when the same request becomes another call, so that older hashes can be recognized. */
const adapterVersion = '2'

/** A model of a provider package of the Vercel AI SDK, called directly and not through the loop of the SDK. */
export function adaptedModel(options: AiSdkModelOptions): Model {
  const { provider, apiKey, languageModel, facts, prices, clock = systemClock } = options
  const { modelId } = languageModel
  const limits = { ...knownLimits(modelId), ...options.limits }
  const idle = { ...defaultIdle, ...options.idle }
  return {
    provider,
    id: modelId,
    api: facts.api,
    limits,
    prepare: (request): ModelCall => {
      const params = paramsOf(request, { ...options, limits })
      const call = callOf(request, params, { ...options, limits })
      return {
        reference: { sha256: hashOf({ provider, modelId, api: facts.api, ...call }), adapter, adapterVersion, params },
        stream: (signal) => streamParts({ provider, apiKey, languageModel, facts, limits, idle, clock, call }, signal),
      }
    },
    ...(prices && { costOf: (usage) => usage.cost ?? costAt(prices, usage) }),
  }
}

/** What the call depends on besides messages, tools and system prompt: enough to rebuild it. */
interface CallParams extends Record<string, unknown> {
  thinkingLevel: ThinkingLevel
  maxOutputTokens: number
  temperature?: number
  promptCacheKey?: string
  hasImages?: false
}

function paramsOf(
  request: ModelRequest,
  { facts, limits, promptCacheKey }: AiSdkModelOptions & { limits: ModelLimits },
): CallParams {
  const { thinkingLevel, temperature } = request
  const { maxOutputTokens = facts.defaultOutputTokens ?? defaultOutputTokens(thinkingLevel) } = request
  return {
    thinkingLevel,
    maxOutputTokens: Math.min(maxOutputTokens, limits.outputTokens),
    ...(temperature !== undefined && { temperature }),
    ...(promptCacheKey !== undefined && { promptCacheKey }),
    ...(limits.hasImages === false && { hasImages: false }),
  }
}

/** The full output limit of a model would leave too little of the window for the input. Thinking counts as output. */
function defaultOutputTokens(level: ThinkingLevel): number {
  return level === 'xhigh' || level === 'max' ? 64_000 : 32_000
}

function callOf(
  request: ModelRequest,
  params: CallParams,
  { provider, languageModel, facts, limits, cacheMarker }: AiSdkModelOptions & { limits: ModelLimits },
): LanguageModelV4CallOptions {
  const { modelId } = languageModel
  const prompt = toPrompt(request, { provider, modelId, facts, hasImages: limits.hasImages !== false })
  const tools = request.tools.map(functionTool)
  const isUnthought = facts.needsThinkingBeforeCalls?.(modelId) === true && lacksThinking(prompt)
  const reasoning = facts.thinking(isUnthought ? 'off' : params.thinkingLevel, modelId)
  const providerOptions = facts.options({ modelId, reasoning, promptCacheKey: params.promptCacheKey })
  return {
    prompt: facts.hasCacheMarkers ? markPrompt(prompt, cacheMarker) : prompt,
    ...(tools.length > 0 && { tools: facts.hasCacheMarkers ? markTools(tools, cacheMarker) : tools }),
    maxOutputTokens: params.maxOutputTokens,
    ...(params.temperature !== undefined && { temperature: params.temperature }),
    ...(reasoning !== undefined && { reasoning }),
    ...(providerOptions && { providerOptions }),
  }
}

function functionTool({ name, description, inputSchema }: ModelRequest['tools'][number]): LanguageModelV4FunctionTool {
  return { type: 'function', name, description, inputSchema }
}
