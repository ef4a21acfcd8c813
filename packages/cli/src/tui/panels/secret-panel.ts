import { CURSOR_MARKER, matchesKey } from '@earendil-works/pi-tui'
import type { Theme } from '../theme.ts'
import { FramedPanel, type FrameContent } from './parts/panel-frame.ts'
import { TextField } from './parts/text-field.ts'
import { wordWrapped } from './parts/text-wrap.ts'

export interface SecretPanelOptions {
  theme: Theme
  title: string
  /** Sentences above the field. */
  intro: readonly string[]
  onSubmit: (secret: string) => void
  onClose: () => void
}

/** A text that is typed or pasted and never shown: a dot stands for each character. */
export class SecretPanel extends FramedPanel {
  readonly #options: SecretPanelOptions
  readonly #field: TextField

  constructor(options: SecretPanelOptions) {
    super(options.theme)
    this.#options = options
    this.#field = new TextField({ theme: options.theme })
  }

  handleInput(data: string): void {
    const secret = this.#field.text.trim()
    if (matchesKey(data, 'escape')) this.#options.onClose()
    else if (!matchesKey(data, 'enter')) this.#field.handleInput(data)
    else if (secret !== '') this.#options.onSubmit(secret)
  }

  protected content(): FrameContent {
    const { title, intro } = this.#options
    return {
      title,
      hints: ['paste or type; it is not shown', 'Enter check and store', 'Esc close'],
      body: ({ width }) => [
        ...intro.flatMap((line) => wordWrapped(line, width)),
        `${'•'.repeat(Math.min(this.#field.text.length, width - 1))}${this.focused ? CURSOR_MARKER : ''}${this.theme.accent('▏')}`,
      ],
    }
  }
}
