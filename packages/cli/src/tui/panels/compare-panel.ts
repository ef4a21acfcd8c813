import { matchesKey } from '@earendil-works/pi-tui'
import type { Comparison } from '@tapetree/session/screen'
import { comparisonLines } from '../../text/comparison-lines.ts'
import { fitText } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { FramedPanel, type FrameContent } from './parts/panel-frame.ts'
import { ScrollText } from './parts/scroll-text.ts'
import { typedText } from './parts/text-field.ts'

interface ComparePanelOptions {
  theme: Theme
  comparison: Comparison
  onClose: () => void
}

/** Two entries of a session, with their files. */
export class ComparePanel extends FramedPanel {
  readonly #options: ComparePanelOptions
  readonly #scroll = new ScrollText()
  #showsDiff = false

  constructor(options: ComparePanelOptions) {
    super(options.theme)
    this.#options = options
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

  #lines(width: number): string[] {
    const { comparison } = this.#options
    const lines = comparisonLines(comparison, { width, heading: this.theme.heading })
    if (!this.#showsDiff) return lines
    const patches = (comparison.files?.changes ?? []).flatMap(({ patch = '', isCut }) => [
      '',
      ...patch.trimEnd().split('\n'),
      ...(isCut ? ['… the rest is too long'] : []),
    ])
    return [...lines, ...patches.map((line) => this.#diffLine(line, width))]
  }

  #diffLine(line: string, width: number): string {
    const shown = fitText(harmlessLine(line), width)
    if (/^(?:diff|index|---|\+\+\+|@@)/.test(line)) return this.theme.diffPlace(shown)
    if (line.startsWith('+')) return this.theme.diffAdded(shown)
    return line.startsWith('-') ? this.theme.diffRemoved(shown) : shown
  }
}
