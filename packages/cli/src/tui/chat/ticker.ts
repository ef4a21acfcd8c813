/** Calls back once a second, only while an elapsed time is shown. */
export class Ticker {
  readonly #onTick: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(onTick: () => void) {
    this.#onTick = onTick
  }

  run(isNeeded: boolean): void {
    if (isNeeded) this.#timer ??= setInterval(this.#onTick, 1000)
    else this.stop()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
