import { elapsedText } from '../text/amounts.ts'
import type { Output } from '../command-line/io.ts'

const quietMs = 1000
const stepMs = 250

/** Shows on a terminal what takes longer than a second, and for how long; prints nothing elsewhere. Erases itself. */
export class Progress implements Disposable {
  readonly #output: Output
  readonly #begin = performance.now()
  #timer: NodeJS.Timeout | undefined
  #isShown = false
  /** The current activity. Already harmless. */
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

  /** Call before writing anything else to the same terminal. The line comes back. */
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
