import { displayWidth, fitText } from './display-width.ts'

export interface Column {
  title: string
  align?: 'left' | 'right'
  /** The column that shrinks on a narrow terminal. */
  flexible?: boolean
}

/** Aligned rows with a header. Cells must be harmless and without color codes. Without a width nothing is cut. */
export function outputTable(columns: readonly Column[], rows: readonly (readonly string[])[], width?: number): string {
  const cells = [columns.map(({ title }) => title), ...rows]
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => displayWidth(row[index] ?? ''))))
  const used = widths.reduce((sum, each) => sum + each, 0) + gap.length * (columns.length - 1)
  const flexible = columns.findIndex((column) => column.flexible)
  if (width !== undefined && used > width && flexible >= 0) {
    widths[flexible] = Math.max(8, (widths[flexible] ?? 0) - (used - width))
  }
  return cells
    .map((row) => columns.map((column, index) => aligned(row[index] ?? '', widths[index] ?? 0, column)).join(gap))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

const gap = '  '

function aligned(cell: string, width: number, { align = 'left' }: Column): string {
  const shown = fitText(cell, width)
  const padding = ' '.repeat(width - displayWidth(shown))
  return align === 'left' ? shown + padding : padding + shown
}
