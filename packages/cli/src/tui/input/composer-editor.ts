import { Editor, truncateToWidth, visibleWidth, type TUI } from '@earendil-works/pi-tui'
import type { Theme } from '../theme.ts'

const start = '\u001b[7m'
const end = '\u001b[0m'

/** The editor of the library with a few words in its upper border, and the terminal's own cursor instead of a drawn one. */
export class ComposerEditor extends Editor {
  /** Harmless and without colour. */
  label = ''

  constructor(tui: TUI, theme: Theme) {
    super(
      tui,
      {
        borderColor: (text) => theme.border(text),
        selectList: {
          selectedPrefix: (text) => theme.accent(text),
          selectedText: (text) => theme.selected(text),
          description: (text) => theme.muted(text),
          scrollInfo: (text) => theme.muted(text),
          noMatch: (text) => theme.muted(text),
        },
      },
      { paddingX: 1, autocompleteMaxVisible: 8 },
    )
    this.focused = true
  }

  /** Its place in the whole text, in code units. */
  get offset(): number {
    const { line, col } = this.getCursor()
    return this.getLines()
      .slice(0, line)
      .reduce((sum, each) => sum + each.length + 1, col)
  }

  /** Walks there as a hand would: the editor has no other way. */
  moveTo(offset: number): void {
    for (let at = this.offset; at !== offset;) {
      const isBefore = at < offset
      this.handleInput(isBefore ? '\u001b[C' : '\u001b[D')
      const now = this.offset
      // It stands still at an end, and steps over a sign of several units at once.
      if (now === at || now < offset !== isBefore) return
      at = now
    }
  }

  override render(width: number): string[] {
    return super.render(width).map((line) => {
      const from = line.indexOf(start)
      if (from === -1) return line
      return line.slice(0, from) + line.slice(from + start.length).replace(end, '')
    })
  }

  protected override renderTopBorder(width: number, hiddenLineCount: number): string {
    if (this.label === '' || hiddenLineCount > 0) return super.renderTopBorder(width, hiddenLineCount)
    const label = truncateToWidth(` ${this.label} `, Math.max(0, width - 4), '… ')
    return this.borderColor(`──${label}${'─'.repeat(Math.max(0, width - 2 - visibleWidth(label)))}`)
  }
}
