import type { Message } from '@tapetree/session'
import type { ModelRequest } from '../../../packages/agent/src/models/model.ts'

/** What a provider would refuse, or what `buildContext` had to mend: neither may ever be sent. */
export function problemOfRequest({ messages }: Pick<ModelRequest, 'messages'>): string | undefined {
  const asked = new Set<string>()
  let due: string[] = []
  for (const message of messages) {
    const results = resultsIn(message)
    for (const { toolUseId, content } of results) {
      if (due.shift() !== toolUseId) return `result ${toolUseId} stands where it does not answer the next call`
      if (content === 'not run on this branch') return `call ${toolUseId} had no result`
    }
    if (results.length > 0) continue
    if (due.length > 0) return `a message of ${message.role} stands before the result of ${due.join(', ')}`
    if (saysOrphan(message)) return 'a result without its call became the words of the user'
    due = callsIn(message)
    for (const callId of due) {
      if (asked.has(callId)) return `call ${callId} is there twice`
      asked.add(callId)
    }
  }
  if (due.length > 0) return `there is no result of ${due.join(', ')}`
  const last = messages.at(-1)
  if (last === undefined) return 'there is nothing in it'
  return last.role === 'assistant' ? 'its last word is the model’s own' : undefined
}

/** What users say in it and what the model called for, as `LogCheck` has it from the log. */
export function sentIn({ messages }: Pick<ModelRequest, 'messages'>): string[] {
  return messages.flatMap((message) =>
    message.role === 'user' ? [`user: ${textIn(message)}`] : callsIn(message).map((callId) => `call: ${callId}`),
  )
}

function textIn({ content }: Message): string {
  return content.map((block) => (block.type === 'text' ? block.text.content : '')).join('')
}

function callsIn({ role, content }: Message): string[] {
  return role === 'assistant' ? content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.id] : [])) : []
}

function resultsIn({ content }: Message): { toolUseId: string; content: unknown }[] {
  return content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult] : []))
}

function saysOrphan({ content }: Message): boolean {
  return content.some((block) => block.type === 'text' && block.text.content.startsWith('Result of an earlier call ('))
}
