import { truncateToWidth, type Component } from '@earendil-works/pi-tui'
import { callArgument } from '@tapetree/session/screen'
import {
  emptyTranscript,
  type Transcript,
  type AssistantPart,
  type ToolCallPart,
  type TranscriptItem,
} from '@tapetree/session/view'
import type { Theme } from '../theme.ts'
import { ShownItems, type ShownItemsOptions } from './shown-items.ts'
import { contentText } from '../../text/content-text.ts'
import { fitText, padded } from '../../text/display-width.ts'
import { shownWords } from '../markdown/shown-text.ts'
import { copiedText, markColumns, markOffsets, plainRow } from './copied-rows.ts'

export interface TranscriptViewOptions {
  theme: Theme
  now: () => number
  /** The view must be redrawn for internal reasons, such as a loaded grammar. */
  onChange?: () => void
  /** The start of the loaded part has come into view, and there is more before it. */
  onOlder?: () => void
  taskNews?: ShownItemsOptions['taskNews']
  jobNews?: ShownItemsOptions['jobNews']
}

/** The conversation, in a window with a number of rows. The cost depends on what is visible and what has changed, not on the length. */
export class TranscriptView implements Component {
  readonly #options: TranscriptViewOptions
  readonly #shown: ShownItems
  readonly #scroll: ScrollPosition
  #transcript: Transcript = emptyTranscript()
  #window: Window = { width: 80, rows: 24 }
  /** The start for which older messages were requested. */
  #askedAt: string | undefined
  #found: string | undefined
  /** What is searched for, marked wherever it is in view. */
  #mark: RegExp | undefined
  #selection: Selection | undefined

  constructor(options: TranscriptViewOptions) {
    this.#options = options
    const { theme, now, onChange = () => undefined, taskNews, jobNews } = options
    this.#shown = new ShownItems({ theme, now, onChange, taskNews, jobNews })
    this.#scroll = new ScrollPosition(this.#shown)
  }

  get isAtEnd(): boolean {
    return this.#scroll.isAtEnd
  }

  /** Approximate: blocks that were never rendered are estimated. */
  get rowsAbove(): number {
    const { index, row } = this.#scroll.place(this.#window)
    return this.#rowsBetween(0, index) + row
  }

