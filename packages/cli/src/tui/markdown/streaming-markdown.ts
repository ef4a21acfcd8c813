import type { Token, Tokens } from '@earendil-works/pi-tui'
import type { BlockOptions } from './blocks.ts'
import { asPlainText, linesOfBlocks, parseWithinReason } from './markdown-lines.ts'
import { shownText } from './shown-text.ts'

/**
 * Markdown that grows at its end. A block is done when another one begins behind it: it is drawn once and kept, so that what comes costs
 * the same however long the text is. A long block of code is kept piece by piece.
 */
export class StreamingMarkdown {
  readonly #options: BlockOptions
  /** What is done: the text as it came, and its lines. */
  #done = ''
  readonly #lines: string[] = []
  /** The line that opened the code which goes on behind what is done. */
  #opener = ''
  /** What could not be read as Markdown within reason goes on as plain text. */
  #isPlain = false
  #long: LongBlock | undefined
  #wholeLines: { text: string; lines: string[] } = { text: '', lines: [] }
  /** The text of the last call, kept or not: the lines of a long block also stand for text behind `#done`. */
  #drawn = ''

  /** For one width. */
  constructor(options: BlockOptions) {
    this.#options = options
  }

  /** Whether the text begins with everything drawn so far. If not, draw it with a new object. */
  continues(text: string): boolean {
    return text.startsWith(this.#drawn)
  }

  /** All lines of the text, of which what was given before is the beginning. */
  lines(text: string): string[] {
    this.#drawn = text
    const raw = withoutBlankEnd(text.slice(this.#done.length))
    if (this.#long && raw.length < this.#long.length * (1 + longMayGrow)) return this.#longLines(this.#long, raw)
    const tail = withoutHalfSigns(shownText(raw))
    const blocks = this.#isPlain ? undefined : parseWithinReason(this.#opener + tail)
    if (!blocks) return this.#plainLines(tail, text)
    const last = Math.max(
      0,
      blocks.findLastIndex(({ type }) => type !== 'space'),
    )
    if (last > 0) this.#keep(blocks.slice(0, last), text)
    let open = blocks.slice(last)
    const [first] = open
    if (first && isLongCode(first)) open = [this.#keepPiece(first, text)]
    const drawn = this.#drawOpen(open)
    const lines = this.#opener === '' ? joined(this.#lines, drawn) : [...this.#lines, ...drawn]
    const left = text.length - this.#done.length
    this.#long = left > mostCharacters && !(first && isCode(first)) ? { length: raw.length, lines } : undefined
    return lines
  }

  /** What was added to a very long block is plain text until there is enough of it to draw the block again. */
  #longLines({ length, lines }: LongBlock, raw: string): string[] {
    const added = shownText(raw.slice(length))
    return added.trim() === '' ? lines : [...lines, ...this.#draw(asPlainText(added))]
  }

  /** Line by line, of which those that are whole are kept. */
  #plainLines(tail: string, text: string): string[] {
    if (this.#lines.length > 0 && !this.#isPlain) this.#lines.push('')
    this.#isPlain = true
    const lines = tail.trimEnd().split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) this.#lines.push(...this.#draw(asPlainText(line)))
    this.#advance(text, lines.length)
    return [...this.#lines, ...this.#draw(asPlainText(last))]
  }

  /** Of code that still comes, lines that are whole are coloured once. */
  #drawOpen(blocks: readonly Token[]): string[] {
    const [code] = blocks
    if (!code || !isCode(code) || !code.text.includes('\n')) return this.#draw(blocks)
    const end = code.text.lastIndexOf('\n')
    const text = code.text.slice(0, end)
    if (this.#wholeLines.text !== text) this.#wholeLines = { text, lines: this.#draw([{ ...code, text }]) }
    return [...this.#wholeLines.lines, ...this.#draw([{ ...code, text: code.text.slice(end + 1) }])]
  }

  #draw(blocks: readonly Token[]): string[] {
    return linesOfBlocks(blocks, this.#options)
  }

  #keep(blocks: readonly Token[], text: string): void {
    const drawn = this.#draw(blocks)
    if (this.#lines.length > 0 && drawn.length > 0 && this.#opener === '') this.#lines.push('')
    for (const line of drawn) this.#lines.push(line)
    const ends = blocks.reduce((sum, { raw }) => sum + countLineEnds(raw), 0)
    this.#advance(text, ends - countLineEnds(this.#opener))
    this.#opener = ''
  }

  /** Keeps the first lines of a block of code, and gives the block without them. */
  #keepPiece(code: Tokens.Code, text: string): Token {
    const lines = code.text.split('\n')
    const kept = lines.length - Math.min(openLines, Math.ceil(lines.length / 2))
    const drawn = this.#draw([{ ...code, text: lines.slice(0, kept).join('\n') }])
    if (this.#lines.length > 0 && this.#opener === '') this.#lines.push('')
    for (const line of drawn) this.#lines.push(line)
    this.#advance(text, kept + (this.#opener === '' ? 1 : 0))
    this.#opener = `${code.raw.split('\n', 1)[0]}\n`
    return { ...code, text: lines.slice(kept).join('\n') }
  }

  #advance(text: string, lineEnds: number): void {
    let end = this.#done.length
    for (let left = lineEnds; left > 0; left--) end = text.indexOf('\n', end) + 1
    this.#done = text.slice(0, end)
  }
}

/** So many lines of code at the end are coloured together with what comes. */
const openLines = 12
const mostOpenLines = 36
const mostOpenCharacters = 4000
/** Of a block that is no code, before it is drawn again only when it has grown by a part. */
const mostCharacters = 12_000
const longMayGrow = 0.25

/** A list, a table or a paragraph that is so long that it is not drawn again with every word. */
interface LongBlock {
  /** How much of what is behind `#done` was drawn. */
  length: number
  /** All lines, including those of what is done. */
  lines: string[]
}

function isLongCode(token: Token): token is Tokens.Code {
  if (!isCode(token)) return false
  const lineEnds = countLineEnds(token.text)
  return lineEnds >= mostOpenLines || (lineEnds > 0 && token.text.length >= mostOpenCharacters)
}

function isCode(token: Token): token is Tokens.Code {
  return token.type === 'code' && /^(?:`{3}|~{3})/.test(token.raw)
}

function joined(above: readonly string[], below: readonly string[]): string[] {
  return above.length > 0 && below.length > 0 ? [...above, '', ...below] : [...above, ...below]
}

/** The first characters of a fence, a rule or a list would be shown as something else until the next ones come. */
function withoutHalfSigns(text: string): string {
  return text.replace(/(^|\n) {0,3}(?:`{1,2}|~{1,2}|[-=+*]{1,2}|#{1,6}|\d{1,3}[.)]?)$/, '$1')
}

/** Empty lines at the end show nothing until something follows them, however many there are. */
function withoutBlankEnd(text: string): string {
  let end = text.length
  while (end > 0 && ' \t\r\n'.includes(text.charAt(end - 1))) end--
  const second = text.indexOf('\n', text.indexOf('\n', end) + 1)
  return second > end ? text.slice(0, second + 1) : text
}

function countLineEnds(text: string): number {
  let ends = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) ends++
  return ends
}
