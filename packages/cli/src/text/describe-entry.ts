import type { Content, Message, MessageRole, SessionInfo } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { toldDiagnostics } from '@tapetree/session/screen'
import { callArgument, contentText } from './content-text.ts'
import { counted } from './amounts.ts'
import { harmlessLine } from './harmless.ts'

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
      return describeMessage(entry.message)
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

function describeMessage(message: Message): EntryDescription {
  const words = messageWords(message)
  const told = message.role === 'custom' ? toldDiagnostics(words) : undefined
  return told ? { kind: 'language server', words: told.title } : { kind: speakers[message.role], words }
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

/** Its name or first message; empty if there are no messages. Marks the session of a subagent. Harmless, and on one line. */
export function sessionTitle({ name, firstText = '', subagent }: SessionInfo): string {
  const title = harmlessLine(name || firstText)
  return subagent ? `subagent: ${title}` : title
}

/** A session without messages, queued messages or name. */
export function isEmptySession({ messageCount, queueLength, name, damaged }: SessionInfo): boolean {
  return messageCount === 0 && queueLength === 0 && name === '' && !damaged
}

const minLength = 8

/** The shortest distinct prefix of each id. Ids begin with the time, so eight characters may be shared. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const sorted = [...new Set(ids)].sort()
  return new Map(
    sorted.map((id, index) => {
      const shared = Math.max(sharedLength(id, sorted[index - 1]), sharedLength(id, sorted[index + 1]))
      return [id, id.slice(0, Math.max(minLength, shared + 1))]
    }),
  )
}

function sharedLength(left: string, right: string | undefined): number {
  if (right === undefined || left === right) return 0
  let length = 0
  while (length < left.length && left[length] === right[length]) length++
  return length
}
