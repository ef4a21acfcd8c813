import { createHash } from 'node:crypto'
import type { Content, Message } from '@tapetree/session'

/**
 * Calls and results with ids that the provider accepts. An id of another provider may have characters or a length that
 * this one rejects, and most reject a duplicate id.
 */
export function withAcceptedCallIds(messages: readonly Message[], accepted: RegExp): Message[] {
  const sent = new Set<string>()
  let current = new Map<string, string>()
  return messages.map((message) => {
    if (message.role === 'assistant') {
      const calls = message.content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.id] : []))
      // Results directly follow the message with their calls.
      if (calls.length > 0) current = new Map(calls.map((id) => [id, acceptedId(id, { accepted, sent })]))
    }
    return withIds(message, current)
  })
}

function acceptedId(id: string, { accepted, sent }: { accepted: RegExp; sent: Set<string> }): string {
  let candidate = accepted.test(id) ? id : hashedId(id, accepted)
  for (let use = 2; sent.has(candidate); use += 1) candidate = hashedId(`${id} ${use}`, accepted)
  sent.add(candidate)
  return candidate
}

/**
 * The longest form of the hash that matches the pattern: a few hosts accept only short ids, or only letters and digits.
 */
function hashedId(id: string, accepted: RegExp): string {
  const hash = createHash('sha256').update(id).digest('hex')
  const usual = `call_${hash.slice(0, 24)}`
  if (accepted.test(usual)) return usual
  for (let length = 24; length > 0; length -= 1) {
    if (accepted.test(hash.slice(0, length))) return hash.slice(0, length)
  }
  return usual
}

function withIds(message: Message, ids: ReadonlyMap<string, string>): Message {
  const content = message.content.map((block) => withId(block, ids))
  return content.some((block, index) => block !== message.content[index]) ? { ...message, content } : message
}

function withId(block: Content, ids: ReadonlyMap<string, string>): Content {
  if (block.type === 'tool_use') {
    const id = ids.get(block.toolUse.id) ?? block.toolUse.id
    return id === block.toolUse.id ? block : { ...block, toolUse: { ...block.toolUse, id } }
  }
  if (block.type === 'tool_result') {
    const toolUseId = ids.get(block.toolResult.toolUseId) ?? block.toolResult.toolUseId
    if (toolUseId === block.toolResult.toolUseId) return block
    return { ...block, toolResult: { ...block.toolResult, toolUseId } }
  }
  return block
}
