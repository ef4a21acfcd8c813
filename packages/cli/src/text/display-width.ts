import { visibleWidth } from '@earendil-works/pi-tui'
import { forEachGrapheme } from './graphemes.ts'

/** Letters and our own signs, one column each: most lines are made of these, and to divide them into graphemes is slow. */
const simple = /^[ -~…·│├─▸▲▼●○◆⤷›✓–“”▏]*$/
// oxlint-disable-next-line no-control-regex
const ownColours = /\u001b\[[0-9;]*m/g

/** Columns that a line takes in a terminal, our own colours not counted. */
export function displayWidth(line: string): number {
  const bare = line.includes('\u001b') ? line.replaceAll(ownColours, '') : line
  return simple.test(bare) ? bare.length : visibleWidth(bare)
}

/** The start of a line without colours that fits, with `…` where something was left out. */
export function fitText(line: string, columns: number): string {
  if (columns <= 0) return ''
  // A line may be a megabyte long, and only its start is looked at.
  const start = line.length > columns * mostUnits ? line.slice(0, columns * mostUnits).toWellFormed() : line
  const isWhole = start.length === line.length
  if (isWhole && displayWidth(start) <= columns) return line
  return `${start.slice(0, endOf(start, columns - 1)).trimEnd()}…`
}

/** With spaces behind it up to the column; colours are not counted. */
export function padded(line: string, columns: number): string {
  return line + ' '.repeat(Math.max(0, columns - displayWidth(line)))
}

/** UTF-16 units that a column may take, at most, of what people write. */
const mostUnits = 16

/** Where what fits ends. */
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
