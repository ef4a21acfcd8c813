const quietMs = 300

/**
 * Somebody may be typing when a dialog appears. No key counts before it has been seen and the keyboard has then been quiet for a moment, so
 * that nobody answers by typing on.
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

  /** Something else is asked now. */
  startAgain(): void {
    this.#lastMs = undefined
    this.#isQuiet = false
  }

  /** Whether a key that was just pressed counts. */
  admits(): boolean {
    if (this.#isQuiet) return true
    const now = this.#now()
    this.#isQuiet = this.#lastMs !== undefined && now - this.#lastMs >= quietMs
    if (this.#lastMs !== undefined) this.#lastMs = now
    return this.#isQuiet
  }
}
