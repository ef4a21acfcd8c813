import type { Transcript } from '@tapetree/session'
import { truncateToWidth } from '@earendil-works/pi-tui'
import type { Theme } from '../theme.ts'
import type { ShownItems } from '../views/shown-items.ts'

/** Where the conversation is shown. */
export interface TranscriptPane {
  /** Undefined where the terminal scrolls. */
  readonly scrolling: Scrolling | undefined
  update(sessionId: string, transcript: Transcript): void
  /** What scrolls by itself gives as many lines as there are rows; the other gives all. */
  render(width: number, rows: number): string[]
  /** What stays when the screen goes. */
  lastLines(width: number): string[]
  toggleDetails(): void
  /** Everything is drawn anew, such as in other colours. What was in sight stays there. */
  invalidate(): void
}

export interface Scrolling {
  readonly isAtNewest: boolean
  by(lines: number): void
  page(direction: 1 | -1): void
  to(place: 'start' | 'end'): void
  /** Brings an entry into sight. */
  show(entryId: string): void
  /** Brings the next place above with these words into sight; false where there is none. */
  find(words: string): boolean
}

/** All lines from an item on. */
export function linesFrom(items: ShownItems, from: number, width: number): string[] {
  const lines: string[] = []
  for (let index = from; index < items.count; index++) {
    for (const line of items.linesAt(index, width)) lines.push(line)
  }
  return lines
}

export function hasNothingToShow({ path, inFlight, lastError, damage }: Transcript): boolean {
  return path.items.length === 0 && inFlight.size === 0 && lastError === null && damage.lostLines === 0
}

/** Instead of a conversation that has not begun. */
export function welcome(theme: Theme, width: number): string[] {
  return [
    '',
    theme.heading(' tapetree'),
    ` ${theme.muted('Say what is to be done. /help lists keys and commands.')}`,
    '',
  ].map((line) => truncateToWidth(line, width))
}
