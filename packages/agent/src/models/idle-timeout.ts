import type { Clock } from '@tapetree/session/util/wait'
import { ModelError } from './model.ts'

export interface IdleLimits {
  /** Until the first text; the model may think in silence. */
  firstMs: number
  /** After the first text. */
  laterMs: number
}

export const defaultIdle: IdleLimits = { firstMs: 300_000, laterMs: 120_000 }

/** The reason of a shortened wait. The default reason is an exception with an expensive stack trace. */
const cutShort = new Error('The wait was cut short.')

/** Aborts a stream in which the model sends nothing for too long. Its reader reports when something arrives. */
export class IdleTimeout {
  readonly #clock: Clock
  readonly #provider: string
  readonly #idle = new AbortController()
  #isClosed = false
  #limitMs: number
  /** When something arrived last. Undefined while the reader is busy, because that silence is not the model's. */
  #since: number | undefined
  #wait = new AbortController()

  constructor(options: { clock: Clock; provider: string; limitMs: number }) {
    this.#clock = options.clock
    this.#provider = options.provider
    this.#limitMs = options.limitMs
    this.#since = options.clock.now()
    void this.#watch()
  }

  /** Aborted with a `ModelError` after too much silence. */
  get signal(): AbortSignal {
    return this.#idle.signal
  }

  pause(): void {
    this.#since = undefined
  }

  /** Something arrived, or the reader is back. */
  touch(limitMs = this.#limitMs): void {
    this.#since = this.#clock.now()
    if (limitMs === this.#limitMs) return
    this.#limitMs = limitMs
    this.#wait.abort(cutShort)
  }

  close(): void {
    this.#isClosed = true
    this.#wait.abort(cutShort)
  }

  async #watch(): Promise<void> {
    while (!this.#isClosed) {
      const now = this.#clock.now()
      const leftMs = (this.#since ?? now) + this.#limitMs - now
      if (leftMs <= 0) break
      this.#wait = new AbortController()
      // A shortened wait means a new limit, or the end.
      await this.#clock.wait(leftMs, this.#wait.signal).catch(() => undefined)
    }
    if (this.#isClosed) return
    const seconds = Math.round(this.#limitMs / 1000)
    this.#idle.abort(new ModelError('network', `${this.#provider} sent nothing for ${seconds} seconds.`))
  }
}
