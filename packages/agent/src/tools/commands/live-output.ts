import { countBytes } from './shown-output.ts'
import type { OutputPiece } from './spooled-output.ts'

/** Decodes output as it arrives; a character may span two pieces. */
export class LiveOutput {
  readonly #observe: (text: string) => void
  #decoder = new TextDecoder()
  #offset = 0

  constructor(observe: (text: string) => void) {
    this.#observe = observe
  }

  take({ offset, bytes }: OutputPiece): void {
    if (offset > this.#offset) {
      this.#decoder = new TextDecoder()
      this.#observe(`\n[${countBytes(offset - this.#offset)} skipped]\n`)
    }
    this.#offset = offset + bytes.length
    const text = this.#decoder.decode(bytes, { stream: true })
    if (text !== '') this.#observe(text)
  }
}
