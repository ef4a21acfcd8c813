/** What rows need to know beyond their item. */
export interface RowContext {
  /** A run is active, so a call without a result still gets one. */
  isLive: boolean
  /** Calls that wait for a permission or an answer. */
  asked: ReadonlySet<string>
  /** The output of a running call so far. */
  outputOf: (callId: string) => string | undefined
}
