/** Calls many functions once in each period, spread evenly over it: a thousand at once would hold up the event loop. */
export class Ticker {
  readonly #slots: Set<() => void>[]
  readonly #slotMs: number
  #timer: NodeJS.Timeout | undefined
  #slot = 0
  #isCalling = false

  constructor(periodMs: number) {
    const slots = Math.max(1, Math.min(maxSlots, Math.floor(periodMs / minSlotMs)))
    this.#slots = Array.from({ length: slots }, () => new Set())
    this.#slotMs = periodMs / slots
  }

  /** Adds a function to the slot that has the fewest. Returns a function that removes it. */
  add(call: () => void): () => void {
    const slot = this.#slots.reduce((least, each) => (each.size < least.size ? each : least))
    slot.add(call)
    if (!this.#isCalling && this.#timer === undefined) this.#schedule(performance.now() + this.#slotMs)
    return () => {
      slot.delete(call)
      if (!this.#isEmpty) return
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
  }

  get #isEmpty(): boolean {
    return this.#slots.every(({ size }) => size === 0)
  }

  #schedule(dueMs: number): void {
    this.#timer = setTimeout(() => this.#callNext(dueMs), Math.max(1, dueMs - performance.now()))
  }

  /** One slot in each turn of the event loop, so that other work comes between two of them even if they are late. */
  #callNext(dueMs: number): void {
    this.#timer = undefined
    this.#isCalling = true
    try {
      for (const call of this.#slots[this.#slot] ?? []) call()
    } finally {
      this.#isCalling = false
      this.#slot = (this.#slot + 1) % this.#slots.length
      // Periods that were missed altogether are not made up for.
      const periodMs = this.#slotMs * this.#slots.length
      if (!this.#isEmpty) this.#schedule(Math.max(dueMs + this.#slotMs, performance.now() - periodMs))
    }
  }
}

const maxSlots = 16
/** Timers of Node are not more exact than a millisecond. */
const minSlotMs = 2

const tickers = new Map<number, Ticker>()

/** The ticker with this period that all share. */
export function tickerOf(periodMs: number): Ticker {
  const ticker = tickers.get(periodMs) ?? new Ticker(periodMs)
  tickers.set(periodMs, ticker)
  return ticker
}
