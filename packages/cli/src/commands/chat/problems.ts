/** Problems outside a conversation, a sentence each, without duplicates. Kept until a screen can show them. */
export class ChatProblems {
  readonly #seen = new Set<string>()
  #kept: string[] = []
  #tell: ((sentence: string) => void) | undefined

  add(sentence: string): void {
    if (this.#seen.has(sentence)) return
    // Remembers a limited number of sentences to suppress repeats.
    if (this.#seen.size >= maxSeen) this.#seen.clear()
    this.#seen.add(sentence)
    if (this.#tell) this.#tell(sentence)
    else this.#kept.push(sentence)
  }

  /** Returns problems that have not been shown yet. */
  take(): string[] {
    const taken = this.#kept
    this.#kept = []
    return taken
  }

  /** From now on, passes problems on as they occur. */
  listen(tell: (sentence: string) => void): void {
    this.#tell = tell
    for (const sentence of this.take()) tell(sentence)
  }
}

const maxSeen = 100
