/** The client commands that took effect last, so that one sent twice is answered and not done again. */
export class RememberedCommands {
  readonly #seqs = new Map<string, number>()

  remember(command: string, seq: number): void {
    this.#seqs.set(command, seq)
    if (this.#seqs.size < minRemembered * 1.25) return
    for (const oldest of this.#seqs.keys()) {
      if (this.#seqs.size === minRemembered) return
      this.#seqs.delete(oldest)
    }
  }

  /** The seq of the line that is the command's effect. */
  seqOf(command: string): number | undefined {
    return this.#seqs.get(command)
  }

  toCheckpoint(): unknown {
    return [...this.#seqs]
  }

  restore(saved: unknown): void {
    for (const [command, seq] of saved as [string, number][]) this.#seqs.set(command, seq)
  }
}

const minRemembered = 10_000
