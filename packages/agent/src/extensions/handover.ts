/** One item at a time goes from who gives to who takes; who gives waits until it was taken. */
export class Handover<Item> implements AsyncIterable<Item> {
  readonly #given: { item: Item; taken: () => void }[] = []
  #end: { error?: Error | undefined } | undefined
  #wake: () => void = () => undefined

  async give(item: Item): Promise<void> {
    if (this.#end) throw new Error('Nobody takes it any more.')
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#given.push({ item, taken: resolve })
    this.#wake()
    return promise
  }

  /** The first end counts. What was given before it is still taken. */
  end(error?: Error): void {
    this.#end ??= { error }
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for (;;) {
      const next = this.#given.shift()
      if (next) {
        next.taken()
        yield next.item
      } else if (this.#end) {
        if (this.#end.error) throw this.#end.error
        return
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    }
  }
}
