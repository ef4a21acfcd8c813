import type { Message, ToolDefinition, Usage } from '@tapetree/session'
import type { RequestReference } from '@tapetree/session/format'

/** A language model of one provider: one streaming call for each turn. */
export interface Model {
  readonly provider: string
  readonly id: string
  /** The wire format, such as `anthropic-messages`. */
  readonly api: string
  readonly limits: ModelLimits
  /** Pure: the request to send, and its hash. Nothing is sent before `stream`. */
  prepare(request: ModelRequest): ModelCall
  /** The cost of a call in US dollars, if the prices are known. */
  costOf?(usage: Usage): number | undefined
}

export interface ModelLimits {
  /** Tokens of input and output together. */
  contextTokens: number
  outputTokens: number
  /** False if images must be omitted from the request. */
  hasImages?: boolean
}

export interface ModelRequest {
  system: string
  tools: readonly ToolDefinition[]
  /** The result of `buildContext`, with the bytes of images (`base64` or `url`). */
  messages: readonly Message[]
  thinkingLevel: ThinkingLevel
  maxOutputTokens?: number
  temperature?: number
}

export const thinkingLevels = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type ThinkingLevel = (typeof thinkingLevels)[number]

export interface ModelCall {
  readonly reference: Omit<RequestReference, 'leafId'>
  /**
   * Sends the request. Throws only `ModelError`, or the reason of the signal after an abort. A stream that ends without
   * `finish` has failed, and throws.
   */
  stream(signal: AbortSignal): AsyncIterable<ModelPart>
}

/** A part of an answer. `part` is the index of the content block in the answer, in the order in which they began. */
export type ModelPart =
  | { type: 'text_delta'; part: number; text: string }
  | { type: 'text_end'; part: number; providerMetadata?: ProviderMetadata }
  | { type: 'reasoning_delta'; part: number; text: string }
  | { type: 'reasoning_end'; part: number; signature?: string; providerMetadata?: ProviderMetadata }
  | { type: 'tool_input_start'; part: number; callId: string; name: string }
  | { type: 'tool_input_delta'; part: number; text: string }
  /** The complete input as received: text that should be a JSON object, but may not be. */
  | {
      type: 'tool_call'
      part: number
      callId: string
      name: string
      input: string
      providerMetadata?: ProviderMetadata
    }
  /** Unknown kinds of content that the adapter skipped, such as `block:hologram`, with how often each occurred. */
  | { type: 'skipped'; kinds: Record<string, number> }
  /** May occur more than once; the last one counts. */
  | { type: 'usage'; usage: Usage }
  | { type: 'finish'; reason: FinishReason }

/**
 * `length`: the answer reached its limit. `pause`: the provider continues when it is asked again. `other`: another
 * reason of the provider.
 */
export type FinishReason = 'stop' | 'tool-calls' | 'length' | 'pause' | 'other'

/** Opaque to us; kept with the content and sent back with it to the same model. */
export type ProviderMetadata = Record<string, unknown>

/** The kind of a failed model call. Only the provider adapters create these errors. */
export type ModelErrorKind =
  | 'rate-limited'
  | 'overloaded' // or an internal failure of the provider
  | 'network' // or an incomplete answer, or too much silence
  | 'context-overflow'
  | 'auth'
  | 'quota'
  | 'refused'
  | 'empty-answer' // neither text nor a call
  | 'invalid-request'
  | 'unknown'

export class ModelError extends Error {
  override readonly name = 'ModelError'
  readonly kind: ModelErrorKind
  /** How long the provider asked us to wait. */
  readonly retryAfterMs: number | undefined
  readonly status: number | undefined

  constructor(
    kind: ModelErrorKind,
    message: string,
    options: { retryAfterMs?: number | undefined; status?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.kind = kind
    this.retryAfterMs = options.retryAfterMs
    this.status = options.status
  }
}
