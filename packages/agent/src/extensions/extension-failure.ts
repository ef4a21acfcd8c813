/** What went wrong in an extension, as a sentence. */
export class ExtensionFailure extends Error {
  override readonly name = 'ExtensionFailure'
  readonly kind: FailureKind
  /** Of a model call that failed, if the extension says so. */
  readonly errorKind: string | undefined

  constructor(kind: FailureKind, message: string, options: { cause?: unknown; errorKind?: string | undefined } = {}) {
    super(message, { cause: options.cause })
    this.kind = kind
    this.errorKind = options.errorKind
  }
}

export type FailureKind =
  | 'threw'
  /** It took too long: it waits for something that does not come, or goes round in circles. */
  | 'overdue'
  /** Its thread is gone. */
  | 'crashed'
  /** It gave what cannot be used. */
  | 'wrong-value'
  /** It was switched off, or never came up. */
  | 'off'

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
