import { decodeKittyPrintable, matchesKey } from '@earendil-works/pi-tui'
import { harmless } from '../../text/harmless.ts'

export interface LineInputOptions {
  write: (text: string) => void
  onLine: (line: string) => void
}

const pasteStart = '\u001b[200~'
const pasteEnd = '\u001b[201~'
const segments = new Intl.Segmenter()

/** A line typed at the end of the output, as a terminal echoes it. The cursor stays at the end. */
export class LineInput {
  readonly #options: LineInputOptions
  #text = ''
  #question = '> '
  /** The line is still empty. */
  #isFresh = true

  constructor(options: LineInputOptions) {
    this.#options = options
  }

  get text(): string {
    return this.#text
  }

  set text(text: string) {
    this.#text = text
  }

  /** The current prompt. */
  ask(question: string): void {
    this.#question = question
  }

  prompt(): void {
    if (!this.#isFresh) this.#options.write('\r\n')
    this.#isFresh = false
    this.#options.write(`${this.#question}${this.#text.replaceAll('\n', ' ')}`)
  }

  /** Prints lines, then repeats the text typed so far. */
  interrupt(lines: readonly string[]): void {
    if (lines.length === 0) return
    this.#options.write(`${this.#isFresh ? '' : '\r\n'}${lines.join('\r\n')}\r\n`)
    this.#isFresh = true
    if (this.#text !== '') this.prompt()
  }

  handleInput(data: string): void {
    if (data.startsWith(pasteStart)) return this.#add(data.slice(pasteStart.length).replace(pasteEnd, ''))
    if (matchesKey(data, 'enter')) return this.#enter()
    if (matchesKey(data, 'backspace')) return this.#removeLast()
    if (matchesKey(data, 'ctrl+u')) {
      this.#text = ''
      return this.prompt()
    }
    const typed = decodeKittyPrintable(data) ?? data
    // The remaining keys have no character, such as arrows.
    if (!typed.startsWith('\u001b') && typed.charCodeAt(0) >= 32) this.#add(typed)
  }

  #add(typed: string): void {
    const text = harmless(typed.replaceAll('\r\n', '\n').replaceAll('\r', '\n'))
    if (this.#isFresh) this.prompt()
    this.#text += text
    this.#options.write(text.replaceAll('\n', ' '))
  }

  #removeLast(): void {
    const last = [...segments.segment(this.#text)].at(-1)
    if (!last) return
    this.#text = this.#text.slice(0, last.index)
    this.#options.write('\b \b')
  }

  /** A backslash at the end of a line continues the message. */
  #enter(): void {
    this.#options.write('\r\n')
    this.#isFresh = true
    if (this.#text.endsWith('\\')) {
      this.#text = `${this.#text.slice(0, -1)}\n`
      return
    }
    const line = this.#text
    this.#text = ''
    this.#options.onLine(line)
  }
}
