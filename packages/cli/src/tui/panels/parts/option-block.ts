import { matchesKey } from '@earendil-works/pi-tui'
import { padded } from '../../../text/display-width.ts'
import { paint } from '../../markdown/wrap-line.ts'
import type { Theme } from '../../theme.ts'
import { wordRows } from './command-rows.ts'
import { typedText } from './text-field.ts'

/** A few numbered options, each shown in full. Their labels are harmless. */
export class OptionBlock {
  readonly #labels: readonly string[]
  readonly #ticked = new Set<number>()
  #selected = 0

  constructor(labels: readonly string[]) {
    this.#labels = labels
  }

  get selected(): number {
    return this.#selected
  }

  /** In order. */
  get ticked(): number[] {
    return [...this.#ticked].sort((left, right) => left - right)
  }

  tick(index: number): void {
    if (!this.#ticked.delete(index)) this.#ticked.add(index)
  }

  /** The option that a key chooses; undefined if the key only moves the selection or has no meaning here. */
  handleInput(data: string): number | undefined {
    if (matchesKey(data, 'enter')) return this.#selected
    if (matchesKey(data, 'up')) this.#selected = Math.max(0, this.#selected - 1)
    else if (matchesKey(data, 'down')) this.#selected = Math.min(this.#labels.length - 1, this.#selected + 1)
    else {
      const typed = typedText(data) ?? ''
      const index = /^[1-9]$/.test(typed) ? Number(typed) - 1 : -1
      if (index < 0 || index >= this.#labels.length) return undefined
      this.#selected = index
      return index
    }
    return undefined
  }

  /** If there are fewer rows than lines, shows those around the selected option. */
  render({ theme, width, rows }: { theme: Theme; width: number; rows: number }): string[] {
    const blocks = this.#labels.map((label, index) => this.#lines(label, index, { theme, width }))
    const lines = blocks.flat()
    if (lines.length <= rows) return lines
    const before = blocks.slice(0, this.#selected).flat().length
    const top = Math.max(0, Math.min(before, lines.length - rows))
    return lines.slice(top, top + rows)
  }

  #lines(label: string, index: number, { theme, width }: { theme: Theme; width: number }): string[] {
    const isSelected = index === this.#selected
    const tick = this.#ticked.size === 0 ? '' : this.#ticked.has(index) ? '[x] ' : '[ ] '
    const head = `${isSelected ? '›' : ' '} ${index + 1}. ${tick}`
    const lines = wordRows([{ text: label.replaceAll('\t', '    ') }], width - head.length).map(
      (row, at) => (at === 0 ? head : ' '.repeat(head.length)) + paint(row),
    )
    return isSelected ? lines.map((line) => theme.selected(padded(line, width))) : lines
  }
}

const quietMs = 300

/**
 * The user may be typing when a dialog appears. Ignores keys until the dialog has been drawn and the keyboard has then been idle for a
 * moment, so that continued typing does not answer it.
 */
export class QuietKeys {
  readonly #now: () => number
  #lastMs: number | undefined
  #isQuiet = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** It is on the screen. */
  seen(): void {
    this.#lastMs ??= this.#now()
  }

  /** Another request is shown. */
  startAgain(): void {
    this.#lastMs = undefined
    this.#isQuiet = false
  }

  /** Whether a key pressed now counts. */
  admits(): boolean {
    if (this.#isQuiet) return true
    const now = this.#now()
    this.#isQuiet = this.#lastMs !== undefined && now - this.#lastMs >= quietMs
    if (this.#lastMs !== undefined) this.#lastMs = now
    return this.#isQuiet
  }
}
