import { matchesKey } from '@earendil-works/pi-tui'
import { displayWidth, fitText, padded } from '../../../text/display-width.ts'
import type { Style, Theme } from '../../theme.ts'

/** The selected row of a list, and which rows are visible. */
export class ListWindow {
  #selected = 0
  #top = 0
  #count = 0
  /** The number of rows last shown: the size of a page. */
  #rows = 10

  get selected(): number {
    return this.#selected
  }

  setCount(count: number): void {
    this.#count = count
    this.select(this.#selected)
  }

  select(index: number): void {
    this.#selected = Math.max(0, Math.min(index, this.#count - 1))
  }

  /** False if the key is not handled here. */
  handleInput(data: string): boolean {
    if (matchesKey(data, 'up')) this.select(this.#selected - 1)
    else if (matchesKey(data, 'down')) this.select(this.#selected + 1)
    else if (matchesKey(data, 'pageUp')) this.select(this.#selected - this.#rows)
    else if (matchesKey(data, 'pageDown')) this.select(this.#selected + this.#rows)
    else if (matchesKey(data, 'home')) this.select(0)
    else if (matchesKey(data, 'end')) this.select(this.#count - 1)
    else return false
    return true
  }

  /** The visible rows, including the selected one. */
  range(rows: number): { from: number; to: number } {
    this.#rows = Math.max(1, rows)
    const highestTop = Math.max(0, this.#count - this.#rows)
    const lowest = this.#selected - this.#rows + 1
    this.#top = Math.min(Math.max(this.#top, lowest), this.#selected, highestTop)
    return { from: this.#top, to: Math.min(this.#count, this.#top + this.#rows) }
  }
}

interface ListRow {
  isSelected: boolean
  /** Harmless and without colors, like all members. */
  text: string
  style?: Style
  /** After the text, if there is room; never instead of the text. */
  detail?: string
  /** At the right end, never cut. */
  aside?: string
}

/** One row of a list. The selected row has a marker, so that it is visible without colors. */
export function listRow(
  { isSelected, text, style, detail = '', aside = '' }: ListRow,
  theme: Theme,
  width: number,
): string {
  const room = width - 2 - (aside === '' ? 0 : displayWidth(aside) + 1)
  const shown = fitText(text, room)
  const left = room - displayWidth(shown) - 2
  const more = detail === '' || left < 6 ? '' : `  ${fitText(detail, left)}`
  const gap = ' '.repeat(Math.max(0, room - displayWidth(shown) - displayWidth(more)))
  const end = aside === '' ? '' : ` ${aside}`
  if (isSelected) return theme.selected(padded(`› ${shown}${more}${gap}${end}`, width))
  return `  ${style ? style(shown) : shown}${theme.muted(more)}${gap}${theme.muted(end)}`
}
