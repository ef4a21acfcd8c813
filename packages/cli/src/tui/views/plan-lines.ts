import type { Transcript } from '@tapetree/session/view'
import { counted } from '../../text/amounts.ts'
import { fitText } from '../../text/display-width.ts'
import { shownWords } from '../markdown/shown-text.ts'
import type { Theme } from '../theme.ts'

const shownItems = 4

/** The task list of the agent, pinned above the composer: how much is done, and what is next. Empty if nothing is open. */
export function planLines(plan: Transcript['plan'], { theme, width }: { theme: Theme; width: number }): string[] {
  const open = plan.filter(({ status }) => status !== 'completed')
  if (open.length === 0) return []
  const line = (text: string): string => fitText(text, Math.max(1, width - 1))
  const head = theme.muted(line(`Tasks: ${plan.length - open.length} of ${plan.length} done`))
  const rows = open.slice(0, shownItems).map(({ text, status }) => {
    const isNow = status === 'in_progress'
    const words = line(`${isNow ? '▸' : '○'} ${shownWords(text)}`)
    return isNow ? theme.strong(words) : theme.muted(words)
  })
  const more =
    open.length > shownItems ? [theme.muted(line(`… ${counted(open.length - shownItems, 'more task')}`))] : []
  return [head, ...rows, ...more].map((row) => ` ${row}`)
}
