import type { Transcript } from '@tapetree/session/view'
import type { SessionWork } from '../views/sidebar.ts'
import { hasNothingToShow, welcome, type PaneOptions, type Scrolling, type TranscriptPane } from './transcript-pane.ts'

interface LatePaneOptions extends PaneOptions {
  /** Whether our screen scrolls instead of the terminal. */
  isScrolling: boolean
  onProblem: (error: unknown) => void
}

/**
 * A pane that is loaded with the first message: Markdown, diffs and everything else that shows a conversation take longer to load than the
 * rest of the screen.
 */
export class LatePane implements TranscriptPane {
  readonly scrolling: Scrolling | undefined
  readonly #options: LatePaneOptions
  #pane: TranscriptPane | undefined
  #loading: Promise<void> | undefined
  #shown: { sessionId: string; transcript: Transcript } | undefined

  constructor(options: LatePaneOptions) {
    this.#options = options
    this.scrolling = options.isScrolling ? this.#scrolling() : undefined
  }

  update(sessionId: string, transcript: Transcript): void {
    this.#shown = { sessionId, transcript }
    if (this.#pane) this.#pane.update(sessionId, transcript)
    else if (!hasNothingToShow(transcript)) this.#loading ??= this.#load().catch(this.#options.onProblem)
  }

  render(width: number, rows: number): string[] {
    if (this.#pane) return this.#pane.render(width, rows)
    const lines = this.#loading ? [] : welcome(this.#options.theme, width)
    return this.scrolling ? Array.from({ length: Math.max(0, rows) }, (_, row) => lines[row] ?? '') : lines
  }

  work(): SessionWork {
    return this.#pane?.work() ?? { files: [], jobs: [] }
  }

  lastLines(width: number): string[] {
    return this.#pane?.lastLines(width) ?? []
  }

  toggleDetails(): void {
    this.#pane?.toggleDetails()
  }

  invalidate(): void {
    this.#pane?.invalidate()
  }

  async #load(): Promise<void> {
    const { ScrollingPane, ScrollbackPane } = await import('./conversation-panes.ts')
    const { isScrolling, onChange } = this.#options
    this.#pane = isScrolling ? new ScrollingPane(this.#options) : new ScrollbackPane(this.#options)
    if (this.#shown) this.#pane.update(this.#shown.sessionId, this.#shown.transcript)
    onChange()
  }

  #scrolling(): Scrolling {
    const loaded = (): Scrolling | undefined => this.#pane?.scrolling
    return {
      get isAtNewest() {
        return loaded()?.isAtNewest ?? true
      },
      by: (lines) => loaded()?.by(lines),
      page: (direction) => loaded()?.page(direction),
      to: (place) => loaded()?.to(place),
      show: (entryId) => loaded()?.show(entryId),
      get hasOlder() {
        return loaded()?.hasOlder ?? false
      },
      find: (words, options) => loaded()?.find(words, options),
      endFind: () => loaded()?.endFind(),
      get text() {
        return loaded()?.text
      },
    }
  }
}
