/** Reads lines and counted bytes from a stream of chunks, buffering no more than needed. */
export class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>
  #held: Uint8Array = new Uint8Array()

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The bytes before the next newline; undefined at the end, or if a line exceeds `maxBytes`. */
  async line(maxBytes: number): Promise<Uint8Array | undefined> {
    let searched = 0
    const found = await this.#hold((held) => {
      const end = held.indexOf(0x0a)
      searched += end === -1 ? held.length : end
      return end !== -1 || searched > maxBytes
    })
    return found && searched <= maxBytes ? this.#take(searched, searched + 1) : undefined
  }

  /** Exactly this many bytes, or undefined if the stream ends first. */
  async bytes(count: number): Promise<Uint8Array | undefined> {
    let length = 0
    const found = await this.#hold((held) => (length += held.length) >= count)
    return found ? this.#take(count, count) : undefined
  }

  async isAtEnd(): Promise<boolean> {
    return !(await this.#hold((held) => held.length > 0))
  }

  #take(end: number, next: number): Uint8Array {
    const taken = this.#held.subarray(0, end)
    this.#held = this.#held.subarray(next)
    return taken
  }

  /**
   * Buffers chunks until one is enough; false if the stream ends first. Concatenates once, because each
   * concatenation copies all bytes.
   */
  async #hold(isEnough: (chunk: Uint8Array) => boolean): Promise<boolean> {
    const pieces = [this.#held]
    let found = isEnough(this.#held)
    while (!found) {
      const { done, value } = await this.#chunks.next()
      if (done) break
      pieces.push(value)
      found = isEnough(value)
    }
    if (pieces.length > 1) this.#held = joined(pieces)
    return found
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
