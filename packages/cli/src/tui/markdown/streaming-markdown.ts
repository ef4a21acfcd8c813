import type { Token, Tokens } from '@earendil-works/pi-tui'
import type { BlockOptions } from './blocks.ts'
import { asPlainText, linesOfBlocks, parseWithinReason } from './markdown-lines.ts'
import { shownText } from './shown-text.ts'

/**
 * Markdown that grows at its end. A block is finished when another begins after it. Finished blocks are rendered once and cached, so the
 * cost of new text does not depend on the length. A long code block is cached in chunks.
 */
export class StreamingMarkdown {
  readonly #options: BlockOptions
  /** The finished part: source text and lines. */
  #done = ''
  readonly #lines: string[] = []
  /** The opening line of a code block that continues after the finished part. */
  #opener = ''
  /** Text that takes too long to parse continues as plain text. */
  #isPlain = false
  #long: LongBlock | undefined
  #wholeLines: { text: string; lines: string[] } = { text: '', lines: [] }
  /** The last call. A screen asks several times for one frame, and the time limit of the parser is a thread each time. */
  #drawn: { text: string; lines: string[] } = { text: '', lines: [] }

  /** For one width. */
  constructor(options: BlockOptions) {
    this.#options = options
  }

  /** Whether the text begins with everything rendered so far. If not, render it with a new object. */
  continues(text: string): boolean {
    return text.startsWith(this.#drawn.text)
  }

  /** All lines of the text, which must begin with the text of the previous call. */
  lines(text: string): readonly string[] {
    if (this.#drawn.text !== text) this.#drawn = { text, lines: this.#linesOf(text) }
    return this.#drawn.lines
  }

  #linesOf(text: string): string[] {
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

  /** Text added to a very long block is plain until there is enough of it to render the block again. */
  #longLines({ length, lines }: LongBlock, raw: string): string[] {
    const added = shownText(raw.slice(length))
    return added.trim() === '' ? lines : [...lines, ...this.#draw(asPlainText(added))]
  }

  /** Line by line; complete lines are cached. */
  #plainLines(tail: string, text: string): string[] {
    if (this.#lines.length > 0 && !this.#isPlain) this.#lines.push('')
    this.#isPlain = true
    const lines = tail.trimEnd().split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) this.#lines.push(...this.#draw(asPlainText(line)))
    this.#advance(text, lines.length)
    return [...this.#lines, ...this.#draw(asPlainText(last))]
  }

  /** Highlights complete lines of streamed code once. */
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

  /** Caches the first lines of a code block and returns the rest of the block. */
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

/** How many lines at the end are highlighted together with new code. */
const openLines = 12
const mostOpenLines = 36
const mostOpenCharacters = 4000
/** Size above which a block other than code is rendered again only after it has grown by a fraction. */
const mostCharacters = 12_000
const longMayGrow = 0.25

/** A list, table or paragraph too long to render again with every token. */
interface LongBlock {
  /** How much of the text after `#done` was rendered. */
  length: number
  /** All lines, including the finished ones. */
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

/** The first characters of a fence, a rule or a list would briefly look like something else. */
function withoutHalfSigns(text: string): string {
  return text.replace(/(^|\n) {0,3}(?:`{1,2}|~{1,2}|[-=+*]{1,2}|#{1,6}|\d{1,3}[.)]?)$/, '$1')
}

/** Empty lines at the end show nothing until something follows them. */
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
