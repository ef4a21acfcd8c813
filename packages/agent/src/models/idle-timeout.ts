import type { Clock } from '../clock.ts'
import { ModelError } from './model-error.ts'

export interface IdleLimits {
  /** Until the model writes its first word; it may think in silence. */
  firstMs: number
  /** While it writes. */
  laterMs: number
}

export const defaultIdle: IdleLimits = { firstMs: 300_000, laterMs: 120_000 }

/** Aborts a stream in which the model says nothing for too long. Whoever reads it says when something came. */
export class IdleTimeout {
  readonly #clock: Clock
  readonly #provider: string
  readonly #idle = new AbortController()
  readonly #closed = new AbortController()
  #limitMs: number
  /** When something came last; undefined while the reader is busy with it, for that silence is not the model's. */
  #since: number | undefined
  #wait = new AbortController()

  constructor(options: { clock: Clock; provider: string; limitMs: number }) {
    this.#clock = options.clock
    this.#provider = options.provider
    this.#limitMs = options.limitMs
    this.#since = options.clock.now()
    void this.#watch()
  }

  /** Aborted with a `ModelError` when it took too long. */
  get signal(): AbortSignal {
    return this.#idle.signal
  }

  pause(): void {
    this.#since = undefined
  }

  /** Something came, or the reader is back. */
  touch(limitMs = this.#limitMs): void {
    this.#since = this.#clock.now()
    if (limitMs === this.#limitMs) return
    this.#limitMs = limitMs
    this.#wait.abort()
  }

  close(): void {
    this.#closed.abort()
    this.#wait.abort()
  }

  async #watch(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      const now = this.#clock.now()
      const leftMs = (this.#since ?? now) + this.#limitMs - now
      if (leftMs <= 0) break
      this.#wait = new AbortController()
      // A wait that is cut short means a new limit, or the end.
      await this.#clock.wait(leftMs, this.#wait.signal).catch(() => undefined)
    }
    if (this.#closed.signal.aborted) return
    const seconds = Math.round(this.#limitMs / 1000)
    this.#idle.abort(new ModelError('network', `${this.#provider} said nothing for ${seconds} seconds.`))
  }
}
