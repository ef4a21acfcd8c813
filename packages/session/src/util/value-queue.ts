/** Values from a producer that does not wait, read in order by one consumer. */
export class ValueQueue<Value> implements AsyncIterable<Value> {
  readonly #values: Value[] = []
  #end: { error?: unknown } | undefined
  #wake: () => void = () => undefined

  push(value: Value): void {
    this.#values.push(value)
    this.#wake()
  }

  /** The consumer still gets the values before it. The first end or failure counts. */
  end(): void {
    this.#end ??= {}
    this.#wake()
  }

  /** Ends the loop of the consumer with an error, after the values before it. */
  fail(error: unknown): void {
    this.#end ??= { error }
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Value, void> {
    for (;;) {
      if (this.#values.length > 0) yield this.#values.shift() as Value
      else if (!this.#end) await new Promise<void>((resolve) => (this.#wake = resolve))
      else if ('error' in this.#end) throw this.#end.error
      else return
    }
  }
}
