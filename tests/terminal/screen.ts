import type { IBufferCell, Terminal as Emulator } from '@xterm/headless'

/** One place on the screen, and how it is dressed. A colour is a number of the palette, or `#rrggbb`. */
export interface Cell {
  text: string
  /** 0 behind a wide character. */
  width: number
  foreground?: number | string
  background?: number | string
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  inverse: boolean
  struck: boolean
}

export function rowsOf({ buffer: { active }, rows }: Emulator, which: 'in sight' | 'all'): string[] {
  const [first, count] = which === 'all' ? [0, active.length] : [active.viewportY, rows]
  return Array.from({ length: count }, (_, row) => active.getLine(first + row)?.translateToString(true) ?? '')
}

export function cellsOf({ buffer: { active }, rows, cols }: Emulator): Cell[][] {
  return Array.from({ length: rows }, (_, row) => {
    const line = active.getLine(active.viewportY + row)
    return Array.from({ length: cols }, (_unused, column) => line?.getCell(column)).flatMap((cell) =>
      cell ? [cellOf(cell)] : [],
    )
  })
}

function cellOf(cell: IBufferCell): Cell {
  return {
    text: cell.getChars(),
    width: cell.getWidth(),
    ...(!cell.isFgDefault() && { foreground: colour(cell.getFgColor(), cell.isFgRGB()) }),
    ...(!cell.isBgDefault() && { background: colour(cell.getBgColor(), cell.isBgRGB()) }),
    bold: cell.isBold() !== 0,
    dim: cell.isDim() !== 0,
    italic: cell.isItalic() !== 0,
    underline: cell.isUnderline() !== 0,
    inverse: cell.isInverse() !== 0,
    struck: cell.isStrikethrough() !== 0,
  }
}

function colour(value: number, isRgb: boolean): number | string {
  return isRgb ? `#${value.toString(16).padStart(6, '0')}` : value
}
