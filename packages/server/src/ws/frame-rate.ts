import type { Clock } from '@tapetree/agent'

/** Enough for a client that sends all its open commands again. */
const burst = 500
const perSecond = 50

/** How many frames a client may send: many at once, fewer for long. */
export class FrameRate {
  readonly #clock: Clock
  #left = burst
  #at: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#at = clock.now()
  }

  /** False where it is one too many. */
  take(): boolean {
    const now = this.#clock.now()
    this.#left = Math.min(burst, this.#left + (Math.max(0, now - this.#at) / 1000) * perSecond)
    this.#at = now
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}
