import { fuzzyFilter, matchesKey } from '@earendil-works/pi-tui'
import { displayWidth } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { listRow, ListWindow } from './parts/list.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { ScrollText } from './parts/scroll-text.ts'
import { TextField, typedText } from './parts/text-field.ts'
import { wordWrapped } from './parts/text-wrap.ts'

export interface Choice<Value> {
  value: Value
  label: string
  detail?: string
  /** Why it cannot be chosen, and what helps. */
  unusable?: string
  /** The current value. */
  isCurrent?: boolean
  /** A letter that chooses it, if there is no search. */
  key?: string
}

interface ChoicePanelOptions<Value> {
  theme: Theme
  title: string
  choices: readonly Choice<Value>[]
  /** Sentences and lines above the choices. If they do not fit, PageUp and PageDown scroll them. */
  intro?: readonly string[]
  /** Typing searches; otherwise digits choose. */
  hasSearch?: boolean
  /** The initial selection; defaults to the current value or the first. */
  selected?: Value
  onChoose: (value: Value) => void
  onMove?: (value: Value) => void
  onClose: () => void
}

/** A choice from a list. */
export class ChoicePanel<Value> extends FramedPanel {
  readonly #options: ChoicePanelOptions<Value>
  readonly #list = new ListWindow()
  readonly #intro = new ScrollText()
  #scrollsIntro = false
  readonly #search: TextField | undefined
  #choices: readonly Choice<Value>[]
  #shown: readonly Choice<Value>[]

  constructor(options: ChoicePanelOptions<Value>) {
    super(options.theme)
    this.#options = options
    this.#choices = options.choices
    this.#shown = options.choices
    this.#search = options.hasSearch ? new TextField({ theme: options.theme }) : undefined
    this.#list.setCount(options.choices.length)
    const wanted = options.choices.findIndex(({ value, isCurrent }) =>
      'selected' in options ? value === options.selected : isCurrent,
    )
    this.#list.select(wanted)
  }

  /** Replaces the choices, for example once they are loaded. Keeps the selection; if there was none, selects the current value. */
  protected replaceChoices(choices: readonly Choice<Value>[]): void {
    const selected = this.#shown[this.#list.selected]
    this.#choices = choices
    this.#seek()
    const isWanted = ({ label, isCurrent }: Choice<Value>): boolean =>
      selected ? label === selected.label : isCurrent === true
    this.#list.select(this.#shown.findIndex(isWanted))
  }

  handleInput(data: string): void {
    const { onClose, onMove } = this.#options
    const before = this.#list.selected
    if (matchesKey(data, 'escape')) onClose()
    else if (matchesKey(data, 'enter')) this.#take(this.#shown[this.#list.selected])
    else if (this.#scrollsIntro && scrollKeys.some((key) => matchesKey(data, key))) this.#intro.handleInput(data)
    else if (this.#list.handleInput(data)) {
      const moved = this.#shown[this.#list.selected]
      if (moved && before !== this.#list.selected) onMove?.(moved.value)
    } else if (this.#search) {
      if (this.#search.handleInput(data)) {
        this.#seek()
        this.#list.select(0)
      }
    } else this.#takeByKey(typedText(data))
  }

  protected content(): FrameContent {
    return {
      title: this.#options.title,
      hints: [
        ...(this.#search ? ['type to search'] : []),
        '↑↓ choose',
        ...(this.#search || this.#shown.length < 2 ? [] : [`${this.#keysThatTake()} take`]),
        'Enter confirm',
        'Esc close',
      ],
      body: (room) => this.#body(room),
    }
  }

  #keysThatTake(): string {
    const keys = this.#shown.flatMap(({ key }) => key ?? [])
    return keys.length > 0 ? keys.join(' ') : `1–${Math.min(9, this.#shown.length)}`
  }

  #body({ width, rows }: Room): string[] {
    const intro = (this.#options.intro ?? []).flatMap((line) => wordWrapped(line, width))
    const search = this.#search
      ? [`/ ${this.#search.render({ width: width - 2, rows: 1, focused: this.focused })[0]}`]
      : []
    const about = this.#about(width)
    const room = Math.max(Math.min(3, this.#shown.length), rows - intro.length - search.length - about.length)
    const said = this.#introLines(intro, { width, rows: rows - room - search.length - about.length })
    const { from, to } = this.#list.range(room)
    const list = this.#shown.slice(from, to).map((choice, index) => this.#row(choice, from + index, width))
    if (list.length === 0) list.push(this.theme.muted('  No matches.'))
    return [...said, ...search, ...list, ...about]
  }

  /** The text above never displaces the choices. */
  #introLines(lines: readonly string[], { width, rows }: Room): readonly string[] {
    this.#scrollsIntro = lines.length > rows && rows > 1
    return rows < 1 ? [] : this.#intro.render(lines, { theme: this.theme, width, rows })
  }

  #row(choice: Choice<Value>, index: number, width: number): string {
    const row = {
      isSelected: index === this.#list.selected,
      text: this.#nameOf(choice, index),
      ...(choice.unusable !== undefined && { style: this.theme.muted }),
      detail: detailOf(choice),
    }
    return listRow(row, this.theme, width)
  }

  #nameOf({ label, isCurrent, key }: Choice<Value>, index: number): string {
    return `${this.#search ? '' : `${key ?? index + 1}. `}${harmlessLine(label)}${isCurrent ? ' ✓' : ''}`
  }

  /** The detail that did not fit beside the selected choice. */
  #about(width: number): string[] {
    const choice = this.#shown[this.#list.selected]
    if (!choice) return []
    const detail = detailOf(choice)
    const used = displayWidth(this.#nameOf(choice, this.#list.selected)) + displayWidth(detail) + 4
    if (detail === '' || used <= width) return []
    return ['', ...wordWrapped(detail, width).map((line) => this.theme.muted(line))]
  }

  #seek(): void {
    const text = this.#search?.text ?? ''
    this.#shown = fuzzyFilter([...this.#choices], text, ({ label, detail = '' }) => `${label} ${detail}`)
    this.#list.setCount(this.#shown.length)
  }

  #takeByKey(typed: string | undefined): void {
    if (typed === undefined) return
    const named = this.#shown.find(({ key }) => key === typed)
    const index = /^[1-9]$/.test(typed) ? Number(typed) - 1 : -1
    const choice = named ?? this.#shown[index]
    if (!choice) return
    this.#list.select(this.#shown.indexOf(choice))
    this.#take(choice)
  }

  /** A disabled choice is only selected, which shows why. */
  #take(choice: Choice<Value> | undefined): void {
    if (choice && choice.unusable === undefined) this.#options.onChoose(choice.value)
  }
}

function detailOf({ detail = '', unusable }: Pick<Choice<unknown>, 'detail' | 'unusable'>): string {
  return harmlessLine(unusable ?? detail)
}

const scrollKeys = ['pageUp', 'pageDown', 'shift+up', 'shift+down'] as const