  /** Approximate, like `rowsAbove`. */
  get rowsBelow(): number {
    if (this.isAtEnd) return 0
    const { index, row } = this.#scroll.place(this.#window)
    return Math.max(0, this.#rowsBetween(index, this.#shown.items.length) - row - this.#window.rows)
  }

  get hasOlder(): boolean {
    const [first] = this.#shown.items
    return first?.type === 'gap' && first.gap.type === 'not_loaded'
  }

  update(transcript: Transcript): void {
    this.#transcript = transcript
    this.#shown.update(transcript)
  }

  setRows(rows: number): void {
    this.#window = { ...this.#window, rows: Math.max(1, rows) }
  }

  /** Down, or up if negative. */
  scrollBy(lines: number): void {
    this.#scroll.move(lines, this.#window)
  }

  scrollTo(place: 'start' | 'end'): void {
    if (place === 'end') this.#scroll.toEnd()
    else this.#scroll.hold({ index: 0, row: 0 }, this.#window)
  }

  /** Folds or unfolds reasoning and tool output. */
  toggleDetails(): void {
    this.#selection = undefined
    this.#shown.toggle()
  }

  /** Scrolls an entry to the upper edge. False if it is not on the path. */
  showItem(entryId: string): boolean {
    const index = this.#shown.indexOf(entryId)
    if (index < 0) return false
    this.#scroll.hold({ index, row: 0 }, this.#window)
    return true
  }

  /**
   * Shows the next match above, unfolded, and marks all matches in view. `wraps`: after the first one it continues at the end. Undefined if there
   * is none.
   */
  find(text: string, { wraps = true } = {}): Found | undefined {
    const wanted = text.trim().toLowerCase()
    const { items } = this.#shown
    if (wanted === '' || items.length === 0) return undefined
    this.#mark = new RegExp(RegExp.escape(text.trim()), 'gi')
    const matches = items.flatMap((item, index) => (itemWords(item).toLowerCase().includes(wanted) ? [index] : []))
    const before = this.#found === undefined ? -1 : this.#shown.indexOf(this.#found)
    const from = before === -1 ? items.length : before
    const index = matches.findLast((each) => each < from) ?? (wraps ? matches.at(-1) : undefined)
    const item = index === undefined ? undefined : items[index]
    if (index === undefined || !item) return undefined
    this.#found = item.id
    this.#shown.unfold(item.id)
    this.#showWords(item.id, wanted)
    return { number: matches.length - matches.indexOf(index), count: matches.length }
  }

  /** The search is over: nothing is marked, and the next one begins at the end. */
  endFind(): void {
    this.#mark = undefined
    this.#found = undefined
  }

  invalidate(): void {
    this.#shown.forget()
  }

  /** What is drawn in a row of the window; at its edge if the row is outside, or empty. */
  rowAt(windowRow: number): TextRow | undefined {
    const place = this.#placeAt(Math.min(Math.max(0, windowRow), this.#window.rows - 1))
    if (place) return this.#rowOf(place.index, place.row)
    for (let index = this.#shown.count - 1; index >= 0; index--) {
      const last = this.#linesAt(index).length - 1
      if (last >= 0) return this.#rowOf(index, last)
    }
    return undefined
  }

  /** The call of a subagent whose line is drawn in a row of the window. */
  taskAt(windowRow: number): ToolCallPart | undefined {
    // The prompt is drawn over the first row.
    if (windowRow === 0 && this.#promptAbove() !== undefined) return undefined
    const place = this.#placeAt(windowRow)
    return place && this.#shown.taskAt(place.index, { row: place.row, width: this.#window.width })
  }

  /** Selects the text between two cells, both included, in any order. It stays selected where it moves, and until it changes. */
  select(anchor: TextCell, focus: TextCell): void {
    const isForward = this.#isBefore(anchor, focus)
    this.#selection = isForward ? { from: anchor, to: focus } : { from: focus, to: anchor }
  }

  deselect(): void {
    this.#selection = undefined
  }

  /** Without the line breaks that are only here because the window is narrow. */
  get selectedText(): string {
    const selection = this.#settledSelection()
    if (!selection) return ''
    const { from, to } = selection
    const [first, last] = [this.#indexOf(from.id), this.#indexOf(to.id)]
    const rows: string[] = []
    for (let index = first; index <= last; index++) {
      const lines = this.#linesAt(index)
      const [start, end] = [index === first ? from.row : 0, index === last ? to.row + 1 : lines.length]
      for (const line of lines.slice(start, end)) rows.push(line)
    }
    return copiedText(rows, { from: from.column, to: to.column + 1 })
  }

  /** As many lines as it has rows. */
  render(width: number): string[] {
    if (this.#window.width !== Math.max(narrowest, width)) this.#selection = undefined
    this.#window = { ...this.#window, width: Math.max(narrowest, width) }
    const { rows } = this.#window
    const mark = this.#mark
    const lines = this.#selected(this.#visibleLines()).map((line) => (mark ? markedLine(line, mark) : line))
    while (lines.length < rows) lines.push('')
    const prompt = this.#promptAbove()
    if (prompt !== undefined) lines[0] = prompt
    return width < narrowest ? lines.map((line) => truncateToWidth(line, width, '')) : lines
  }

  #visibleLines(): string[] {
    const { width, rows } = this.#window
    const { index: first, row } = this.#scroll.place(this.#window)
    const lines: string[] = []
    for (let index = first; index < this.#shown.count && lines.length < rows; index++) {
      const all = this.#shown.linesAt(index, width)
      const from = index === first ? row : 0
      for (const line of all.slice(from, from + rows - lines.length)) lines.push(line)
    }
    if (first > 0) this.#askedAt = undefined
    else this.#askForOlder()
    if (lines.length < rows && !this.isAtEnd) {
      this.#scroll.toEnd()
      return this.#visibleLines()
    }
    return lines
  }

  /** Undefined below the last row. */
  #placeAt(windowRow: number): Place | undefined {
    let { index, row } = this.#scroll.place(this.#window)
    let left = windowRow
    for (; index < this.#shown.count; index++, row = 0) {
      const lines = this.#linesAt(index)
      if (row + left < lines.length) return { index, row: row + left }
      left -= lines.length - row
    }
    return undefined
  }

  #linesAt(index: number): readonly string[] {
    return this.#shown.linesAt(index, this.#window.width)
  }

  #rowOf(index: number, row: number): TextRow {
    const line = this.#linesAt(index)[row] ?? ''
    return { id: this.#shown.idAt(index) ?? tailId, row, text: plainRow(line) }
  }

  #indexOf(id: string): number {
    return id === tailId ? this.#shown.count - 1 : this.#shown.indexOf(id)
  }

