import { emptyTranscript, type Transcript } from '@tapetree/session'
import type { Theme } from '../theme.ts'
import { ShownItems } from '../views/shown-items.ts'
import { TranscriptView } from '../views/transcript-view.ts'
import { hasNothingToShow, linesFrom, welcome, type Scrolling, type TranscriptPane } from './transcript-pane.ts'

export interface ScrollingPaneOptions {
  theme: Theme
  now: () => number
  /** Requests older messages than those loaded. */
  onOlder: () => void
  onChange: () => void
}

const linesAtExit = 1000

/** The conversation in a scrolling window, on the alternate screen. */
export class ScrollingPane implements TranscriptPane {
  readonly #options: ScrollingPaneOptions
  #transcript: Transcript = emptyTranscript()
  #view: TranscriptView
  #sessionId: string | undefined
  #rows = 1
  readonly scrolling: Scrolling

  constructor(options: ScrollingPaneOptions) {
    this.#options = options
    this.#view = new TranscriptView(options)
    this.scrolling = this.#scrolling()
  }

  update(sessionId: string, transcript: Transcript): void {
    if (sessionId !== this.#sessionId) {
      this.#sessionId = sessionId
      this.#view = new TranscriptView(this.#options)
    }
    this.#transcript = transcript
    this.#view.update(transcript)
  }

  render(width: number, rows: number): string[] {
    if (rows <= 0) return []
    this.#rows = rows
    if (hasNothingToShow(this.#transcript)) {
      const lines = welcome(this.#options.theme, width)
      return Array.from({ length: rows }, (_, row) => lines[row] ?? '')
    }
    this.#view.setRows(rows)
    return this.#view.render(width)
  }

  /** The last message of the user and everything after it. */
  lastLines(width: number): string[] {
    if (hasNothingToShow(this.#transcript)) return []
    const items = new ShownItems(this.#options)
    items.update(this.#transcript)
    const last = items.items.findLastIndex(({ type }) => type === 'user')
    return linesFrom(items, Math.max(0, last), width).slice(-linesAtExit)
  }

  toggleDetails(): void {
    this.#view.toggleDetails()
    this.#options.onChange()
  }

  invalidate(): void {
    this.#view.invalidate()
  }

  #scrolling(): Scrolling {
    const view = (): TranscriptView => this.#view
    const moved = (move: (view: TranscriptView) => unknown): void => {
      move(this.#view)
      this.#options.onChange()
    }
    const by = (lines: number): void => moved((each) => each.scrollBy(lines))
    return {
      get isAtNewest() {
        return view().isAtEnd
      },
      by,
      page: (direction) => by(direction * Math.max(1, this.#rows - 2)),
      to: (place) => moved((each) => each.scrollTo(place)),
      show: (entryId) => moved((each) => each.showItem(entryId)),
      find: (words) => this.#view.find(words) !== undefined,
    }
  }
}
