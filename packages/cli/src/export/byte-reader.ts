const newline = 0x0a

/** Lines and stretches of bytes out of a stream. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next line without its newline; undefined at the end. */
  async line(): Promise<Buffer | undefined> {
    for (let looked = 0; ;) {
      const at = this.#rest.indexOf(newline, looked)
      if (at !== -1) return this.#take(at, 1)
      looked = this.#rest.length
      if (!(await this.#more())) return undefined
    }
  }

  /** So many bytes; fewer where there are not more. */
  async bytes(count: number): Promise<Buffer> {
    while (this.#rest.length < count && (await this.#more())) continue
    return this.#take(Math.min(count, this.#rest.length), 0)
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#chunks.next()
    if (done) return false
    this.#rest = this.#rest.length === 0 ? Buffer.from(value) : Buffer.concat([this.#rest, value])
    return true
  }

  #take(count: number, skipped: number): Buffer {
    const taken = this.#rest.subarray(0, count)
    this.#rest = this.#rest.subarray(count + skipped)
    return taken
  }
}
