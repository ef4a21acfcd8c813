import { matchesKey } from '@earendil-works/pi-tui'
import { displayWidth, padded } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'
import type { Theme } from '../theme.ts'
import { FramedPanel, type FrameContent } from './parts/panel-frame.ts'
import { ScrollText } from './parts/scroll-text.ts'
import { wordWrapped } from './parts/text-wrap.ts'

interface HelpSection {
  title: string
  /** Keys or a command, and what they do. */
  rows: readonly { name: string; says: string }[]
}

interface HelpPanelOptions {
  theme: Theme
  sections: readonly HelpSection[]
  onClose: () => void
}

const closingKeys = ['escape', 'enter', 'q'] as const

/** Keys and commands. */
export class HelpPanel extends FramedPanel {
  readonly #options: HelpPanelOptions
  readonly #scroll = new ScrollText()

  constructor(options: HelpPanelOptions) {
    super(options.theme)
    this.#options = options
  }

  handleInput(data: string): void {
    if (closingKeys.some((key) => matchesKey(data, key))) this.#options.onClose()
    else if (matchesKey(data, 'up')) this.#scroll.scrollBy(-1)
    else if (matchesKey(data, 'down')) this.#scroll.scrollBy(1)
    else this.#scroll.handleInput(data)
  }

  protected content(): FrameContent {
    return {
      title: 'Help',
      hints: ['↑↓ PgUp PgDn scroll', 'Esc close'],
      body: ({ width, rows }) => this.#scroll.render(this.#lines(width), { theme: this.theme, width, rows }),
    }
  }

  #lines(width: number): string[] {
    const { sections } = this.#options
    const names = sections.flatMap(({ rows }) => rows.map(({ name }) => displayWidth(harmlessLine(name))))
    const nameWidth = Math.min(Math.max(0, ...names), Math.floor(width / 2) - 2)
    return sections.flatMap(({ title, rows }, index) => [
      ...(index > 0 ? [''] : []),
      this.theme.heading(title),
      ...rows.flatMap(({ name, says }) => rowLines(harmlessLine(name), harmlessLine(says), { nameWidth, width })),
    ])
  }
}

function rowLines(name: string, says: string, { nameWidth, width }: { nameWidth: number; width: number }): string[] {
  const lines = wordWrapped(says, width - nameWidth - 4)
  const indent = ' '.repeat(nameWidth + 4)
  if (displayWidth(name) > nameWidth) return [`  ${name}`, ...lines.map((line) => indent + line)]
  return lines.map((line, index) => (index === 0 ? `  ${padded(name, nameWidth)}  ${line}` : indent + line))
}