  #isBefore(one: TextCell, other: TextCell): boolean {
    const apart = this.#indexOf(one.id) - this.#indexOf(other.id) || one.row - other.row
    return apart < 0 || (apart === 0 && one.column <= other.column)
  }

  /** Finds the selected text again when rows were added or removed above it. Undefined if it is gone. */
  #settledSelection(): Selection | undefined {
    const { from, to } = this.#selection ?? {}
    const [first, last] = [from && this.#settled(from), to && this.#settled(to)]
    this.#selection = first && last && { from: first, to: last }
    return this.#selection
  }

  #settled(cell: TextCell): TextCell | undefined {
    const index = this.#indexOf(cell.id)
    const lines = index < 0 ? [] : this.#linesAt(index)
    // A row that grows, because its text is being written, is the same row.
    const isThere = (row: number): boolean => plainRow(lines[row] ?? '').startsWith(cell.text)
    if (lines.length > cell.row && isThere(cell.row)) return cell
    const rows = lines.flatMap((_, row) => (cell.text !== '' && isThere(row) ? [row] : []))
    const [nearest] = rows.toSorted((one, other) => Math.abs(one - cell.row) - Math.abs(other - cell.row))
    return nearest === undefined ? undefined : { ...cell, row: nearest }
  }

  #selected(lines: string[]): string[] {
    const selection = this.#settledSelection()
    if (!selection) return lines
    const { from, to } = selection
    let { index, row } = this.#scroll.place(this.#window)
    const [first, last] = [this.#indexOf(from.id), this.#indexOf(to.id)]
    return lines.map((line) => {
      while (row >= this.#linesAt(index).length && index < this.#shown.count) [index, row] = [index + 1, 0]
      const isAfter = index > first || (index === first && row >= from.row)
      const isUntil = index < last || (index === last && row <= to.row)
      const start = index === first && row === from.row ? from.column : 0
      const end = index === last && row === to.row ? to.column + 1 : Infinity
      row++
      return isAfter && isUntil ? markColumns(line, { from: start, to: end }) : line
    })
  }

  /** The message of the user whose answer is in view, while it is above the window itself. */
  #promptAbove(): string | undefined {
    const { rows, width } = this.#window
    if (rows < leastForPrompt) return undefined
    const { index, row } = this.#scroll.place(this.#window)
    const { items } = this.#shown
    let at = Math.min(index, items.length - 1)
    while (at >= 0 && items[at]?.type !== 'user') at--
    const item = items[at]
    if (item?.type !== 'user' || (at === index && row === 0)) return undefined
    const { theme } = this.#options
    const text = fitText(shownWords(contentText(item.content)), width - 3)
    return theme.userMessage(`${theme.accent('>')} ${padded(text, width - 2)}`)
  }

  #askForOlder(): void {
    const [first] = this.#transcript.path.items.slice(0, 1)
    if (!this.hasOlder || first === undefined || this.#askedAt === first.id) return
    this.#askedAt = first.id
    this.#options.onOlder?.()
  }

  #showWords(id: string, wanted: string): void {
    const index = this.#shown.indexOf(id)
    const lines = this.#shown.linesAt(index, this.#window.width)
    const row = lines.findIndex((line) => line.replaceAll(colors, '').toLowerCase().includes(wanted))
    this.#scroll.hold({ index, row: Math.max(0, row - 1) }, this.#window)
  }

  #rowsBetween(from: number, to: number): number {
    let rows = 0
    for (let index = from; index < to; index++) rows += this.#shown.heightAt(index)
    return rows
  }
}

/** One row of the conversation, wherever it is scrolled to. */
export interface TextRow {
  /** Of its item, and which row of that it is. */
  id: string
  row: number
  text: string
}

export interface TextCell extends TextRow {
  column: number
}

interface Selection {
  from: TextCell
  to: TextCell
}

