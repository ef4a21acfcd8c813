const quietMs = 300

/**
 * The user may be typing when a dialog appears. Ignores keys until the dialog has been drawn and the keyboard has then been idle for a
 * moment, so that continued typing does not answer it.
 */
export class QuietKeys {
  readonly #now: () => number
  #lastMs: number | undefined
  #isQuiet = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** It is on the screen. */
  seen(): void {
    this.#lastMs ??= this.#now()
  }

  /** Another request is shown. */
  startAgain(): void {
    this.#lastMs = undefined
    this.#isQuiet = false
  }

  /** Whether a key pressed now counts. */
  admits(): boolean {
    if (this.#isQuiet) return true
    const now = this.#now()
    this.#isQuiet = this.#lastMs !== undefined && now - this.#lastMs >= quietMs
    if (this.#lastMs !== undefined) this.#lastMs = now
    return this.#isQuiet
  }
}
