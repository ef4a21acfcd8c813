import {
  codeLanguage,
  sideBySide,
  type CodeLanguage,
  type DiffFile,
  type DiffLine,
  type DiffPair,
} from '@tapetree/session/screen'
import { counted } from '../../text/amounts.ts'
import { displayWidth, forEachGrapheme } from '../../text/display-width.ts'
import type { Highlighter } from '../markdown/highlight.ts'
import {
  hardWrapLine,
  hardWrapRows,
  paint,
  sliceLine,
  withoutJoins,
  textOf,
  type Span,
  type StyledLine,
} from '../markdown/wrap-line.ts'
import type { Style, Theme } from '../theme.ts'

export interface DiffViewOptions {
  theme: Theme
  /** Absent: no syntax colors. */
  highlighter?: Highlighter | undefined
  /** If set, a frame that takes too long is drawn without some of its colors, and this is called: the next one has more of them. */
  onMore?: () => void
  /** Shows the name of a single file, too. */
  isNamed?: boolean
  /** Cuts longer lines, with an ellipsis. Absent: nothing is cut. */
  rowsPerLine?: number
}

export interface DiffCounts {
  added: number
  removed: number
}

export type DiffLayout = 'unified' | 'split'

/** From this width on, the old file is shown beside the new one. */
const splitWidth = 120

export function layoutFor(width: number): DiffLayout {
  return width >= splitWidth ? 'split' : 'unified'
}

function countChanges(files: readonly DiffFile[]): DiffCounts {
  const counts = { added: 0, removed: 0 }
  for (const { hunks } of files) {
    for (const { lines } of hunks) for (const { type } of lines) if (type !== 'context') counts[type]++
  }
  return counts
}

/** `+12 −4`, each in its color; nothing for a count of 0. */
export function countSpans({ added, removed }: DiffCounts, theme: Theme): Span[] {
  const spans: Span[] = []
  if (added > 0 || removed === 0) spans.push({ text: `+${added}`, style: theme.diffAdded })
  if (removed > 0) spans.push({ text: `${spans.length > 0 ? ' ' : ''}−${removed}`, style: theme.diffRemoved })
  return spans
}

/**
 * A diff as rows of a terminal: line numbers, syntax colors and changed words, unified or side by side. Unchanged lines between hunks are
 * counted. Long lines wrap. Its texts are harmless. Only rows that are requested are colored, so a long diff costs what is
 * in view.
 */
export class DiffView {
  readonly #files: readonly DiffFile[]
  readonly #options: DiffViewOptions
  readonly #code: CodeColors
  readonly counts: DiffCounts
  #layout: { how: string; blocks: Block[]; starts: number[]; rows: number } | undefined

  constructor(files: readonly DiffFile[], options: DiffViewOptions) {
    this.#files = files
    this.#options = options
    this.#code = new CodeColors(options)
    this.counts = countChanges(files)
  }

  /** A grammar was loaded, or the theme has changed. */
  forget(): void {
    this.#code.forget()
  }

  rowCount(width: number, layout = layoutFor(width)): number {
    return this.#laidOut(width, layout).rows
  }

  /** The rows of each file with its name, for jumping from one to the next. */
  fileRows(width: number, layout = layoutFor(width)): number[] {
    const { blocks, starts } = this.#laidOut(width, layout)
    return blocks.flatMap((block, index) => (block.type === 'name' ? [starts[index] ?? 0] : []))
  }

