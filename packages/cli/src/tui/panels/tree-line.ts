import { describeEntry } from '../../text/describe-entry.ts'
import { fitText } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'
import type { Style, Theme } from '../theme.ts'
import { listRow } from './parts/list-row.ts'
import type { TreeRow } from './tree-index.ts'

/** One row as it is drawn: `● ` is on the current path, `◆ ` where the session stands, `○ ` elsewhere, `⤷ ` a subagent. */
export function treeLine(
  row: TreeRow,
  { isSelected, hidden, theme, width }: { isSelected: boolean; hidden: number; theme: Theme; width: number },
): string {
  const lines = branchLines(row, { isFolded: hidden > 0, most: Math.floor(width / 6) })
  if (row.type === 'subagent') {
    const text = `${lines}⤷ ${harmlessLine(row.description)}`
    return listRow({ isSelected, text, style: theme.muted, aside: row.state }, theme, width)
  }
  const { kind, words } = describeEntry(row.entry)
  const mark = row.isLeaf ? '◆' : row.isOnPath ? '●' : '○'
  const text = `${lines}${mark} ${kind}: ${harmlessLine(words.slice(0, width * 4))}`
  const label = row.label === undefined ? '' : `[${fitText(harmlessLine(row.label), Math.floor(width / 3))}]`
  const more = hidden === 0 ? '' : `+${hidden}`
  const aside = [more, label].filter(Boolean).join(' ')
  const style = styleOf(row, theme)
  return listRow({ isSelected, text, ...(style && { style }), aside }, theme, width)
}

/** Two columns a branch. Of very deep ones the outer lines are left out, with a sign. */
function branchLines(row: TreeRow, { isFolded, most }: { isFolded: boolean; most: number }): string {
  if (row.depth === 0) return ''
  const depth = Math.min(row.depth, Math.max(1, most))
  const outer = (depth < row.depth ? '…' : '│').padEnd(2)
  const isStart = row.type === 'entry' && row.isBranchStart
  const own = isStart ? (isFolded ? '├▸' : '├─') : row.type === 'subagent' ? '  ' : '│ '
  return (depth > 1 ? outer + '│ '.repeat(depth - 2) : '') + own
}

function styleOf(row: Extract<TreeRow, { type: 'entry' }>, theme: Theme): Style | undefined {
  const { entry, isOnPath } = row
  if (entry.type === 'gap') return theme.warning
  if (entry.type === 'message' && entry.message.role === 'user') return isOnPath ? theme.accent : undefined
  return isOnPath && entry.type === 'message' && entry.message.role === 'assistant' ? undefined : theme.muted
}
