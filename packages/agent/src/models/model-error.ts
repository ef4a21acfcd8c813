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
