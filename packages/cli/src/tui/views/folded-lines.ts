import { shownLine } from '../markdown/shown-text.ts'

export interface FoldedLines {
  /** As shown. */
  lines: string[]
  hidden: number
}

/** The first or the last lines of a text. Only counts the rest, so that megabytes cost no more than the visible lines. */
export function foldLines(text: string, { limit, from }: { limit: number; from: 'start' | 'end' }): FoldedLines {
  const whole = withoutEnd(text, '\n')
  if (whole === '') return { lines: [], hidden: 0 }
  const kept = from === 'start' ? firstLines(whole, limit) : lastLines(whole, limit)
  const lines = kept.split('\n')
  return { lines: lines.map(lastOverwritten).map(shownLine), hidden: countLines(whole) - lines.length }
}

/** The limit for one text even when unfolded: an export has the rest. */
export const mostLines = 2000

function firstLines(text: string, limit: number): string {
  let end = -1
  for (let line = 0; line < limit; line++) {
    end = text.indexOf('\n', end + 1)
    if (end < 0) return text
  }
  return text.slice(0, end)
}

function lastLines(text: string, limit: number): string {
  let start = text.length
  for (let line = 0; line < limit; line++) {
    start = start > 0 ? text.lastIndexOf('\n', start - 1) : -1
    if (start < 0) return text
  }
  return text.slice(start + 1)
}

/** As many as `foldLines` shows and hides together. */
export function lineCount(text: string): number {
  const whole = withoutEnd(text, '\n')
  return whole === '' ? 0 : countLines(whole)
}

function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

/** A line that was overwritten, as by a progress bar, shows its last content. */
function lastOverwritten(line: string): string {
  const whole = withoutEnd(line, '\r')
  return whole.slice(whole.lastIndexOf('\r') + 1)
}

/** A regular expression would scan every run of them. */
function withoutEnd(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}
