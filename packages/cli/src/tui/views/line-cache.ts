/** What was drawn, by the object it was drawn from and how. What was not looked at for longest goes first when there is too much. */
export class LineCache {
  readonly #drawn = new Map<object, { how: string; lines: string[] }>()
  readonly #maxLines: number
  #lines = 0

  constructor(maxLines: number) {
    this.#maxLines = maxLines
  }

  get(key: object, how: string, draw: () => string[]): string[] {
    const known = this.#drawn.get(key)
    if (known) {
      this.#drawn.delete(key)
      if (known.how === how) {
        this.#drawn.set(key, known)
        return known.lines
      }
      this.#lines -= known.lines.length
    }
    const lines = draw()
    this.#drawn.set(key, { how, lines })
    this.#lines += lines.length
    this.#dropOldest(key)
    return lines
  }

  clear(): void {
    this.#drawn.clear()
    this.#lines = 0
  }

  #dropOldest(newest: object): void {
    for (const [key, { lines }] of this.#drawn) {
      if (this.#lines <= this.#maxLines || key === newest) return
      this.#drawn.delete(key)
      this.#lines -= lines.length
    }
  }
}
