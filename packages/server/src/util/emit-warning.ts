/** Reports an error that no caller can handle, as a warning of the process. */
export function emitWarning(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
}
