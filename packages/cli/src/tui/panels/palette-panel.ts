import { fuzzyFilter, matchesKey } from '@earendil-works/pi-tui'
import { harmlessLine } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { listRow, ListWindow } from './parts/list.ts'
import { FramedPanel, type FrameContent, type Room } from './parts/panel-frame.ts'
import { TextField } from './parts/text-field.ts'

/** What kind of thing an entry is, and the sign that limits the search to this kind. */
const paletteKinds = { command: '/', file: '@', session: '#', model: ':' } as const
export type PaletteKind = keyof typeof paletteKinds

export interface PaletteEntry {
  kind: PaletteKind
  /** Unique within its kind. */
  name: string
  detail?: string
  take: () => void
}

export interface PalettePanelOptions {
  theme: Theme
  entries: readonly PaletteEntry[]
  /** Called when the search text changes: there may be more files than can be listed at once. */
  onSearch: (text: string) => void
  onClose: () => void
}

/** Everything that can be run, opened or chosen, in one list that is searched by a few letters. */
export class PalettePanel extends FramedPanel {
  readonly #options: PalettePanelOptions
  readonly #list = new ListWindow()
  readonly #field: TextField
  #entries: readonly PaletteEntry[]
  #shown: readonly PaletteEntry[] = []

  constructor(options: PalettePanelOptions) {
    super(options.theme)
    this.#options = options
    this.#field = new TextField({ theme: options.theme })
    this.#entries = options.entries
    this.#seek()
  }

  /** Replaces the entries of some kinds, and keeps the selection. */
  update(kind: PaletteKind, entries: readonly PaletteEntry[]): void {
    const selected = this.#shown[this.#list.selected]
    this.#entries = [...this.#entries.filter((entry) => entry.kind !== kind), ...entries]
    this.#seek()
    // Until the user moves, the best match is selected.
    if (this.#list.selected === 0) return
    this.#list.select(this.#shown.findIndex(({ kind: of, name }) => of === selected?.kind && name === selected.name))
  }

  handleInput(data: string): void {
    if (matchesKey(data, 'escape') || matchesKey(data, 'ctrl+k')) this.#options.onClose()
    else if (matchesKey(data, 'enter')) this.#shown[this.#list.selected]?.take()
    else if (!this.#list.handleInput(data) && this.#field.handleInput(data)) {
      this.#options.onSearch(this.#search().text)
      this.#seek()
      this.#list.select(0)
    }
  }

  protected content(): FrameContent {
    const signs = Object.entries(paletteKinds).map(([kind, sign]) => `${sign} ${kind}s`)
    return {
      title: 'Go to',
      hints: ['type to search', 'Enter take', signs.join(' '), 'Esc close'],
      body: (room) => this.#body(room),
    }
  }

  #body({ width, rows }: Room): string[] {
    const { from, to } = this.#list.range(Math.max(1, rows - 1))
    const list = this.#shown.slice(from, to).map(({ kind, name, detail = '' }, index) =>
      listRow(
        {
          isSelected: from + index === this.#list.selected,
          text: `${kind === 'command' ? '/' : ''}${harmlessLine(name)}`,
          detail: harmlessLine(detail),
          aside: kind,
        },
        this.theme,
        width,
      ),
    )
    const [field = ''] = this.#field.render({ width: width - 2, rows: 1, focused: this.focused })
    return [`› ${field}`, ...(list.length > 0 ? list : [this.theme.muted('  No matches.')])]
  }

  /** A sign at the beginning limits the search to one kind. */
  #search(): { kind?: PaletteKind; text: string } {
    const { text } = this.#field
    const kinds = Object.keys(paletteKinds) as PaletteKind[]
    const kind = kinds.find((each) => text.startsWith(paletteKinds[each]))
    return kind ? { kind, text: text.slice(1) } : { text }
  }

  #seek(): void {
    const { kind, text } = this.#search()
    const entries = kind ? this.#entries.filter((entry) => entry.kind === kind) : [...this.#entries]
    // Names decide; details only find what no name has.
    const named = fuzzyFilter(entries, text, ({ name }) => name)
    const known = new Set(named)
    const described =
      text.trim() === '' ? [] : fuzzyFilter(entries, text, ({ name, detail = '' }) => `${name} ${detail}`)
    this.#shown = [...named, ...described.filter((entry) => !known.has(entry) && isClose(entry, text))]
    this.#list.setCount(this.#shown.length)
  }
}

/** Scattered letters match any long sentence: a detail has to contain the words. */
function isClose({ detail = '' }: PaletteEntry, text: string): boolean {
  const said = detail.toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => said.includes(word))
}
