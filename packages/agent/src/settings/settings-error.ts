export type SettingsErrorCode = 'cannot-trust' | 'insecure-file' | 'malformed-file' | 'cannot-store'

export class SettingsError extends Error {
  override readonly name = 'SettingsError'
  readonly code: SettingsErrorCode

  constructor(code: SettingsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
