import type { Token, Tokens } from '@earendil-works/pi-tui'
import type { BlockOptions } from './blocks.ts'
import { linesOfBlocks, parseBlocks } from './markdown-lines.ts'
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
  #wholeLines: { text: string; lines: string[] } = { text: '', lines: [] }

  /** For one width. */
  constructor(options: BlockOptions) {
    this.#options = options
  }

  /** False: this is another text, and wants another object. */
  continues(text: string): boolean {
    return text.startsWith(this.#done)
  }

  /** All lines of the text, of which what was given before is the beginning. */
  lines(text: string): string[] {
    const tail = withoutHalfSigns(shownText(text.slice(this.#done.length)))
    const blocks = parseBlocks(this.#opener + tail)
    const last = Math.max(
      0,
      blocks.findLastIndex(({ type }) => type !== 'space'),
    )
    if (last > 0) this.#keep(blocks.slice(0, last), text)
    let open = blocks.slice(last)
    const [first] = open
    if (first && isCode(first) && countLineEnds(first.text) >= pieceLines * 1.5) open = [this.#keepPiece(first, text)]
    const drawn = this.#drawOpen(open)
    return this.#opener === '' ? joined(this.#lines, drawn) : [...this.#lines, ...drawn]
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
    const drawn = this.#draw([{ ...code, text: lines.slice(0, pieceLines).join('\n') }])
    if (this.#lines.length > 0 && this.#opener === '') this.#lines.push('')
    for (const line of drawn) this.#lines.push(line)
    this.#advance(text, pieceLines + (this.#opener === '' ? 1 : 0))
    this.#opener = `${code.raw.split('\n', 1)[0]}\n`
    return { ...code, text: lines.slice(pieceLines).join('\n') }
  }

  #advance(text: string, lineEnds: number): void {
    let end = this.#done.length
    for (let left = lineEnds; left > 0; left--) end = text.indexOf('\n', end) + 1
    this.#done = text.slice(0, end)
  }
}

const pieceLines = 24

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

function countLineEnds(text: string): number {
  let ends = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) ends++
  return ends
}
