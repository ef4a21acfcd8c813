import { text, type Content, type ToolResultContent, type ToolUseContent } from '../line/message.ts'
import type { Session } from '../store/session.ts'

/** Short helpers for tests. */

export async function user(session: Session, words: string): Promise<string> {
  return session.appendMessage('user', [text(words)])
}

export async function assistant(session: Session, ...content: (string | Content)[]): Promise<string> {
  return session.appendMessage('assistant', content.map(asContent))
}

export async function toolResult(session: Session, callId: string, words: string): Promise<string> {
  return session.appendMessage('tool', [result(callId, words)])
}

export function call(id: string, name = 'read', input: Record<string, unknown> = {}): ToolUseContent {
  return { type: 'tool_use', toolUse: { id, name, input } }
}

export function result(toolUseId: string, content: string): ToolResultContent {
  return { type: 'tool_result', toolResult: { toolUseId, content } }
}

/** The messages of a context, one string each: `user: go`, `assistant: [a] ok`, `tool: a=done`. */
export async function said(session: Session): Promise<string[]> {
  const { messages } = await session.getContext()
  return messages.map(({ message }) => `${message.role}: ${message.content.map(briefly).join(' ')}`)
}

function asContent(content: string | Content): Content {
  return typeof content === 'string' ? text(content) : content
}

function briefly(block: Content): string {
  switch (block.type) {
    case 'text':
      return block.text.content
    case 'tool_use':
      return `[${block.toolUse.id}]`
    case 'tool_result':
      return `${block.toolResult.toolUseId}=${typeof block.toolResult.content === 'string' ? block.toolResult.content : '…'}`
    case 'image':
      return '(image)'
    case 'reasoning':
      return '(reasoning)'
    default:
      return block satisfies never
  }
}
