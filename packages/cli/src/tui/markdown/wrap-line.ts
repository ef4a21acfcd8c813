import { displayWidth, forEachGrapheme, type Grapheme } from '../../text/display-width.ts'
import type { Style } from '../theme.ts'

/** Wraps a line: at spaces, between wide characters, and inside a word that does not fit at all. */
export function wrapLine(line: StyledLine, width: number): StyledLine[] {
  const text = textOf(line)
  if (fits(text, width)) return [line]
  const pieces = new LineBreaker(text, Math.max(1, width)).pieces()
  return pieces.map(({ start, end }, index) => {
    const before = pieces[index - 1]
    const row = sliceLine(line, start, end)
    return before ? [{ text: '', joins: before.end < start ? 'space' : 'word' }, ...row] : row
  })
}

function fits(text: string, width: number): boolean {
  return text.length <= width ? text.length * 2 <= width || displayWidth(text) <= width : false
}

interface Piece {
  start: number
  end: number
}

class LineBreaker {
  readonly #text: string
  readonly #width: number
  readonly #pieces: Piece[] = []
  /** The line being filled. */
  #start = 0
  #used = 0
  /** The last possible break, and the width before it. */
  #place = 0
  #usedBefore = 0
  /** Spaces at a break appear on neither line. */
  #isSwallowing = false

  constructor(text: string, width: number) {
    this.#text = text
    this.#width = width
  }

  pieces(): Piece[] {
    forEachGrapheme(this.#text, (grapheme) => this.#take(grapheme))
    if (this.#start < this.#text.length || this.#pieces.length === 0) this.#end(this.#text.length)
    return this.#pieces
  }

  #take(grapheme: Grapheme): void {
    const { start, end, width } = grapheme
    const isSpace = this.#text[start] === ' '
    if (this.#isSwallowing && isSpace) {
      this.#begin(end)
      return
    }
    this.#isSwallowing = false
    if (width > 1 && this.#used > 0) this.#mark(start)
    while (this.#used > 0 && this.#used + width > this.#width) this.#breakBefore(grapheme, isSpace)
    if (this.#isSwallowing) return
    this.#used += width
    if (isSpace || width > 1) this.#mark(end)
  }

  #breakBefore({ start, end }: Grapheme, isSpace: boolean): void {
    if (isSpace) {
      this.#end(start)
      this.#begin(end)
      this.#isSwallowing = true
    } else if (this.#place > this.#start) {
      const left = this.#used - this.#usedBefore
      this.#end(this.#place)
      this.#begin(this.#place)
      this.#used = left
    } else {
      this.#end(start)
      this.#begin(start)
    }
  }

  #mark(place: number): void {
    this.#place = place
    this.#usedBefore = this.#used
  }

  #begin(start: number): void {
    this.#start = start
    this.#used = 0
  }

  #end(end: number): void {
    let last = end
    while (last > this.#start && this.#text[last - 1] === ' ') last--
    this.#pieces.push({ start: this.#start, end: last })
  }
}

/** Wraps code at the full width only: keeps every letter and space. */
export function hardWrapLine(line: StyledLine, width: number): StyledLine[] {
  const text = textOf(line)
  if (fits(text, width)) return [line]
  const rows: StyledLine[] = []
  let start = 0
  let used = 0
  forEachGrapheme(text, (grapheme) => {
    if (used > 0 && used + grapheme.width > width) {
      rows.push(hardRow(line, start, grapheme.start))
      ;({ start } = grapheme)
      used = 0
    }
    used += grapheme.width
  })
  return [...rows, hardRow(line, start, text.length)]
}

function hardRow(line: StyledLine, start: number, end: number): StyledLine {
  const row = sliceLine(line, start, end)
  return start === 0 ? row : [{ text: '', joins: 'word' }, ...row]
}

/** How many rows `hardWrapLine` makes of a text, without making them. */
export function hardWrapRows(text: string, width: number): number {
  if (plain.test(text)) return Math.max(1, Math.ceil(text.length / Math.max(1, width)))
  let rows = 1
  let used = 0
  forEachGrapheme(text, (grapheme) => {
    if (used > 0 && used + grapheme.width > width) {
      rows++
      used = 0
    }
    used += grapheme.width
  })
  return rows
}

/** One column for each character. */
const plain = /^[ -~]*$/

/** The spans between two offsets of its text. */
export function sliceLine(line: StyledLine, start: number, end: number): StyledLine {
  const pieces: Span[] = []
  let offset = 0
  for (const { text, style } of line) {
    const piece = text.slice(Math.max(0, start - offset), Math.max(0, end - offset))
    if (piece !== '') pieces.push({ text: piece, style })
    offset += text.length
  }
  return pieces
}

/** A span of text in one style. The text is harmless and has no line breaks or tabs. */
export interface Span {
  readonly text: string
  readonly style?: Style | undefined
  /** Wrapping broke the line here, at a space or in a word: what follows continues the row above. Its text is empty. */
  readonly joins?: 'space' | 'word'
}

export type StyledLine = readonly Span[]

/** Opens and closes each span separately: no color runs over the end of a line. */
export function paint(line: StyledLine): string {
  return line.map(({ text, style, joins }) => (joins ? joinCodes[joins] : style ? style(text) : text)).join('')
}

/** Codes that change nothing at the beginning of a text, and survive in a painted row: copied text has no line break there. */
const joinCodes = { space: '\u001b[28m', word: '\u001b[25m' } as const

/** Where the text of a painted row begins that continues the row above, and what stood between them. */
export function joinOf(row: string): { at: number; between: string } | undefined {
  const at = row.search(joinCode)
  return at < 0 ? undefined : { at, between: row.startsWith(joinCodes.space, at) ? ' ' : '' }
}

const joinCode = /\u001b\[2[58]m/

/** For rows beside others, such as the cells of a table. */
export function withoutJoins(line: StyledLine): StyledLine {
  return line.filter(({ joins }) => !joins)
}

export function textOf(line: StyledLine): string {
  return line.map(({ text }) => text).join('')
}

/** The style of a nested element. */
export function inside(outer: Style | undefined, inner: Style | undefined): Style | undefined {
  if (!outer || !inner) return outer ?? inner
  return (text) => outer(inner(text))
}
