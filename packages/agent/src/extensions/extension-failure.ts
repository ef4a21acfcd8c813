/** A failure of an extension, with a sentence as message. */
export class ExtensionFailure extends Error {
  override readonly name = 'ExtensionFailure'
  readonly kind: FailureKind
  /** The kind of a failed model call, if the extension gives one. */
  readonly errorKind: string | undefined

  constructor(kind: FailureKind, message: string, options: { cause?: unknown; errorKind?: string | undefined } = {}) {
    super(message, { cause: options.cause })
    this.kind = kind
    this.errorKind = options.errorKind
  }
}

export type FailureKind =
  | 'threw'
  /** It took too long: it is blocked or in an endless loop. */
  | 'overdue'
  /** Its thread has ended. */
  | 'crashed'
  /** It returned an unusable value. */
  | 'wrong-value'
  /** It was switched off, or never started. */
  | 'off'
