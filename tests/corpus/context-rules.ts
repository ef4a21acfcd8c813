import type { Context, Message } from '@tapetree/session'

/** What a provider would refuse in a context: a call without exactly one result directly behind it, or a result without its call. */
export function brokenPairs({ messages }: Context): string[] {
  const problems: string[] = []
  let expected: string[] = []
  for (const { message, entryId } of messages) {
    const results = resultIds(message)
    if (message.role === 'tool') {
      for (const id of results) {
        if (expected.shift() !== id) problems.push(`result ${id} in ${entryId} does not answer the call before it`)
      }
      if (results.length === 0) problems.push(`tool message ${entryId} has no result`)
      continue
    }
    if (expected.length > 0) problems.push(`calls ${expected.join(', ')} have no result before ${entryId}`)
    if (results.length > 0) problems.push(`${message.role} message ${entryId} has a result`)
    expected = callIds(message)
  }
  if (expected.length > 0) problems.push(`calls ${expected.join(', ')} have no result at the end`)
  return problems
}

function callIds({ role, content }: Message): string[] {
  if (role !== 'assistant') return []
  return content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.id] : []))
}

function resultIds({ content }: Message): string[] {
  return content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult.toolUseId] : []))
}
