import { emptyTranscript, type Transcript } from '@tapetree/session/view'
import { ShownItems } from '../views/shown-items.ts'
import { SessionWorkFeed } from '../views/session-work.ts'
import type { SessionWork } from '../views/sidebar.ts'
import { TranscriptView } from '../views/transcript-view.ts'
import { hasNothingToShow, welcome, type PaneOptions, type Scrolling, type TranscriptPane } from './transcript-pane.ts'

/** All lines from an item on. */
function linesFrom(items: ShownItems, from: number, width: number): string[] {
  const lines: string[] = []
  for (let index = from; index < items.count; index++) {
    for (const line of items.linesAt(index, width)) lines.push(line)
  }
  return lines
}

const linesAtExit = 1000

/** The conversation in a scrolling window, on the alternate screen. */
export class ScrollingPane implements TranscriptPane {
  readonly #options: PaneOptions
  #transcript: Transcript = emptyTranscript()
  #view: TranscriptView
  #sessionId: string | undefined
  #rows = 1
  readonly #work: SessionWorkFeed
  readonly scrolling: Scrolling

  constructor(options: PaneOptions) {
    this.#options = options
    this.#view = new TranscriptView(options)
    this.#work = new SessionWorkFeed(options)
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

  work(): SessionWork {
    return this.#work.of(this.#transcript)
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
      get hasOlder() {
        return view().hasOlder
      },
      find: (words, options) => this.#view.find(words, options),
      endFind: () => moved((each) => each.endFind()),
      get text() {
        return view()
      },
    }
  }
}

/** How many items of a long conversation go to the scrollback of the terminal. */
const itemsAtStart = 200

/** The conversation in the scrollback of the terminal: renders all of it each time, and the terminal scrolls. */
export class ScrollbackPane implements TranscriptPane {
  readonly scrolling = undefined
  readonly #options: PaneOptions
  #transcript: Transcript = emptyTranscript()
  #items: ShownItems
  #sessionId: string | undefined
  #from = 0

  constructor(options: PaneOptions) {
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

  /** Without a screen of its own there is no place to show it. */
  work(): SessionWork {
    return { files: [], jobs: [] }
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
