import type { Clock } from '@tapetree/agent/run'

/** Enough for a client that resends all its pending commands. */
const burst = 500
const perSecond = 50

/** Limits the frames of a client: many in a burst, fewer over time. */
export class FrameRate {
  readonly #clock: Clock
  #left = burst
  #at: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#at = clock.now()
  }

  /** Returns false if the limit is exceeded. */
  take(): boolean {
    const now = this.#clock.now()
    this.#left = Math.min(burst, this.#left + (Math.max(0, now - this.#at) / 1000) * perSecond)
    this.#at = now
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}