  /** Rows from `from` to before `to`, none wider than `width`. */
  render(width: number, { from = 0, to = Infinity, layout = layoutFor(width) } = {}): string[] {
    const { blocks, starts } = this.#laidOut(width, layout)
    const lines: string[] = []
    this.#code.startFrame()
    for (let index = blockAt(starts, from); index < blocks.length; index++) {
      const start = starts[index] ?? 0
      if (start >= to) break
      const block = blocks[index]
      if (!block) break
      const rows = this.#draw(block, width)
      for (const row of rows.slice(Math.max(0, from - start), to - start)) lines.push(row)
    }
    const { onMore } = this.#options
    if (onMore && this.#code.hasLeftOut) setImmediate(onMore)
    return lines
  }

  #laidOut(width: number, layout: DiffLayout): { blocks: Block[]; starts: number[]; rows: number } {
    const how = `${width} ${layout}`
    if (this.#layout?.how === how) return this.#layout
    const blocks = this.#files.flatMap((file) =>
      fileBlocks(file, { isNamed: this.#options.isNamed ?? this.#files.length > 1, layout }),
    )
    const starts: number[] = []
    let rows = 0
    for (const block of blocks) {
      starts.push(rows)
      rows += heightOf(block, width, this.#options.rowsPerLine)
    }
    this.#layout = { how, blocks, starts, rows }
    return this.#layout
  }

  #draw(block: Block, width: number): string[] {
    const { theme } = this.#options
    switch (block.type) {
      case 'name': {
        const spans = [{ text: block.text, style: theme.strong }, { text: '  ' }, ...countSpans(block.counts, theme)]
        return hardWrapLine(spans, width).map(paint)
      }
      case 'note':
        return hardWrapLine([{ text: block.text, style: theme.muted }], width).map(paint)
      case 'line':
        return this.#side(block, block.line, width).map(paint)
      case 'pair': {
        const { left, right } = block.pair
        const half = halfOf(width)
        const [old, now] = [left, right].map((line, side) =>
          line
            ? this.#side(block, line, half, side === 0 ? 'old' : 'new')
                .map(withoutJoins)
                .map(paint)
            : [],
        )
        const height = Math.max(old?.length ?? 0, now?.length ?? 0)
        return Array.from({ length: height }, (_, row) => {
          const before = old?.[row] ?? ''
          const free = ' '.repeat(Math.max(0, half - displayWidth(before)))
          return `${before}${free}${theme.border(' │ ')}${now?.[row] ?? ''}`
        })
      }
      default:
        block satisfies never
        return []
    }
  }

  /** One line of the file in its rows, with the number and the sign before it. */
  #side(block: LineBlock | PairBlock, line: DiffLine, width: number, side?: 'old' | 'new'): StyledLine[] {
    const { theme } = this.#options
    const { line: back, words, sign } = looks(theme)[line.type]
    const number = side === 'old' ? line.oldLine : side === 'new' ? line.newLine : (line.newLine ?? line.oldLine)
    const gutter = gutterText(number, block.digits)
    const first: Span[] = [
      { text: gutter, style: onto(back, line.type === 'context' ? theme.muted : sign) },
      { text: `${signs[line.type]} `, style: onto(back, sign) },
    ]
    const blank: Span[] = [{ text: ' '.repeat(displayWidth(gutter) + 2), style: back }]
    const room = roomFor(width, block.digits)
    const colored = markedSpans(this.#code.of(block, line), line, { back, words })
    const end: Span[] = line.isUnterminated ? [{ text: unterminated, style: onto(back, theme.muted) }] : []
    const rows = cutRows(hardWrapLine([...colored, ...end], room), this.#options.rowsPerLine)
    return rows.map((row, index) => {
      const free = back === undefined || back(' ') === ' ' ? 0 : room - displayWidth(textOf(row))
      return [...(index === 0 ? first : blank), ...row, ...(free > 0 ? [{ text: ' '.repeat(free), style: back }] : [])]
    })
  }
}

const signs = { added: '+', removed: '-', context: ' ' } as const
const unterminated = ' (no line break at the end)'

/** What stands in one place of the diff. */
type Block = { type: 'name'; text: string; counts: DiffCounts } | { type: 'note'; text: string } | LineBlock | PairBlock

interface InHunk {
  file: DiffFile
  lines: readonly DiffLine[]
  /** The width of the line numbers; 0 if there are none. */
  digits: number
}

interface LineBlock extends InHunk {
  type: 'line'
  line: DiffLine
}

interface PairBlock extends InHunk {
  type: 'pair'
  pair: DiffPair
}

function fileBlocks(file: DiffFile, { isNamed, layout }: { isNamed: boolean; layout: DiffLayout }): Block[] {
  const { hunks, notes, newName, oldName } = file
  const counts = countChanges([file])
  const name = newName ?? oldName ?? ''
  const blocks: Block[] = isNamed ? [{ type: 'name', text: name, counts }] : []
  const isSplit = layout === 'split' && counts.added > 0 && counts.removed > 0
  const largest = hunks.reduce((most, { lines }) => Math.max(most, lastLine(lines)), 0)
  const digits = largest === 0 ? 0 : Math.max(3, String(largest).length)
  let shownTo = 0
  for (const { lines, section } of hunks) {
    const start = firstLine(lines)
    const between = start - shownTo - 1
    const hidden = between > 0 ? `⋯ ${counted(between, 'unchanged line')}` : ''
    const place = [hidden, section].filter((text) => text !== '').join(' · ')
    if (place !== '') blocks.push({ type: 'note', text: place })
    if (isSplit) for (const pair of sideBySide(lines)) blocks.push({ type: 'pair', pair, file, lines, digits })
    else for (const line of lines) blocks.push({ type: 'line', line, file, lines, digits })
    shownTo = lastOldLine(lines) ?? shownTo
  }
  return [...blocks, ...notes.map((text): Block => ({ type: 'note', text }))]
}

/** The number of its first line in the old file; 0 if it is unknown. */
function firstLine(lines: readonly DiffLine[]): number {
  return lines.find(({ oldLine }) => oldLine !== undefined)?.oldLine ?? 0
}

function lastOldLine(lines: readonly DiffLine[]): number | undefined {
  return lines.findLast(({ oldLine }) => oldLine !== undefined)?.oldLine
}

function lastLine(lines: readonly DiffLine[]): number {
  const last = lines.findLast(({ newLine }) => newLine !== undefined)
  return Math.max(lastOldLine(lines) ?? 0, last?.newLine ?? 0)
}

function gutterText(number: number | undefined, digits: number): string {
  return digits === 0 ? '' : `${String(number ?? '').padStart(digits)} `
}

function roomFor(width: number, digits: number): number {
  return Math.max(1, width - (digits === 0 ? 2 : digits + 3))
}

function halfOf(width: number): number {
  return Math.floor((width - 3) / 2)
}

function cutRows(rows: readonly StyledLine[], most = Infinity): readonly StyledLine[] {
  const last = rows[most - 1]
  if (rows.length <= most || !last) return rows
  let end = 0
  forEachGrapheme(textOf(last), ({ start }) => (end = start))
  return [...rows.slice(0, most - 1), [...sliceLine(last, 0, end), { text: '…' }]]
}

function heightOf(block: Block, width: number, most = Infinity): number {
  switch (block.type) {
    case 'line':
      return Math.min(most, rowsOf(block.line, roomFor(width, block.digits)))
    case 'pair': {
      const room = roomFor(halfOf(width), block.digits)
      const { left, right } = block.pair
      return Math.min(most, Math.max(left ? rowsOf(left, room) : 0, right ? rowsOf(right, room) : 0))
    }
    case 'note':
      return hardWrapLine([{ text: block.text }], width).length
    case 'name': {
      const { added, removed } = block.counts
      // The same width as the drawn line, whatever its colors.
      return hardWrapLine([{ text: `${block.text}  +${added} −${removed}` }], width).length
    }
    default:
      block satisfies never
      return 0
  }
}

function rowsOf({ text, isUnterminated }: DiffLine, room: number): number {
  return hardWrapRows(isUnterminated ? text + unterminated : text, room)
}

/** The block that contains this row. */
function blockAt(starts: readonly number[], row: number): number {
  let [low, high] = [0, starts.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((starts[middle] ?? 0) <= row) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}

interface LineLook {
  line: Style | undefined
  words: Style | undefined
  sign: Style | undefined
}

function looks(theme: Theme): Record<DiffLine['type'], LineLook> {
  return {
    added: { line: theme.diffAddedLine, words: theme.diffAddedWords, sign: theme.diffAddedSign },
    removed: { line: theme.diffRemovedLine, words: theme.diffRemovedWords, sign: theme.diffRemovedSign },
    context: { line: undefined, words: undefined, sign: undefined },
  }
}

function onto(back: Style | undefined, front: Style | undefined): Style | undefined {
  if (!back || !front) return back ?? front
  return (text) => back(front(text))
}

/** The colored line on its background, with another background for the changed words. */
function markedSpans(
  line: StyledLine,
  { text, marks = [] }: DiffLine,
  { back, words }: { back: Style | undefined; words: Style | undefined },
): Span[] {
  const spans: Span[] = []
  const add = (start: number, end: number, behind: Style | undefined): void => {
    for (const span of sliceLine(line, start, end)) spans.push({ text: span.text, style: onto(behind, span.style) })
  }
  let end = 0
  for (const mark of marks) {
    add(end, mark.start, back)
    add(mark.start, mark.end, words)
    ;({ end } = mark)
  }
  add(end, text.length, back)
  return spans
}

/** What coloring may take of a frame. The first chunk is always colored. */
const frameMs = 8

/** Highlighted at once. A grammar sees only these lines: a comment that began earlier is not recognized, as in any diff. */
const chunkLines = 40

interface CodeColorsOptions extends Pick<DiffViewOptions, 'highlighter' | 'onMore'> {
  theme: Pick<Theme, 'syntax'>
}

/** Syntax colors of the lines of a diff, by chunks of each side of a hunk. */
export class CodeColors {
  readonly #options: CodeColorsOptions
  readonly #sides = new Map<readonly DiffLine[], Record<'old' | 'new', Side>>()
  #spentMs = 0
  #hasLeftOut = false

  constructor(options: CodeColorsOptions) {
    this.#options = options
  }

  forget(): void {
    this.#sides.clear()
  }

  /** Resolves when the lines of a file can be colored. */
  async load(file: DiffFile): Promise<void> {
    const language = languageOf(file)
    if (language !== undefined) await this.#options.highlighter?.load(language)
  }

  startFrame(): void {
    this.#spentMs = 0
    this.#hasLeftOut = false
  }

  /** Some lines of the frame have no colors yet. */
  get hasLeftOut(): boolean {
    return this.#hasLeftOut
  }

  of({ file, lines }: Pick<InHunk, 'file' | 'lines'>, line: DiffLine): StyledLine {
    const plain = [{ text: line.text }]
    const { highlighter, theme } = this.#options
    const language = languageOf(file)
    if (!highlighter || language === undefined) return plain
    const sides = this.#sides.get(lines) ?? { old: sideOf(lines, 'added'), new: sideOf(lines, 'removed') }
    this.#sides.set(lines, sides)
    const side = line.type === 'removed' ? sides.old : sides.new
    const place = side.places.get(line)
    if (place === undefined) return plain
    const chunk = Math.floor(place / chunkLines)
    const start = chunk * chunkLines
    let colored = side.chunks.get(chunk)
    if (!colored) {
      if (this.#options.onMore && this.#spentMs > frameMs) {
        this.#hasLeftOut = true
        return plain
      }
      const before = performance.now()
      colored = highlighter.highlight(side.lines.slice(start, start + chunkLines).join('\n'), language, theme)
      this.#spentMs += performance.now() - before
      if (!colored) return plain
      side.chunks.set(chunk, colored)
    }
    const found = colored[place - start]
    // Marks are positions in the text, so it must be the same.
    return found && textOf(found) === line.text ? found : plain
  }
}

interface Side {
  lines: string[]
  places: Map<DiffLine, number>
  chunks: Map<number, readonly StyledLine[]>
}

function sideOf(lines: readonly DiffLine[], without: DiffLine['type']): Side {
  const side: Side = { lines: [], places: new Map(), chunks: new Map() }
  for (const line of lines) {
    if (line.type === without) continue
    side.places.set(line, side.lines.length)
    side.lines.push(line.text)
  }
  return side
}

/** By the extension of the file, or by its whole name. */
function languageOf({ newName, oldName }: DiffFile): CodeLanguage | undefined {
  const name = (newName ?? oldName ?? '').split('/').at(-1) ?? ''
  return codeLanguage(name.split('.').at(-1) ?? '')
}
