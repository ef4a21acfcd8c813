import { text, type Content, type Context, type Message, type Session } from '@tapetree/session'

/** Builders for what is said, and the way back: what was said, in short. */

export function call(id: string, name = 'read_file', input: Record<string, unknown> = {}): Content {
  return { type: 'tool_use', toolUse: { id, name, input } }
}

export function result(toolUseId: string, content = 'done'): Content {
  return { type: 'tool_result', toolResult: { toolUseId, content } }
}

/** A user message of one sentence, and the id of its entry. */
export async function ask(session: Session, words: string): Promise<string> {
  return session.appendMessage('user', [text(words)])
}

export async function answer(session: Session, words: string): Promise<string> {
  return session.appendMessage('assistant', [text(words)])
}

/** The messages of a context as `role: words`, a call as `[id]`, a result as `id=words`. */
export function said(context: Context): string[] {
  return context.messages.map(({ message }) => `${message.role}: ${wordsOf(message)}`)
}

/** The same for the context of a session at its leaf. */
export async function saidIn(session: Session): Promise<string[]> {
  return said(await session.getContext())
}

export function wordsOf(message: Message): string {
  return message.content.map(wordsOfBlock).join(' ')
}

function wordsOfBlock(block: Content): string {
  switch (block.type) {
    case 'text':
      return block.text.content
    case 'image':
      return `<${block.image.source.type} ${block.image.source.mediaType}>`
    case 'tool_use':
      return `[${block.toolUse.id}]`
    case 'tool_result': {
      const { content, toolUseId } = block.toolResult
      return `${toolUseId}=${typeof content === 'string' ? content : content.map(wordsOfBlock).join(' ')}`
    }
    case 'reasoning':
      return `(${block.reasoning.text})`
    default:
      return block satisfies never
  }
}
