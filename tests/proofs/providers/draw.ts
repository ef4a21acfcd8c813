/** Draws from one source of random numbers. */
export class Draw {
  readonly #random: () => number

  constructor(random: () => number) {
    this.#random = random
  }

  chance(probability: number): boolean {
    return this.#random() < probability
  }

  /** An integer from `least` to `most`. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1))
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.integer(0, items.length - 1)] as Item
  }

  /** The items in random order. */
  shuffled<Item>(items: readonly Item[]): Item[] {
    const rest = [...items]
    return items.map(() => rest.splice(this.integer(0, rest.length - 1), 1)[0] as Item)
  }

  /** Some of the entries. */
  some(members: Record<string, unknown>, probability = 0.3): Record<string, unknown> {
    const kept: Record<string, unknown> = {}
    for (const name of Object.keys(members)) if (this.chance(probability)) kept[name] = members[name]
    return kept
  }

  /** Text with characters that are easily broken: several bytes, several code units, line ends, quotes. */
  text(mark: string): string {
    const said = Array.from({ length: this.integer(1, 6) }, () => this.pick(pieces))
    said.splice(this.integer(0, said.length), 0, mark)
    return said.join('')
  }

  /** The text in pieces, never in the middle of a character. */
  pieces(text: string): string[] {
    const parts: string[] = []
    const characters = [...text]
    for (let at = 0; at < characters.length;) {
      const size = this.integer(1, 24)
      parts.push(characters.slice(at, at + size).join(''))
      at += size
    }
    return parts
  }

  letters(alphabet: string, length: number): string {
    return Array.from({ length }, () => alphabet[this.integer(0, alphabet.length - 1)]).join('')
  }
}

const pieces = [
  'Hello ',
  'ünïcode ',
  '日本語',
  '👩‍👩‍👧 ',
  '\n',
  '\n\n',
  '"quoted" ',
  '\\n',
  '\u2028',
  'a: b\r\nc',
  ' ',
  '{"a":1}',
  '</x> ',
]
