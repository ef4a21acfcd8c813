import { matchesKey } from '@earendil-works/pi-tui'
import type { DiffFile } from '@tapetree/session/screen'
import { counted } from '../../text/amounts.ts'
import { Highlighter } from '../markdown/highlight.ts'
import type { Theme } from '../theme.ts'
import { DiffView, layoutFor, type DiffLayout } from '../views/diff-view.ts'
import { FramedPanel, type FrameContent } from './parts/panel-frame.ts'
import { ScrollText } from './parts/scroll-text.ts'
import { typedText } from './parts/text-field.ts'
import { wordWrapped } from './parts/text-wrap.ts'

interface DiffPanelOptions {
  theme: Theme
  title: string
  /** Harmless and without tabs. */
  files: readonly DiffFile[]
  /** Lines above the diff, such as why it is incomplete. Harmless. */
  notes?: readonly string[]
  onChange: () => void
  onClose: () => void
}

/** A diff on the whole screen. */
export class DiffPanel extends FramedPanel {
  readonly isFullScreen = true
  readonly #options: DiffPanelOptions
  readonly #scroll = new ScrollText()
  readonly #view: DiffView
  #chosen: DiffLayout | undefined
  #width = 80

  constructor(options: DiffPanelOptions) {
    super(options.theme)
    this.#options = options
    const highlighter = new Highlighter(() => {
      this.#view.forget()
      options.onChange()
    })
    const { theme, onChange: onMore } = options
    this.#view = new DiffView(options.files, { theme, highlighter, onMore, isNamed: true })
  }

  handleInput(data: string): void {
    const key = typedText(data)
    if (matchesKey(data, 'escape') || matchesKey(data, 'enter') || key === 'q') this.#options.onClose()
    else if (matchesKey(data, 'up') || key === 'k') this.#scroll.scrollBy(-1)
    else if (matchesKey(data, 'down') || key === 'j') this.#scroll.scrollBy(1)
    else if (key === 's') this.#chosen = this.#layout === 'split' ? 'unified' : 'split'
    else if (key === 'n') this.#toFile((rows, top) => rows.find((row) => row > top))
    else if (key === 'p') this.#toFile((rows, top) => rows.findLast((row) => row < top))
    else this.#scroll.handleInput(data)
  }

  protected content(): FrameContent {
    const { files, title } = this.#options
    const { added, removed } = this.#view.counts
    return {
      title,
      aside: `${counted(files.length, 'file')} +${added} −${removed}`,
      hints: [
        '↑↓ PgUp PgDn scroll',
        ...(files.length > 1 ? ['n p next and previous file'] : []),
        this.#layout === 'split' ? 's unified' : 's side by side',
        'Esc close',
      ],
      body: ({ width, rows }) => {
        this.#width = width
        const notes = (this.#options.notes ?? []).flatMap((note) => wordWrapped(note, width))
        const layout = this.#layout
        const lines = {
          length: this.#view.rowCount(width, layout),
          slice: (from: number, to: number) => this.#view.render(width, { from, to, layout }),
        }
        const room = Math.max(1, rows - notes.length)
        const shown = this.#scroll.render(lines, { theme: this.theme, width, rows: room })
        const blank = Array.from({ length: Math.max(0, room - shown.length) }, () => '')
        return [...notes.map((line) => this.theme.warning(line)), ...shown, ...blank]
      },
    }
  }

  get #layout(): DiffLayout {
    return this.#chosen ?? layoutFor(this.#width)
  }

  #toFile(choose: (rows: number[], top: number) => number | undefined): void {
    const row = choose(this.#view.fileRows(this.#width, this.#layout), this.#scroll.top)
    if (row !== undefined) this.#scroll.scrollTo(row)
  }
}
