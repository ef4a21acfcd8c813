/** What goes wrong beside a conversation, a sentence each and each once: kept until a screen stands that shows it. */
export class ChatProblems {
  readonly #seen = new Set<string>()
  #kept: string[] = []
  #tell: ((sentence: string) => void) | undefined

  add(sentence: string): void {
    if (this.#seen.has(sentence)) return
    // One that comes again and again is said once; nobody keeps a list for ever.
    if (this.#seen.size >= maxSeen) this.#seen.clear()
    this.#seen.add(sentence)
    if (this.#tell) this.#tell(sentence)
    else this.#kept.push(sentence)
  }

  /** Those that nobody was told of, for whoever tells them now. */
  take(): string[] {
    const taken = this.#kept
    this.#kept = []
    return taken
  }

  /** From here on they are told as they come. */
  listen(tell: (sentence: string) => void): void {
    this.#tell = tell
    for (const sentence of this.take()) tell(sentence)
  }
}

const maxSeen = 100
