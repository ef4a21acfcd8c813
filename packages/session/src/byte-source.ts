/** Takes lines and counted bytes from a stream of chunks, holding no more than asked for. */
export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>
  #held = new Uint8Array()

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The bytes before the next newline; undefined at the end, or where a line is longer than allowed. */
  async line(maxBytes: number): Promise<Uint8Array | undefined> {
    let searched = 0
    for (;;) {
      const end = this.#held.indexOf(0x0a, searched)
      if (end !== -1) return this.#take(end, end + 1)
      searched = this.#held.length
      if (searched > maxBytes || !(await this.#more())) return undefined
    }
  }

  /** Exactly this many bytes, or undefined where the stream ends before. */
  async bytes(count: number): Promise<Uint8Array | undefined> {
    while (this.#held.length < count) if (!(await this.#more())) return undefined
    return this.#take(count, count)
  }

  async isAtEnd(): Promise<boolean> {
    return this.#held.length === 0 && !(await this.#more())
  }

  #take(end: number, next: number): Uint8Array {
    const taken = this.#held.subarray(0, end)
    this.#held = this.#held.subarray(next)
    return taken
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#chunks.next()
    if (done) return false
    const joined = new Uint8Array(this.#held.length + value.length)
    joined.set(this.#held)
    joined.set(value, this.#held.length)
    this.#held = joined
    return true
  }
}
