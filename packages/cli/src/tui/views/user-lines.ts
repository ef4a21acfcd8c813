import type { UserItem } from '@tapetree/session'
import { contentText } from '../../text/content-text.ts'
import { counted } from '../../text/counted.ts'
import { displayWidth } from '../../text/display-width.ts'
import { paint, textOf, type StyledLine } from '../markdown/styled-line.ts'
import { wrapLine } from '../markdown/wrap-line.ts'
import { foldLines, mostLines } from './folded-lines.ts'
import type { ItemContext } from './item-context.ts'

/** What the user said, on a ground of its own. It is shown as it was typed, not as Markdown. */
export function userLines({ content }: Pick<UserItem, 'content'>, context: ItemContext, width: number): string[] {
  const { theme, isUnfolded = false } = context
  const { lines, hidden } = foldLines(contentText(content), {
    limit: isUnfolded ? mostLines : foldedLines,
    from: 'start',
  })
  const wrapped = lines.flatMap((text) => wrapLine([{ text }], width - 3))
  const rows: StyledLine[] = isUnfolded ? wrapped : wrapped.slice(0, foldedRows)
  const cut = hidden > 0 ? counted(hidden, 'more line') : 'more'
  if (hidden > 0 || rows.length < wrapped.length) rows.push([{ text: `… ${cut} below`, style: theme.muted }])
  return rows.map((row, index) => {
    const free = Math.max(0, width - 2 - displayWidth(textOf(row)))
    const sign = theme.userMessage(index === 0 ? theme.accent('>') : ' ')
    return sign + theme.userMessage(` ${paint(row)}${' '.repeat(free)}`)
  })
}

/** A file that was pasted whole would push everything else away. */
const foldedLines = 30
const foldedRows = 40
