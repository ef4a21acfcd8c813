import type { TUI } from '@earendil-works/pi-tui'
import { Ticker } from '../chat/ticker.ts'

/** When the screen is drawn: after changes, and each second while a time is shown. */
export class Drawing {
  readonly #tui: TUI
  readonly #showsTime: () => boolean
  readonly #ticker = new Ticker(() => this.request())
  #isOver = false

  constructor(tui: TUI, { showsTime }: { showsTime: () => boolean }) {
    this.#tui = tui
    this.#showsTime = showsTime
  }

  /** Many changes in a moment are one frame. */
  readonly request = (): void => {
    if (this.#isOver) return
    this.#ticker.run(this.#showsTime())
    this.#tui.requestRender()
  }

  /** Every line, also those that seem to be the same. */
  readonly requestAll = (): void => {
    if (!this.#isOver) this.#tui.requestRender(true)
  }

  stop(): void {
    this.#isOver = true
    this.#ticker.stop()
  }
}
