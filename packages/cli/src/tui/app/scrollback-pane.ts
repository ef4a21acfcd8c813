import { emptyTranscript, type Transcript } from '@tapetree/session'
import type { Theme } from '../theme.ts'
import { ShownItems } from '../views/shown-items.ts'
import { hasNothingToShow, linesFrom, welcome, type TranscriptPane } from './transcript-pane.ts'

export interface ScrollbackPaneOptions {
  theme: Theme
  now: () => number
  onChange: () => void
}

/** How many items of a long conversation go to the scrollback of the terminal. */
const itemsAtStart = 200

/** The conversation in the scrollback of the terminal: renders all of it each time, and the terminal scrolls. */
export class ScrollbackPane implements TranscriptPane {
  readonly scrolling = undefined
  readonly #options: ScrollbackPaneOptions
  #transcript: Transcript = emptyTranscript()
  #items: ShownItems
  #sessionId: string | undefined
  #from = 0

  constructor(options: ScrollbackPaneOptions) {
    this.#options = options
    this.#items = this.#newItems()
  }

  update(sessionId: string, transcript: Transcript): void {
    if (sessionId !== this.#sessionId) {
      this.#sessionId = sessionId
      this.#from = Math.max(0, transcript.path.items.length - itemsAtStart)
      this.#items = this.#newItems()
    }
    this.#transcript = transcript
    this.#items.update(transcript)
  }

  render(width: number): string[] {
    if (hasNothingToShow(this.#transcript)) return welcome(this.#options.theme, width)
    return linesFrom(this.#items, this.#from, width)
  }

  lastLines(width: number): string[] {
    return hasNothingToShow(this.#transcript) ? [] : this.render(width)
  }

  toggleDetails(): void {
    this.#items.toggle()
    this.#options.onChange()
  }

  invalidate(): void {
    this.#items.forget()
  }

  #newItems(): ShownItems {
    return new ShownItems({ ...this.#options, keepsAll: true })
  }
}
