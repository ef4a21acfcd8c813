import type { TuiMouseEvent, TuiMouseEventResult } from '@earendil-works/pi-tui'
import { copiedText, markColumns, plainRow, wordAt, type Columns } from '../views/copied-rows.ts'
import { displayWidth } from '../../text/display-width.ts'
import type { TextCell } from '../views/transcript-view.ts'
import type { Scrolling } from './transcript-pane.ts'

export interface MouseSelectionOptions {
  /** The conversation, if our screen scrolls it. */
  scrolling: () => Scrolling | undefined
  copy: (text: string) => void
  /** What a click there does; undefined if it does nothing. */
  clickAt: (place: ClickedPlace) => (() => void) | undefined
  onChange: () => void
}

/** A row of the conversation in view, or of what is beside it. */
export interface ClickedPlace {
  area: 'pane' | 'side'
  row: number
}

/** What a screen consists of. Its conversation scrolls; the other areas stand still, and a selection in them ends when they change. */
export interface DrawnAreas {
  /** The rows of `main` that are the conversation. */
  pane: { top: number; rows: number }
  main: readonly string[]
  /** To the right of `main`, from this column on. */
  side: { column: number; rows: readonly string[] } | undefined
}

type Area = 'pane' | 'main' | 'side'

interface ScreenCell {
  row: number
  column: number
}

/** A selection outside the conversation. */
interface StillSelection {
  area: 'main' | 'side'
  anchor: ScreenCell
  focus: ScreenCell
  /** What is selected: it ends when one of these rows changes. */
  rows: readonly string[]
}

/** While the pointer is held at an edge, the conversation scrolls by a row each time. */
const scrollEveryMs = 50
/** How long a click may still become a double click. */
const doubleClickMs = 500

/**
 * Selects text with the mouse: by dragging, a word by two clicks, a line by three. In the conversation, the selection stays with its text.
 * Releasing the button copies it.
 */
export class MouseSelection {
  readonly #options: MouseSelectionOptions
  #areas: DrawnAreas = { pane: { top: 0, rows: 0 }, main: [], side: undefined }
  #drag: { area: Area; at: ScreenCell; anchor: TextCell | undefined; hasMoved: boolean } | undefined
  #still: StillSelection | undefined
  #scrolling: { timer: NodeJS.Timeout; pointer: ScreenCell } | undefined
  #click: NodeJS.Timeout | undefined

  constructor(options: MouseSelectionOptions) {
    this.#options = options
  }

  handle(event: TuiMouseEvent): TuiMouseEventResult | undefined {
    const { type, button, screenX, screenY, clickCount = 1 } = event
    const at = { row: screenY, column: screenX }
    if (type === 'press') {
      this.clear()
      if (button !== 'left') return undefined
      this.#begin(at)
      return { handled: true, capture: true }
    }
    if (!this.#drag && type !== 'click') return undefined
    if (type === 'drag') {
      this.#move(at)
      return { handled: true }
    }
    if (type === 'release') {
      const wasDragged = this.#drag?.hasMoved
      this.#stop()
      if (wasDragged) this.#copy()
      return { handled: true, render: true }
    }
    if (type !== 'click') return undefined
    if (clickCount === 1) this.#clickLater(at)
    else {
      this.#selectAround(at, clickCount === 2 ? 'word' : 'line')
      this.#copy()
    }
    return { handled: true }
  }

  clear(): void {
    clearTimeout(this.#click)
    this.#stop()
    this.#still = undefined
    this.#options.scrolling()?.text?.deselect()
  }

  /** The rows with what is selected in them. The conversation marks its own. */
  mark(areas: DrawnAreas): DrawnAreas {
    this.#areas = areas
    const still = this.#still
    if (!still) return areas
    const { area, rows } = still
    const { from, to } = spanOf(still)
    const now = this.#rowsOf(area)
    if (rows.some((row, index) => now[from.row + index] !== row)) {
      this.#still = undefined
      return areas
    }
    const marked = now.map((row, index) => {
      if (index < from.row || index > to.row) return row
      const start = index === from.row ? from.column : 0
      return markColumns(row, { from: start, to: index === to.row ? to.column + 1 : Infinity })
    })
    return area === 'main'
      ? { ...areas, main: marked }
      : { ...areas, side: areas.side && { ...areas.side, rows: marked } }
  }

  /** Another press, or a key, ends the wait. */
  #clickLater(at: ScreenCell): void {
    const area = this.#areaAt(at)
    if (area === 'main') return
    const row = area === 'pane' ? at.row - this.#areas.pane.top : at.row
    const click = this.#options.clickAt({ area, row })
    if (click) this.#click = setTimeout(click, doubleClickMs).unref()
  }

  #begin(at: ScreenCell): void {
    const area = this.#areaAt(at)
    this.#drag = { area, at, anchor: area === 'pane' ? this.#cellAt(at) : undefined, hasMoved: false }
  }

