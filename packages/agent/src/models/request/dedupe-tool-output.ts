import { text, type Content, type Message, type ToolResult } from '@tapetree/session'

/** Shorter output costs less than the words that would stand for it are worth. */
const shortestChars = 1024

/**
 * Long output that was sent before is not sent again: its place is taken by a note that names the call which has it. The first
 * stays and the later ones give way, although the model would rather look at the last: what was sent once must stay as it was
 * sent, or the provider's cache of everything behind it is lost.
 */
export function dedupeToolOutput(messages: readonly Message[]): Message[] {
  /** Output, and the call that had it first. */
  const seen = new Map<string, string>()
  return messages.map((message) => {
    const content = message.content.map((block) => {
      if (block.type !== 'tool_result') return block
      const toolResult = dedupe(block.toolResult, seen)
      return toolResult === block.toolResult ? block : { ...block, toolResult }
    })
    return content.some((block, index) => block !== message.content[index]) ? { ...message, content } : message
  })
}

function dedupe(result: ToolResult, seen: Map<string, string>): ToolResult {
  const { content, toolUseId } = result
  if (typeof content === 'string') {
    const first = firstWith(content, toolUseId, seen)
    return first === undefined ? result : { ...result, content: note(first) }
  }
  const blocks = content.map((block) => {
    const output = outputOf(block)
    const first = output === undefined ? undefined : firstWith(output, toolUseId, seen)
    return first === undefined ? block : text(note(first))
  })
  return blocks.some((block, index) => block !== content[index]) ? { ...result, content: blocks } : result
}

function firstWith(output: string, callId: string, seen: Map<string, string>): string | undefined {
  if (output.length < shortestChars) return undefined
  const first = seen.get(output)
  if (first === undefined) seen.set(output, callId)
  return first
}

function outputOf(block: Content): string | undefined {
  if (block.type === 'text') return block.text.content
  return block.type === 'image' && block.image.source.type === 'base64' ? block.image.source.data : undefined
}

function note(callId: string): string {
  return `[The same output as that of call ${callId} above; it is not repeated.]`
}
