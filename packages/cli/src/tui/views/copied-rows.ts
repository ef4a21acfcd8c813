import { displayWidth, forEachGrapheme } from '../../text/display-width.ts'
import { joinOf } from '../markdown/wrap-line.ts'

/** Colors, and the mark of the cursor in the composer. */
const colors = /\u001b(?:\[[0-9;]*m|_[^\u0007]*\u0007)/g
const colorsApart = /(\u001b(?:\[[0-9;]*m|_[^\u0007]*\u0007))/

/** A painted row without its colors. */
export function plainRow(row: string): string {
  return row.replaceAll(colors, '').trimEnd()
}

/** Columns of a row: the first one, and the one after the last. */
export interface Columns {
  from: number
  to: number
}

/**
 * The text of painted rows, from a column of the first to a column of the last. A line that was wrapped is one line: without the break, and
 * without the indent of its continuation.
 */
export function copiedText(rows: readonly string[], { from, to }: Columns): string {
  let copied = ''
  rows.forEach((row, index) => {
    const plain = plainRow(row)
    const end = index === rows.length - 1 ? offsetAt(plain, to) : plain.length
    const join = index === 0 ? undefined : joinOf(row)
    const textStart = join && row.slice(0, join.at).replaceAll(colors, '').length
    const start = index === 0 ? offsetAt(plain, from) : (textStart ?? 0)
    if (index > 0) copied = copied.replace(/ +$/, '') + (join ? join.between : '\n')
    copied += plain.slice(start, Math.max(start, end))
  })
  return copied.trimEnd()
}

/** The columns of the word there: what stands between spaces, quotes and brackets. Undefined between words. */
export function wordAt(row: string, column: number): Columns | undefined {
  const plain = plainRow(row)
  const offset = offsetAt(plain, column)
  for (const { 0: word, index } of plain.matchAll(words)) {
    if (index <= offset && offset < index + word.length) {
      return { from: displayWidth(plain.slice(0, index)), to: displayWidth(plain.slice(0, index + word.length)) }
    }
  }
  return undefined
}

const words = /[^\s"'`“”()[\]{}<>,;│┼]*[^\s"'`“”()[\]{}<>,;│┼.:!?]/g

/** Reverses the colors of some columns. */
export function markColumns(row: string, { from, to }: Columns): string {
  const plain = row.replaceAll(colors, '')
  return markOffsets(row, [{ from: offsetAt(plain, from), to: offsetAt(plain, to) }])
}

/** Reverses the colors of some parts of a painted row, given by the offsets in its text. */
export function markOffsets(row: string, marks: readonly Columns[]): string {
  let at = 0
  return row
    .split(colorsApart)
    .map((piece, index) => {
      const isInside = marks.some(({ from, to }) => from < at && at < to)
      // A color within a mark may end it.
      if (index % 2 === 1) return isInside ? `${piece}${markStart}` : piece
      const start = at
      at += piece.length
      return markedPiece(
        piece,
        marks.map(({ from, to }) => ({ from: from - start, to: to - start })),
      )
    })
    .join('')
}

const [markStart, markEnd] = ['\u001b[7m', '\u001b[27m']

function markedPiece(piece: string, marks: readonly Columns[]): string {
  let [marked, at] = ['', 0]
  for (const { from, to } of marks) {
    const [start, end] = [Math.max(at, from), Math.min(piece.length, to)]
    if (end <= start) continue
    marked += `${piece.slice(at, start)}${markStart}${piece.slice(start, end)}${markEnd}`
    at = end
  }
  return marked + piece.slice(at)
}

/** The offset of what is drawn in a column; the length of the text if it is to the right of it. */
function offsetAt(plain: string, column: number): number {
  let used = 0
  let offset: number | undefined
  forEachGrapheme(plain, ({ start, width }) => {
    if (offset === undefined && used + width > column) offset = start
    used += width
  })
  return offset ?? plain.length
}
