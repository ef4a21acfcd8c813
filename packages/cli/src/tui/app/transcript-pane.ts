import type { Transcript } from '@tapetree/session'

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
