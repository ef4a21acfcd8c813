import type { Message } from '@tapetree/session'

/** Providers refuse a call without its result, and a result without its call. A sentence on the first such thing, if there is one. */
export function unpaired(messages: readonly Message[]): string | undefined {
  const open = new Set<string>()
  for (const { role, content } of messages) {
    const results = content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult.toolUseId] : []))
    const orphan = results.find((id) => !open.has(id))
    if (orphan !== undefined) return `The result of call ${orphan} does not follow its call.`
    for (const id of results) open.delete(id)
    const [unanswered] = open
    // Results come right behind their calls, before anybody says anything else.
    if (unanswered !== undefined && results.length === 0) return `Call ${unanswered} has no result.`
    if (role !== 'assistant') continue
    for (const block of content) if (block.type === 'tool_use') open.add(block.toolUse.id)
  }
  const [unanswered] = open
  return unanswered === undefined ? undefined : `Call ${unanswered} has no result.`
}
