export type RegistryErrorCode =
  | 'unknown-model'
  | 'ambiguous-model'
  | 'unknown-provider'
  | 'invalid-reference'
  | 'invalid-provider'
  | 'missing-key'
  | 'missing-package'
  | 'no-local-server'

/** Why there is no model to be had. The message says what to do about it. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError'
  readonly code: RegistryErrorCode
  /** References that may have been meant. */
  readonly suggestions: readonly string[]

  constructor(
    code: RegistryErrorCode,
    message: string,
    options: { suggestions?: readonly string[]; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.code = code
    this.suggestions = options.suggestions ?? []
  }
}
