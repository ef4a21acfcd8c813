import { paletteColour } from '../../tests/terminal/palette.ts'
import type { Cell } from '../../tests/terminal/screen.ts'

/** What a terminal showed at one moment. */
export interface Frame {
  atMs: number
  /** Drawn below the screen. */
  caption: string
  cells: readonly (readonly Cell[])[]
}

interface Options {
  columns: number
  rows: number
  /** Read by screen readers. */
  title: string
}

const cell = { width: 8.4, height: 18 }
const padding = 14
const captionHeight = 40
const ground = { foreground: '#d6d8db', background: '#17191c' }
/** Frames closer together than this are merged. */
const shortestMs = 80
/** Nothing happens for longer than this. */
const longestMs = 2000
/** The last frame stays before the animation starts again. */
const lastMs = 5000

/** Draws frames as one animated SVG without scripts. Each row is drawn once for each time that it changes. */
export function animatedSvg(frames: readonly Frame[], { columns, rows, title }: Options): string {
  const shown = retime(frames)
  const totalMs = (shown.at(-1)?.atMs ?? 0) + lastMs
  const width = Math.ceil(columns * cell.width + 2 * padding)
  const screenHeight = rows * cell.height + 2 * padding
  const height = screenHeight + captionHeight
  const rules: string[] = []
  const drawn: string[] = []
  const addSpans = (contents: readonly string[]): void => {
    for (const { content, from, to } of spansOf(contents)) {
      if (content === '') continue
      const start = shown[from]?.atMs ?? 0
      const end = shown[to]?.atMs ?? totalMs
      drawn.push(`<g${classOf({ start, end, totalMs, rules })}>${content}</g>`)
    }
  }
  for (let row = 0; row < rows; row++) addSpans(shown.map(({ cells }) => rowSvg(cells[row] ?? [], row)))
  const captionY = screenHeight + captionHeight / 2 + 5
  addSpans(
    shown.map(({ caption }) =>
      caption === '' ? '' : `<text class="caption" x="${width / 2}" y="${captionY}">${escapeXml(caption)}</text>`,
    ),
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escapeXml(title)}</title>
<style>
text { font: 14px/1 "DejaVu Sans Mono", "SFMono-Regular", Menlo, Consolas, "Liberation Mono", monospace; fill: ${ground.foreground}; white-space: pre; }
.caption { font: 600 15px/1 system-ui, sans-serif; text-anchor: middle; fill: #f4d35e; }
.part { animation-duration: ${totalMs}ms; animation-timing-function: step-end; animation-iteration-count: infinite; }
${rules.join('\n')}
@media (prefers-reduced-motion: reduce) { .part { animation: none !important; visibility: hidden; } .last { visibility: visible; } }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d0e10"/>
<rect width="${width}" height="${screenHeight}" rx="8" fill="${ground.background}"/>
${drawn.join('\n')}
</svg>
`
}

/** Drops repeated frames, merges those that follow at once, and shortens long waits. */
function retime(frames: readonly Frame[]): Frame[] {
  const kept: Frame[] = []
  for (const frame of frames) {
    const before = kept.at(-1)
    const isMerged = before?.caption === frame.caption && frame.atMs - before.atMs < shortestMs
    if (isMerged) kept[kept.length - 1] = { ...frame, atMs: before.atMs }
    else kept.push(frame)
  }
  let clock = 0
  let beforeMs = 0
  return kept.map((frame) => {
    clock += Math.min(frame.atMs - beforeMs, longestMs)
    beforeMs = frame.atMs
    return { ...frame, atMs: Math.round(clock) }
  })
}

/** Runs of equal content, as half-open ranges of frames. */
function spansOf(contents: readonly string[]): { content: string; from: number; to: number }[] {
  const spans: { content: string; from: number; to: number }[] = []
  for (const [index, content] of contents.entries()) {
    const last = spans.at(-1)
    if (last?.content === content) last.to = index + 1
    else spans.push({ content, from: index, to: index + 1 })
  }
  return spans
}

/** The class that shows an element from `start` to `end`; its rule is added once for each pair of times. */
function classOf(span: { start: number; end: number; totalMs: number; rules: string[] }): string {
  const { start, end, totalMs, rules } = span
  if (start === 0 && end === totalMs) return ''
  const name = `t${start}-${end}`
  const percent = (ms: number): string => `${Number(((ms / totalMs) * 100).toFixed(2))}%`
  const steps = [
    ...(start === 0 ? [] : ['0%{visibility:hidden}']),
    `${percent(start)}{visibility:visible}`,
    end === totalMs ? '100%{visibility:visible}' : `${percent(end)}{visibility:hidden}`,
  ]
  const rule = `@keyframes ${name}{${steps.join('')}}.${name}{animation-name:${name}}`
  if (!rules.includes(rule)) rules.push(rule)
  return ` class="part ${name}${end === totalMs ? ' last' : ''}"`
}

/** One row: backgrounds as rectangles, and text in runs of one style, each at its column. */
function rowSvg(cells: readonly Cell[], row: number): string {
  const y = padding + row * cell.height
  const parts: string[] = []
  let column = 0
  while (column < cells.length) {
    const style = styleOf(cells[column] as Cell)
    let end = column
    let text = ''
    while (end < cells.length && sameStyle(styleOf(cells[end] as Cell), style)) {
      const { text: own, width } = cells[end] as Cell
      if (width !== 0) text += own === '' ? ' ' : own
      end++
    }
    const x = round(padding + column * cell.width)
    const width = round((end - column) * cell.width)
    if (style.background !== undefined) {
      parts.push(`<rect x="${x}" y="${y}" width="${width}" height="${cell.height}" fill="${style.background}"/>`)
    }
    const trimmed = text.trimEnd()
    if (trimmed !== '') {
      const length = round(trimmed.length * cell.width)
      parts.push(
        `<text x="${x}" y="${y + 13}" textLength="${length}" lengthAdjust="spacingAndGlyphs" xml:space="preserve"${style.attributes}>${escapeXml(trimmed)}</text>`,
      )
    }
    column = end
  }
  return parts.join('')
}

interface Style {
  attributes: string
  background?: string
}

function styleOf(place: Cell): Style {
  const own = { foreground: colorOf(place.foreground), background: colorOf(place.background) }
  const foreground = place.inverse ? (own.background ?? ground.background) : own.foreground
  const background = place.inverse ? (own.foreground ?? ground.foreground) : own.background
  const attributes = [
    foreground === undefined ? '' : ` style="fill:${foreground}"`,
    place.bold ? ' font-weight="bold"' : '',
    place.italic ? ' font-style="italic"' : '',
    place.dim ? ' opacity=".6"' : '',
    place.underline ? ' text-decoration="underline"' : '',
  ].join('')
  return { attributes, ...(background !== undefined && { background }) }
}

function sameStyle(a: Style, b: Style): boolean {
  return a.attributes === b.attributes && a.background === b.background
}

function colorOf(color: number | string | undefined): string | undefined {
  return typeof color === 'number' ? paletteColour(color) : color
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
