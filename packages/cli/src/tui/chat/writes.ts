/** How long a chat that ends waits for a server that does not answer. */
const longestMs = 10_000

/**
 * Changes to the files of the user: settings, rules and keys. They are made in the order in which the user asked for them, so that the last
 * choice counts, and the chat ends only when they are made.
 */
export class Writes {
  #last: Promise<unknown> = Promise.resolve()
  readonly #pending = new Set<Promise<unknown>>()

  /** Starts a write when all before it are done. */
  add<T>(write: () => Promise<T>): Promise<T> {
    const done = this.#last.then(write)
    this.#last = done.catch(() => undefined)
    return this.hold(done)
  }

  /** The chat also waits for work that may add a write at its end. */
  async hold<T>(work: Promise<T>): Promise<T> {
    this.#pending.add(work)
    try {
      return await work
    } finally {
      this.#pending.delete(work)
    }
  }

  /** Resolves when nothing is pending, and at the latest after some seconds. */
  async settled(): Promise<void> {
    const limit = Promise.withResolvers<void>()
    const timer = setTimeout(limit.resolve, longestMs)
    await Promise.race([this.#done(), limit.promise])
    clearTimeout(timer)
  }

  async #done(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }
}
