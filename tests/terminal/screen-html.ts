import { paletteColour } from './palette.ts'
import type { Cell } from './screen.ts'

const ground = { foreground: '#d6d8db', background: '#17191c' }

/** A page that shows a screen as a terminal would: every cell in its place, whatever the font makes of wide characters. */
export function screenHtml(cells: readonly (readonly Cell[])[]): string {
  const rows = cells.map((row) => `<div>${row.map(cellHtml).join('')}</div>`).join('\n')
  return `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; display: inline-block; padding: 14px 16px; background: ${ground.background}; color: ${ground.foreground};
  font: 15px/18px "DejaVu Sans Mono", "Liberation Mono", monospace; }
div { height: 18px; white-space: pre; }
span { display: inline-block; width: 9px; height: 18px; overflow: hidden; vertical-align: top; }
span.wide { width: 18px; }
</style><body>${rows}</body>`
}

function cellHtml(cell: Cell): string {
  if (cell.width === 0) return ''
  const style = styleOf(cell)
  const shown = cell.text === '' ? ' ' : cell.text
  const wide = cell.width === 2 ? ' class="wide"' : ''
  return `<span${wide}${style === '' ? '' : ` style="${style}"`}>${escapeHtml(shown)}</span>`
}

function styleOf(cell: Cell): string {
  const own = { foreground: colourOf(cell.foreground), background: colourOf(cell.background) }
  const { foreground, background } = cell.inverse
    ? { foreground: own.background ?? ground.background, background: own.foreground ?? ground.foreground }
    : own
  const lines = [cell.underline ? 'underline' : '', cell.struck ? 'line-through' : ''].filter(Boolean)
  return [
    foreground === undefined ? '' : `color:${foreground}`,
    background === undefined ? '' : `background:${background}`,
    cell.bold ? 'font-weight:bold' : '',
    cell.italic ? 'font-style:italic' : '',
    cell.dim ? 'opacity:.6' : '',
    lines.length === 0 ? '' : `text-decoration:${lines.join(' ')}`,
  ]
    .filter(Boolean)
    .join(';')
}

function colourOf(colour: number | string | undefined): string | undefined {
  return typeof colour === 'number' ? paletteColour(colour) : colour
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
