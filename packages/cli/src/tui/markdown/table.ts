import type { Tokens } from '@earendil-works/pi-tui'
import { displayWidth } from '../../text/display-width.ts'
import type { Style, Theme } from '../theme.ts'
import { inlineLines } from './inline.ts'
import { inside, textOf, type Span, type StyledLine } from './styled-line.ts'
import { wrapLine } from './wrap-line.ts'

export interface TableOptions {
  theme: Theme
  width: number
  style: Style | undefined
}

/** Undefined if there is no room for columns. */
export function tableLines({ header, rows, align }: Tokens.Table, options: TableOptions): StyledLine[] | undefined {
  const { theme, style } = options
  const columns = header.length
  const room = options.width - gap.length * (columns - 1)
  if (columns === 0 || room < columns * narrowest) return undefined
  const cells = [header, ...rows].map((row, index) =>
    header.map((_, column) => inlineLines(row[column]?.tokens ?? [], theme, index === 0 ? strong(options) : style)),
  )
  const widths = columnWidths(cells, room)
  const bar: Span = { text: gap, style: theme.border }
  const rule = [{ text: widths.map((width) => '─'.repeat(width)).join('─┼─'), style: theme.border }]
  const [top = [], ...below] = cells.map((row) => rowLines(row, { widths, align, bar }))
  return [...top, rule, ...below.flat()]
}

const gap = ' │ '
const narrowest = 3

function strong({ theme, style }: TableOptions): Style | undefined {
  return inside(style, theme.strong)
}

/** Natural widths, or shrinks the widest columns until all fit. */
function columnWidths(cells: StyledLine[][][], room: number): number[] {
  const widths: number[] = []
  for (const row of cells) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? narrowest, ...cell.map((line) => displayWidth(textOf(line))))
    })
  }
  let total = widths.reduce((sum, width) => sum + width, 0)
  while (total > room) {
    const widest = widths.indexOf(Math.max(...widths))
    const [first = 0, second = 0] = widths.toSorted((left, right) => right - left)
    const less = Math.min(total - room, Math.max(1, first - second))
    widths[widest] = first - less
    total -= less
  }
  return widths
}

interface RowLayout {
  widths: number[]
  align: Tokens.Table['align']
  bar: Span
}

function rowLines(row: StyledLine[][], { widths, align, bar }: RowLayout): StyledLine[] {
  const wrapped = row.map((cell, column) => cell.flatMap((line) => wrapLine(line, widths[column] ?? narrowest)))
  const height = Math.max(1, ...wrapped.map((lines) => lines.length))
  return Array.from({ length: height }, (_, index) =>
    wrapped.flatMap((lines, column) => {
      const line = lines[index] ?? []
      const free = (widths[column] ?? narrowest) - displayWidth(textOf(line))
      const before = align[column] === 'right' ? free : align[column] === 'center' ? Math.floor(free / 2) : 0
      return [...(column === 0 ? [] : [bar]), space(before), ...line, space(free - before)]
    }),
  )
}

function space(columns: number): Span {
  return { text: ' '.repeat(Math.max(0, columns)) }
}
