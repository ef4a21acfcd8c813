import { counted } from '../../text/amounts.ts'
import { fitText } from '../../text/display-width.ts'
import { shownWords } from '../markdown/shown-text.ts'
import type { Theme } from '../theme.ts'

export interface WaitingLine {
  message: string
  delivery: 'steer' | 'follow-up'
  held: boolean
}

const shownMessages = 3

/** Messages that are not delivered yet, above the composer: what they say, and when they are delivered. */
export function waitingLines(
  messages: readonly WaitingLine[],
  { theme, width, isHeld }: { theme: Theme; width: number; isHeld: boolean },
): string[] {
  const lines = messages.slice(0, shownMessages).map(({ message, delivery, held }) => {
    const when = isHeld || held ? 'held' : delivery === 'steer' ? 'steers at the next step' : 'after this run'
    const text = fitText(shownWords(message), Math.max(8, width - when.length - 7))
    return ` ${theme.accent('»')} ${text} ${theme.muted(`· ${when}`)}`
  })
  const more = messages.length - shownMessages
  if (more > 0) lines.push(theme.muted(fitText(`   … ${counted(more, 'more message')} · Ctrl-Q shows all`, width)))
  return lines
}