  #move(at: ScreenCell): void {
    const drag = this.#drag
    if (!drag) return
    drag.hasMoved = true
    if (drag.area === 'pane') {
      this.#scrollAtEdge(at)
      this.#extend(at)
    } else this.#still = this.#stillSelection(drag.area, drag.at, at)
    this.#options.onChange()
  }

  #extend(at: ScreenCell): void {
    const focus = this.#cellAt(at)
    const anchor = this.#drag?.anchor
    if (anchor && focus) this.#options.scrolling()?.text?.select(anchor, focus)
  }

  #scrollAtEdge(pointer: ScreenCell): void {
    const { top, rows } = this.#areas.pane
    const isAtEdge = pointer.row <= top || pointer.row >= top + rows - 1
    if (!isAtEdge) return this.#stopScrolling()
    if (this.#scrolling) {
      this.#scrolling.pointer = pointer
      return undefined
    }
    const timer = setInterval(() => this.#scrollOn(), scrollEveryMs)
    timer.unref()
    this.#scrolling = { timer, pointer }
    return undefined
  }

  #scrollOn(): void {
    const { pointer } = this.#scrolling ?? {}
    if (!pointer) return
    this.#options.scrolling()?.by(pointer.row <= this.#areas.pane.top ? -1 : 1)
    this.#extend(pointer)
    this.#options.onChange()
  }

  #stopScrolling(): void {
    clearInterval(this.#scrolling?.timer)
    this.#scrolling = undefined
  }

  #stop(): void {
    this.#stopScrolling()
    this.#drag = undefined
  }

  #selectAround(at: ScreenCell, what: 'word' | 'line'): void {
    const area = this.#areaAt(at)
    if (area === 'pane') {
      const cell = this.#cellAt(at)
      const columns = cell && columnsAround(cell.text, cell.column, what)
      if (!columns) return
      const ends = [columns.from, columns.to - 1].map((column) => ({ ...cell, column }))
      const [from, to] = ends
      if (from && to) this.#options.scrolling()?.text?.select(from, to)
      return
    }
    const local = this.#local(area, at)
    const columns = columnsAround(this.#rowsOf(area)[local.row] ?? '', local.column, what)
    if (!columns) return
    const [from, to] = [columns.from, columns.to - 1].map((column) => this.#global(area, { ...local, column }))
    if (from && to) this.#still = this.#stillSelection(area, from, to)
  }

  #copy(): void {
    const { copy, scrolling } = this.#options
    const text = this.#still ? this.#stillText(this.#still) : (scrolling()?.text?.selectedText ?? '')
    if (text !== '') copy(text)
  }

  #stillText(still: StillSelection): string {
    const { from, to } = spanOf(still)
    return copiedText(still.rows, { from: from.column, to: to.column + 1 })
  }

  #stillSelection(area: 'main' | 'side', one: ScreenCell, other: ScreenCell): StillSelection {
    const [anchor, focus] = [this.#local(area, one), this.#local(area, other)]
    const { from, to } = spanOf({ anchor, focus })
    return { area, anchor, focus, rows: this.#rowsOf(area).slice(from.row, to.row + 1) }
  }

  #areaAt({ row, column }: ScreenCell): Area {
    const { pane, side } = this.#areas
    if (side && column >= side.column) return 'side'
    const hasText = this.#options.scrolling()?.text !== undefined
    return hasText && row >= pane.top && row < pane.top + pane.rows ? 'pane' : 'main'
  }

  #rowsOf(area: 'main' | 'side'): readonly string[] {
    return area === 'main' ? this.#areas.main : (this.#areas.side?.rows ?? [])
  }

  #local(area: 'main' | 'side', { row, column }: ScreenCell): ScreenCell {
    const rows = this.#rowsOf(area).length
    const { side } = this.#areas
    const [first, last] = area === 'side' ? [side?.column ?? 0, Infinity] : [0, (side?.column ?? Infinity) - 1]
    return {
      row: Math.max(0, Math.min(rows - 1, row)),
      column: Math.max(first, Math.min(last, column)) - first,
    }
  }

  #global(area: 'main' | 'side', { row, column }: ScreenCell): ScreenCell {
    return { row, column: column + (area === 'side' ? (this.#areas.side?.column ?? 0) : 0) }
  }

  #cellAt({ row, column }: ScreenCell): TextCell | undefined {
    const found = this.#options.scrolling()?.text?.rowAt(row - this.#areas.pane.top)
    if (!found) return undefined
    const { id, row: place, text } = found
    return { id, row: place, text, column }
  }
}

function spanOf({ anchor, focus }: Pick<StillSelection, 'anchor' | 'focus'>): { from: ScreenCell; to: ScreenCell } {
  const isForward = anchor.row < focus.row || (anchor.row === focus.row && anchor.column <= focus.column)
  return isForward ? { from: anchor, to: focus } : { from: focus, to: anchor }
}

function columnsAround(row: string, column: number, what: 'word' | 'line'): Columns | undefined {
  if (what === 'word') return wordAt(row, column)
  const plain = plainRow(row)
  return plain === '' ? undefined : { from: displayWidth(/^ */.exec(plain)?.[0] ?? ''), to: displayWidth(plain) }
}
