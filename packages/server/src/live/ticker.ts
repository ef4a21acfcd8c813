/**
 * Calls many functions once per period, spread evenly: a thousand at once would block the event loop. With very
 * many functions the period grows, so that all calls together stay below `maxCallsPerMs`.
 */
export class Ticker {
  readonly #periodMs: number
  readonly #slots: Set<() => void>[]
  #size = 0
  #timer: NodeJS.Timeout | undefined
  #slot = 0
  #isCalling = false

  constructor(periodMs: number) {
    this.#periodMs = periodMs
    const slots = Math.max(1, Math.min(maxSlots, Math.floor(periodMs / minSlotMs)))
    this.#slots = Array.from({ length: slots }, () => new Set())
  }

  /** Adds a function to the slot with the fewest. Returns a function that removes it. */
  add(call: () => void): () => void {
    const slot = this.#slots.reduce((least, each) => (each.size < least.size ? each : least))
    slot.add(call)
    this.#size++
    if (!this.#isCalling && this.#timer === undefined) this.#schedule(performance.now() + this.#slotMs)
    return () => {
      if (slot.delete(call)) this.#size--
      if (this.#size > 0) return
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
  }

  get #slotMs(): number {
    return Math.max(this.#periodMs, this.#size / maxCallsPerMs) / this.#slots.length
  }

  #schedule(dueMs: number): void {
    this.#timer = setTimeout(() => this.#callNext(dueMs), Math.max(1, dueMs - performance.now()))
  }

  /** One slot per turn of the event loop, so that other work can run between late slots. */
  #callNext(dueMs: number): void {
    this.#timer = undefined
    this.#isCalling = true
    try {
      for (const call of this.#slots[this.#slot] ?? []) call()
    } finally {
      this.#isCalling = false
      this.#slot = (this.#slot + 1) % this.#slots.length
      const slotMs = this.#slotMs
      // Missed periods are not made up for.
      const periodMs = slotMs * this.#slots.length
      if (this.#size > 0) this.#schedule(Math.max(dueMs + slotMs, performance.now() - periodMs))
    }
  }
}

/** Screens of 300 sessions receive new text 30 times a second, those of 1,000 sessions ten times. */
const maxCallsPerMs = 10
const maxSlots = 16
/** Node's timers have a resolution of one millisecond. */
const minSlotMs = 2

const tickers = new Map<number, Ticker>()

/** The shared ticker with this period. */
export function tickerOf(periodMs: number): Ticker {
  const ticker = tickers.get(periodMs) ?? new Ticker(periodMs)
  tickers.set(periodMs, ticker)
  return ticker
}
