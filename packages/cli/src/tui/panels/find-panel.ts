import { matchesKey } from '@earendil-works/pi-tui'
import { FramedPanel, type FrameContent } from './parts/panel-frame.ts'
import { TextField } from './parts/text-field.ts'
import type { Theme } from '../theme.ts'

export interface FindPanelOptions {
  theme: Theme
  /** Scrolls to the next match; false if there is none. */
  onFind: (words: string) => boolean
  onClose: () => void
}

/** Searches the conversation, from the newest message backwards. */
export class FindPanel extends FramedPanel {
  readonly #options: FindPanelOptions
  readonly #field: TextField
  #problem = ''

  constructor(options: FindPanelOptions) {
    super(options.theme)
    this.#options = options
    this.#field = new TextField({ theme: options.theme })
  }

  handleInput(data: string): void {
    if (matchesKey(data, 'escape')) this.#options.onClose()
    else if (matchesKey(data, 'enter') || matchesKey(data, 'ctrl+f')) this.#find()
    else if (this.#field.handleInput(data)) this.#problem = ''
  }

  protected content(): FrameContent {
    return {
      title: 'Find in the conversation',
      hints: ['Enter next', 'Esc close'],
      body: ({ width }) => [
        ...this.#field.render({ width, rows: 1, focused: this.focused }),
        ...(this.#problem === '' ? [] : [this.theme.warning(this.#problem)]),
      ],
    }
  }

  #find(): void {
    const words = this.#field.text.trim()
    if (words !== '') this.#problem = this.#options.onFind(words) ? '' : 'No match in the loaded messages.'
  }
}
