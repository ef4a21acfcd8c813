/** Calls once a second while there is something whose time is shown, and not at all otherwise. */
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
