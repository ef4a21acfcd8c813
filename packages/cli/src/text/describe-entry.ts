import type { Content, Entry, Message, MessageRole } from '@tapetree/session'
import { callArgument, contentText } from './content-text.ts'
import { counted } from './amounts.ts'

export interface EntryDescription {
  /** The author or kind, in the terms of the glossary. */
  kind: string
  /** The content as recorded: not yet safe for a terminal, and of any length. */
  words: string
}

/** An entry in one line. */
export function describeEntry(entry: Entry): EntryDescription {
  switch (entry.type) {
    case 'message':
      return { kind: speakers[entry.message.role], words: messageWords(entry.message) }
    case 'system':
      return { kind: 'system prompt', words: `with ${counted(entry.system.tools.length, 'tool')}` }
    case 'model_change':
      return { kind: 'model', words: `${entry.modelChange.provider}/${entry.modelChange.modelId}` }
    case 'thinking_level':
      return { kind: 'thinking level', words: entry.thinkingLevel.thinkingLevel }
    case 'compaction':
      return { kind: 'compaction', words: entry.compaction.summary }
    case 'branch_summary':
      return { kind: 'branch summary', words: entry.branchSummary.summary }
    case 'custom':
      return { kind: 'custom', words: entry.custom.customType }
    case 'label':
      return { kind: 'label', words: entry.label.label ?? '' }
    case 'session_info':
      return { kind: 'name', words: entry.sessionInfo.name }
    case 'gap':
      return { kind: 'gap', words: entry.gap.reason }
    case 'unknown':
      return { kind: 'unknown', words: `${entry.unknown.type}, from a newer version` }
    default:
      return entry satisfies never
  }
}

const speakers: Record<MessageRole, string> = {
  user: 'user',
  assistant: 'assistant',
  tool: 'tool result',
  bashExecution: 'command',
  custom: 'custom',
  branchSummary: 'branch summary',
  compactionSummary: 'compaction',
}

function messageWords({ content, bashExecution, error }: Message): string {
  if (bashExecution) return bashExecution.command
  const failure = error ? `failed: ${error.message}` : ''
  return [...content.map(briefly), failure].filter(Boolean).join(' ')
}

function briefly(block: Content): string {
  switch (block.type) {
    case 'text':
      return block.text.content.trim()
    case 'tool_use':
      return `[${`${block.toolUse.name} ${callArgument(block.toolUse)}`.trim()}]`
    case 'tool_result': {
      const { content, isError } = block.toolResult
      return `${isError ? 'failed: ' : ''}${contentText(content).trim()}`
    }
    case 'image':
      return '[image]'
    case 'reasoning':
      return ''
    default:
      return block satisfies never
  }
}
