import type { Transcript } from '@tapetree/session/view'
import { truncateToWidth } from '@earendil-works/pi-tui'
import type { Theme } from '../theme.ts'
import type { ShownItemsOptions } from '../views/shown-items.ts'
import type { SessionWork } from '../views/sidebar.ts'
import type { Found, TranscriptView } from '../views/transcript-view.ts'

/** Where the conversation is shown. */
export interface TranscriptPane {
  /** Undefined if the terminal scrolls. */
  readonly scrolling: Scrolling | undefined
  update(sessionId: string, transcript: Transcript): void
  /** A scrolling pane returns as many lines as there are rows; the other returns all. */
  render(width: number, rows: number): string[]
  /** What the session has changed and started, as far as it is loaded. */
  work(): SessionWork
  /** What stays after the screen closes. */
  lastLines(width: number): string[]
  toggleDetails(): void
  /** Redraws everything, for example with other colors. Keeps the scroll position. */
  invalidate(): void
}

export interface Scrolling {
  readonly isAtNewest: boolean
  by(lines: number): void
  page(direction: 1 | -1): void
  to(place: 'start' | 'end'): void
  /** Scrolls to an entry. */
  show(entryId: string): void
  /** Whether older messages are not loaded. */
  readonly hasOlder: boolean
  /** Scrolls up to the next match and marks all in view. `wraps`: after the first one it continues at the end. */
  find(words: string, options: { wraps: boolean }): Found | undefined
  endFind(): void
  /** What the mouse selects. Undefined until there is a conversation. */
  readonly text: SelectableText | undefined
}

type SelectableText = Pick<TranscriptView, 'rowAt' | 'taskAt' | 'select' | 'deselect' | 'selectedText'>

export function hasNothingToShow({ path, inFlight, lastError, damage }: Transcript): boolean {
  return path.items.length === 0 && inFlight.size === 0 && lastError === null && damage.lostLines === 0
}

/** Shown before the conversation has started. */
export function welcome(theme: Theme, width: number): string[] {
  return ['', theme.heading(' tapetree'), ` ${theme.muted('Type what to do. /help lists keys and commands.')}`, ''].map(
    (line) => truncateToWidth(line, width),
  )
}

export interface PaneOptions {
  theme: Theme
  now: () => number
  taskNews?: ShownItemsOptions['taskNews']
  jobNews?: ShownItemsOptions['jobNews']
  /** Requests older messages than those loaded. */
  onOlder: () => void
  onChange: () => void
}
