import { truncateToWidth } from '@earendil-works/pi-tui'
import type { Transcript } from '@tapetree/session'
import type { Theme } from '../theme.ts'
import type { ShownItems } from '../views/shown-items.ts'

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
