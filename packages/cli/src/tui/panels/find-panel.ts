import { matchesKey } from '@earendil-works/pi-tui'
import { harmlessLine } from '../../text/harmless.ts'
import { FramedPanel, type FrameContent } from './parts/panel-frame.ts'
import { TextField } from './parts/text-field.ts'
import type { Theme } from '../theme.ts'

export interface FindPanelOptions {
  theme: Theme
  /** Scrolls to the next match above. `wraps`: after the first one it continues at the end. Undefined if there is none. */
  onFind: (words: string, options: { wraps: boolean }) => Match | undefined
  /** Loads older messages. False if there are none. */
  loadOlder: () => Promise<boolean>
  onChange: () => void
  onClose: () => void
}

interface Match {
  /** Counted from the newest message. */
  number: number
  count: number
}

/** Searches the whole conversation, from the newest message backwards. Loads older messages if the newer ones have no match left. */
export class FindPanel extends FramedPanel {
  readonly #options: FindPanelOptions
  readonly #field: TextField
  #result = ''
  /** Counts searches: a newer one ends those before it. */
  #search = 0

  constructor(options: FindPanelOptions) {
    super(options.theme)
    this.#options = options
    this.#field = new TextField({ theme: options.theme })
  }

  /** Ends a search that is still loading. */
  close(): void {
    this.#search++
  }

  handleInput(data: string): void {
    if (matchesKey(data, 'escape')) this.#options.onClose()
    else if (matchesKey(data, 'enter') || matchesKey(data, 'ctrl+f')) void this.#find()
    else if (this.#field.handleInput(data)) {
      this.#search++
      this.#result = ''
    }
  }

  protected content(): FrameContent {
    return {
      title: 'Find in the conversation',
      hints: ['Enter next', 'Esc close'],
      body: ({ width }) => [
        ...this.#field.render({ width, rows: 1, focused: this.focused }),
        ...(this.#result === '' ? [] : [this.theme.warning(this.#result)]),
      ],
    }
  }

  async #find(): Promise<void> {
    const words = this.#field.text.trim()
    if (words === '') return
    const { onFind, loadOlder, onChange } = this.#options
    const search = ++this.#search
    let isWhole = false
    let match = onFind(words, { wraps: false })
    try {
      while (!match && !isWhole) {
        this.#result = 'Searching older messages …'
        isWhole = !(await loadOlder())
        if (search !== this.#search) return
        match = onFind(words, { wraps: isWhole })
      }
      this.#result = match ? `Match ${match.number} of ${match.count}` : 'No match.'
    } catch (error) {
      this.#result = harmlessLine(error instanceof Error ? error.message : String(error))
    }
    onChange()
  }
}
