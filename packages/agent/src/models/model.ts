import type { Message, RequestReference, ToolDefinition, Usage } from '@tapetree/session'

/** A language model of one provider: one streaming call for each turn. */
export interface Model {
  readonly provider: string
  readonly id: string
  /** The wire format, such as `anthropic-messages`. */
  readonly api: string
  readonly limits: ModelLimits
  /** Pure: what will be sent, and its hash. Nothing is sent before `stream`. */
  prepare(request: ModelRequest): ModelCall
  /** What a call cost in US dollars, where the prices are known. */
  costOf?(usage: Usage): number | undefined
}

export interface ModelLimits {
  /** Tokens of input and output together. */
  contextTokens: number
  outputTokens: number
  /** False where images must be left out of the request. */
  hasImages?: boolean
}

export interface ModelRequest {
  system: string
  tools: readonly ToolDefinition[]
  /** As `buildContext` gives them, images with their bytes in place (`base64` or `url`). */
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
   * Sends the request. Throws `ModelError` and nothing else, but for the signal's reason when it was aborted. A stream that
   * ends without `finish` has failed, and throws.
   */
  stream(signal: AbortSignal): AsyncIterable<ModelPart>
}

/** What arrives. `part` is the place of the content block in the answer, counted from 0 in the order they began. */
export type ModelPart =
  | { type: 'text_delta'; part: number; text: string }
  | { type: 'text_end'; part: number; providerMetadata?: ProviderMetadata }
  | { type: 'reasoning_delta'; part: number; text: string }
  | { type: 'reasoning_end'; part: number; signature?: string; providerMetadata?: ProviderMetadata }
  | { type: 'tool_input_start'; part: number; callId: string; name: string }
  | { type: 'tool_input_delta'; part: number; text: string }
  /** The whole input as it came: text that should be, and may not be, a JSON object. */
  | {
      type: 'tool_call'
      part: number
      callId: string
      name: string
      input: string
      providerMetadata?: ProviderMetadata
    }
  /** Kinds of content that the adapter does not know and left out, such as `block:hologram`, with how often each came. */
  | { type: 'skipped'; kinds: Record<string, number> }
  /** May come more than once; the last one counts. */
  | { type: 'usage'; usage: Usage }
  | { type: 'finish'; reason: FinishReason }

/** `length`: the answer reached its limit. `pause`: the provider wants to be asked to continue. `other`: the provider gave a reason that has no name here. */
export type FinishReason = 'stop' | 'tool-calls' | 'length' | 'pause' | 'other'

/** Opaque to us, kept with the content and sent back with it to the same model. */
export type ProviderMetadata = Record<string, unknown>

/** What went wrong with a model call, as far as anybody has to know. Made only where the provider was spoken to. */
export type ModelErrorKind =
  | 'rate-limited'
  | 'overloaded' // also: the provider's own failure
  | 'network' // also: cut off in the middle, or silent for too long
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
