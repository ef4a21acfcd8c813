import type { AssistantPart, TranscriptItem } from '@tapetree/session'
import { callArgument } from '../../text/call-argument.ts'
import { contentText } from '../../text/content-text.ts'

/** All that an item says when it is unfolded, for finding something in it. It is not harmless. */
export function itemWords(item: TranscriptItem): string {
  switch (item.type) {
    case 'user':
      return contentText(item.content)
    case 'assistant':
      return [...item.parts.map(partWords), item.error?.message ?? ''].join('\n')
    case 'tool_result':
      return item.results.map(({ content }) => contentText(content)).join('\n')
    case 'bash':
      return `${item.command}\n${item.output}`
    case 'compaction':
    case 'branch_summary':
      return item.summary
    case 'custom':
      return item.custom.type === 'message' ? contentText(item.custom.content) : item.custom.customType
    case 'model':
      return `${item.provider}/${item.modelId}`
    case 'thinking_level':
      return item.thinkingLevel
    case 'system':
    case 'gap':
      return ''
    default:
      item satisfies never
      return ''
  }
}

function partWords(part: AssistantPart): string {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return part.text
    case 'tool_call':
      return `${part.name} ${callArgument(part)}\n${contentText(part.result?.content ?? '')}`
    case 'image':
      return ''
    default:
      part satisfies never
      return ''
  }
}
