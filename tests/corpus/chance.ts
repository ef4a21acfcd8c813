/** Choices made from one source of random numbers, so that a seed repeats them. */
export class Chance {
  readonly #random: () => number

  constructor(random: () => number) {
    this.#random = random
  }

  /** A whole number from 0 up to, not including, the limit. */
  below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  is(probability: number): boolean {
    return this.#random() < probability
  }

  /** One of the items; there must be one. */
  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }
}
