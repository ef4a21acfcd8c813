import type { Entry, Session, ToolUse } from '@tapetree/session'
import type { Position } from './loop-context.ts'

export interface PathPosition extends Position {
  /** The entry of the answer whose calls are open, or the last thing said. */
  entry: Extract<Entry, { type: 'message' }> | undefined
  /** The last word is an answer that the user stopped. Its calls, whole or not, are not to be run. */
  isStopped: boolean
}

/** Where the path to the leaf stands: which calls of the last answer have no result yet, and whose turn it is. */
export async function positionOf(session: Session): Promise<PathPosition> {
  const path = await session.getContextPath()
  const answered = new Set<string>()
  let hasSpoken = false
  let newest: PathPosition['entry']
  for (const entry of path.toReversed()) {
    if (entry.type !== 'message') continue
    newest ??= entry
    const { role, content } = entry.message
    for (const block of content) if (block.type === 'tool_result') answered.add(block.toolResult.toolUseId)
    if (role === 'tool') continue
    if (role !== 'assistant') {
      hasSpoken = true
      continue
    }
    const openCalls = content.flatMap((block): ToolUse[] =>
      block.type === 'tool_use' && !answered.has(block.toolUse.id) ? [block.toolUse] : [],
    )
    const isStopped = !hasSpoken && entry.message.stopReason === 'aborted'
    if (openCalls.length > 0) return { openCalls, isSettled: false, entry, isStopped }
    const isLastWord = !hasSpoken && answered.size === 0
    return { openCalls, isSettled: isLastWord, entry: newest, isStopped }
  }
  return { openCalls: [], isSettled: newest === undefined, entry: newest, isStopped: false }
}
