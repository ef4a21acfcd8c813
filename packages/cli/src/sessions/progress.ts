import { elapsedText } from '../text/amounts.ts'
import type { Output } from '../command-line/io.ts'

const quietMs = 1000
const stepMs = 250

/** Says on a terminal what takes longer than a second, and for how long already; anywhere else nothing. Erases itself. */
export class Progress implements Disposable {
  readonly #output: Output
  readonly #begin = performance.now()
  #timer: NodeJS.Timeout | undefined
  #isShown = false
  /** What is being done. Harmless already. */
  words: string

  constructor(output: Output, words: string) {
    this.#output = output
    this.words = words
    if (output.isTTY) this.#timer = setTimeout(() => this.#show(), quietMs).unref()
  }

  #show(): void {
    this.#output.write(`\r\u001b[K${this.words} (${elapsedText(performance.now() - this.#begin)})`)
    this.#isShown = true
    this.#timer = setTimeout(() => this.#show(), stepMs).unref()
  }

  /** Before anything else is written to the same terminal. It comes back. */
  erase(): void {
    if (this.#isShown) this.#output.write('\r\u001b[K')
    this.#isShown = false
  }

  close(): void {
    clearTimeout(this.#timer)
    this.erase()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}
