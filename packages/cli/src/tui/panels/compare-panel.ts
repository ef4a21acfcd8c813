import { matchesKey } from '@earendil-works/pi-tui'
import { parseDiff, type Comparison, type DiffFile, type FileDiff } from '@tapetree/session/screen'
import { comparisonLines } from '../../text/comparison-lines.ts'
import { Highlighter } from '../markdown/highlight.ts'
import { shownDiff, shownWords } from '../markdown/shown-text.ts'
import type { Theme } from '../theme.ts'
import { DiffView } from '../views/diff-view.ts'
import { FramedPanel, type FrameContent } from './parts/panel-frame.ts'
import { joinLines, ScrollText, type ScrolledLines } from './parts/scroll-text.ts'
import { typedText } from './parts/text-field.ts'

interface ComparePanelOptions {
  theme: Theme
  comparison: Comparison
  onChange?: () => void
  onClose: () => void
}

/** Two entries of a session, with their files. */
export class ComparePanel extends FramedPanel {
  readonly #options: ComparePanelOptions
  readonly #scroll = new ScrollText()
  readonly #changes: DiffView
  #showsDiff = false

  constructor(options: ComparePanelOptions) {
    super(options.theme)
    this.#options = options
    const highlighter = new Highlighter(() => {
      this.#changes.forget()
      options.onChange?.()
    })
    const { files } = options.comparison
    this.#changes = new DiffView(comparedFiles(files?.changes ?? []), {
      theme: options.theme,
      highlighter,
      isNamed: true,
    })
  }

  /** With the changed lines, it takes the whole screen. */
  get isFullScreen(): boolean {
    return this.#showsDiff
  }

  handleInput(data: string): void {
    if (matchesKey(data, 'escape') || matchesKey(data, 'enter')) this.#options.onClose()
    else if (matchesKey(data, 'up')) this.#scroll.scrollBy(-1)
    else if (matchesKey(data, 'down')) this.#scroll.scrollBy(1)
    else if (typedText(data) === 'd') this.#showsDiff = !this.#showsDiff
    else this.#scroll.handleInput(data)
  }

  protected content(): FrameContent {
    return {
      title: 'Compare: the selected entry (left) with the current one (right)',
      hints: [
        '↑↓ PgUp PgDn scroll',
        this.#showsDiff ? 'd hide the changed lines' : 'd show the changed lines',
        'Esc close',
      ],
      body: ({ width, rows }) => this.#scroll.render(this.#lines(width), { theme: this.theme, width, rows }),
    }
  }

  #lines(width: number): ScrolledLines {
    const lines = comparisonLines(this.#options.comparison, { width, heading: this.theme.heading })
    if (!this.#showsDiff) return lines
    const changes = this.#changes
    const diff = {
      length: changes.rowCount(width),
      slice: (from: number, to: number) => changes.render(width, { from, to }),
    }
    return joinLines([...lines, ''], diff)
  }
}

/** The diffs of compared files, ready to be drawn. */
export function comparedFiles(changes: readonly FileDiff[]): DiffFile[] {
  return changes.flatMap(({ path, patch = '', isBinary, isCut }) => {
    const name = shownWords(path)
    const cut = isCut ? ['… the rest is too long'] : []
    const files = isBinary || patch === '' ? [] : parseDiff(shownDiff(patch))
    const [file = { oldName: name, newName: name, hunks: [], notes: [] }] = files
    return [
      {
        ...file,
        newName: name,
        notes: [...(isBinary ? ['not text'] : []), ...file.notes.filter((note) => !modeNote.test(note)), ...cut],
      },
    ]
  })
}

/** The counts say it. */
const modeNote = /^(?:new|deleted) file mode \d+$/