/** A match of a search: its number, counted from the newest message, and how many messages match. */
export interface Found {
  number: number
  count: number
}

/** Reverses the colors of all matches in a styled line. */
function markedLine(line: string, mark: RegExp): string {
  const matches = [...line.replaceAll(colors, '').matchAll(mark)]
  return markOffsets(
    line,
    matches.map(({ 0: match, index }) => ({ from: index, to: index + match.length })),
  )
}

const narrowest = 12
/** What comes after the last item: the state of the run. */
const tailId = ' after the items'
/** In a lower window every row is needed. */
const leastForPrompt = 8
const colors = /\u001b\[[0-9;]*m/g

/** The full text of an item, for searching. Not harmless. */
function itemWords(item: TranscriptItem): string {
  switch (item.type) {
    case 'user':
      return contentText(item.content)
    case 'assistant':
      return [...item.parts.map(partWords), item.error?.message ?? ''].join('\n')
    case 'tool_result':
      return item.results.map(({ content }) => contentText(content)).join('\n')
    case 'bash':
      return `${item.command}\n${item.output}`
    case 'compaction':
    case 'branch_summary':
      return item.summary
    case 'custom':
      return item.custom.type === 'message' ? contentText(item.custom.content) : item.custom.customType
    case 'model':
      return `${item.provider}/${item.modelId}`
    case 'thinking_level':
      return item.thinkingLevel
    case 'system':
    case 'gap':
      return ''
    default:
      item satisfies never
      return ''
  }
}

function partWords(part: AssistantPart): string {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return part.text
    case 'tool_call':
      return `${part.name} ${callArgument(part)}\n${contentText(part.result?.content ?? '')}`
    case 'image':
      return ''
    default:
      part satisfies never
      return ''
  }
}

/** What is scrolled: blocks of some height, below each other. */
interface ScrolledThings {
  readonly count: number
  idAt(index: number): string | undefined
  indexOf(id: string): number
  /** Renders it, if necessary. */
  linesAt(index: number, width: number): readonly string[]
}

interface Place {
  /** The block at the upper edge, and how many of its rows are above the edge. */
  index: number
  row: number
}

interface Window {
  width: number
  rows: number
}

/**
 * The position of a window, anchored to the block at its upper edge instead of a row number. Nothing above has to be rendered or measured,
 * and the text in view stays in place when something above or below changes.
 */
class ScrollPosition {
  readonly #things: ScrolledThings
  /** Undefined: at the end, following it. */
  #held: { id: string; index: number; row: number } | undefined

  constructor(things: ScrolledThings) {
    this.#things = things
  }

  get isAtEnd(): boolean {
    return this.#held === undefined
  }

  toEnd(): void {
    this.#held = undefined
  }

  /** Puts a row of a block at the upper edge, or as close as the rows below allow. */
  hold(place: Place, window: Window): void {
    const last = this.#lastPlace(window)
    const isBehind = place.index > last.index || (place.index === last.index && place.row >= last.row)
    const id = this.#things.idAt(place.index)
    this.#held = isBehind || id === undefined ? undefined : { ...place, id }
  }

  move(lines: number, window: Window): void {
    let { index, row } = this.place(window)
    row += lines
    while (row < 0 && index > 0) row += this.#height(--index, window)
    row = Math.max(0, row)
    while (index < this.#things.count - 1 && row >= this.#height(index, window)) row -= this.#height(index++, window)
    this.hold({ index, row }, window)
  }

  place(window: Window): Place {
    const held = this.#held
    if (!held) return this.#lastPlace(window)
    const index = this.#things.idAt(held.index) === held.id ? held.index : this.#things.indexOf(held.id)
    if (index < 0) {
      this.#held = undefined
      return this.#lastPlace(window)
    }
    const row = Math.min(held.row, Math.max(0, this.#height(index, window) - 1))
    this.#held = { ...held, index, row }
    return { index, row }
  }

  /** The position from which the rows below just fill the window. */
  #lastPlace(window: Window): Place {
    let free = window.rows
    let index = this.#things.count
    while (index > 0 && free > 0) free -= this.#height(--index, window)
    return { index, row: Math.max(0, -free) }
  }

  #height(index: number, { width }: Window): number {
    return this.#things.linesAt(index, width).length
  }
}
