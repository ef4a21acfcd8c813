/** What is scrolled: blocks of some height, below each other. */
export interface ScrolledThings {
  readonly count: number
  idAt(index: number): string | undefined
  indexOf(id: string): number
  /** Renders it, if necessary. */
  linesAt(index: number, width: number): readonly string[]
}

export interface Place {
  /** The block at the upper edge, and how many of its rows are above the edge. */
  index: number
  row: number
}

export interface Window {
  width: number
  rows: number
}

/**
 * The position of a window, anchored to the block at its upper edge instead of a row number. Nothing above has to be rendered or measured,
 * and the text in view stays in place when something above or below changes.
 */
export class ScrollPosition {
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
