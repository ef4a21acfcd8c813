import { matchesKey } from '@earendil-works/pi-tui'
import { counted } from '../../../text/amounts.ts'
import { fitText } from '../../../text/display-width.ts'
import type { Theme } from '../../theme.ts'

/** Lines of which only those in view are drawn. An array is one, too. */
export interface ScrolledLines {
  readonly length: number
  slice(from: number, to: number): readonly string[]
}

export function joinLines(first: ScrolledLines, second: ScrolledLines): ScrolledLines {
  const { length } = first
  return {
    length: length + second.length,
    slice: (from, to) => [
      ...(from < length ? first.slice(from, Math.min(to, length)) : []),
      ...(to > length ? second.slice(Math.max(0, from - length), to - length) : []),
    ],
  }
}

/** Scrollable lines. Always shows how many are hidden. */
export class ScrollText {
  #top = 0
  #page = 1
  #highestTop = 0

  toStart(): void {
    this.#top = 0
  }

  get top(): number {
    return this.#top
  }

  scrollBy(lines: number): void {
    this.scrollTo(this.#top + lines)
  }

  scrollTo(top: number): void {
    this.#top = Math.max(0, Math.min(top, this.#highestTop))
  }

  /** False if the key is not handled here. */
  handleInput(data: string): boolean {
    if (matchesKey(data, 'pageUp')) this.scrollBy(-this.#page)
    else if (matchesKey(data, 'pageDown')) this.scrollBy(this.#page)
    else if (matchesKey(data, 'shift+up')) this.scrollBy(-1)
    else if (matchesKey(data, 'shift+down')) this.scrollBy(1)
    else if (matchesKey(data, 'home')) this.scrollTo(0)
    else if (matchesKey(data, 'end')) this.#top = Infinity
    else return false
    return true
  }

  render(lines: ScrolledLines, { theme, width, rows }: { theme: Theme; width: number; rows: number }): string[] {
    if (lines.length <= rows) {
      this.#top = 0
      this.#highestTop = 0
      return [...lines.slice(0, lines.length)]
    }
    this.#page = Math.max(1, rows - 1)
    this.#highestTop = lines.length - this.#page
    this.scrollTo(this.#top)
    const below = this.#highestTop - this.#top
    const out = [
      ...(this.#top > 0 ? [`▲ ${counted(this.#top, 'line')} above`] : []),
      ...(below > 0 ? [`▼ ${counted(below, 'line')} below`] : []),
    ]
    const said = fitText(`${out.join(' · ')} · PgUp PgDn`, width)
    return [...lines.slice(this.#top, this.#top + rows - 1), theme.warning(said)]
  }
}
