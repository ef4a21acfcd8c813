import { visibleWidth } from '@earendil-works/pi-tui'

/** Letters and our own symbols, one column each: most lines contain only these, and splitting text into graphemes is slow. */
const simple = /^[ -~…·│├─▸▲▼●○◆⤷›✓–“”▏]*$/
// oxlint-disable-next-line no-control-regex
const ownColors = /\u001b\[[0-9;]*m/g

/** The columns that a line takes in a terminal, not counting our color codes. */
export function displayWidth(line: string): number {
  const bare = line.includes('\u001b') ? line.replaceAll(ownColors, '') : line
  return simple.test(bare) ? bare.length : visibleWidth(bare)
}

/** The start of an uncolored line that fits, with `…` if it was cut. */
export function fitText(line: string, columns: number): string {
  if (columns <= 0) return ''
  // A line may be a megabyte long; only its start is examined.
  const start = line.length > columns * mostUnits ? line.slice(0, columns * mostUnits).toWellFormed() : line
  const isWhole = start.length === line.length
  if (isWhole && displayWidth(start) <= columns) return line
  return `${start.slice(0, endOf(start, columns - 1)).trimEnd()}…`
}

/** Pads with spaces up to the column; color codes do not count. */
export function padded(line: string, columns: number): string {
  return line + ' '.repeat(Math.max(0, columns - displayWidth(line)))
}

/** The most UTF-16 units per column in ordinary text. */
const mostUnits = 16

/** The index at which the fitting part ends. */
function endOf(line: string, columns: number): number {
  if (simple.test(line)) return columns
  let used = 0
  let end = 0
  let isFull = false
  forEachGrapheme(line, (grapheme) => {
    isFull ||= used + grapheme.width > columns
    if (isFull) return
    used += grapheme.width
    ;({ end } = grapheme)
  })
  return end
}

export interface Grapheme {
  start: number
  end: number
  /** Columns in the terminal. */
  width: number
}

/** Calls back for each grapheme. Segments only text outside plain Latin, because that is slow. */
export function forEachGrapheme(text: string, visit: (grapheme: Grapheme) => void): void {
  let index = 0
  while (index < text.length) {
    if (isSimple(text, index) && isSimple(text, index + 1)) {
      visit({ start: index, end: index + 1, width: 1 })
      index++
      continue
    }
    const end = endOfComplex(text, index)
    for (const { segment } of segmenter.segment(text.slice(index, end))) {
      visit({ start: index, end: index + segment.length, width: visibleWidth(segment) })
      index += segment.length
    }
  }
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** One column, and cannot combine with its neighbor. True at the end of the text. */
function isSimple(text: string, index: number): boolean {
  if (index >= text.length) return true
  const code = text.charCodeAt(index)
  if (code < 0x7f) return code >= 0x20
  return (code > 0xa0 && code < 0x300 && code !== 0xad) || (code >= 0x2500 && code < 0x2580)
}

function endOfComplex(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && !(isSimple(text, end) && isSimple(text, end + 1))) end++
  return end
}
