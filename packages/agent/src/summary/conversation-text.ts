import type { Content, Message, ToolResult, ToolUse } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'

/** The beginning and end of a tool's output are kept; of a call's input only the beginning. */
const maxResultLength = 2000
const maxInputLength = 1000

/** A conversation as text for a summary: one piece for each entry with content. */
export function conversationText(entries: readonly Entry[]): string[] {
  const names = new Map<string, string>()
  return entries.flatMap((entry) => {
    const text = textOfEntry(entry, names).trim()
    return text === '' ? [] : [text]
  })
}

/** `names` collects the names of calls, for the results that follow. */
function textOfEntry(entry: Entry, names: Map<string, string>): string {
  if (entry.type === 'branch_summary') return `[Summary of a branch that was left]\n${entry.branchSummary.summary}`
  if (entry.type !== 'message' || entry.message.bashExecution?.excludeFromContext) return ''
  const { message } = entry
  if (message.bashExecution) return textOfCommand(message.bashExecution)
  return message.content
    .map((block) => textOfBlock(block, message, names))
    .filter((text) => text !== '')
    .join('\n')
}

function textOfCommand({ command, output, exitCode }: NonNullable<Message['bashExecution']>): string {
  const code = exitCode === undefined ? '' : `\n(exit code ${exitCode})`
  return `[User ran a command]\n$ ${command}\n${shortened(output, maxResultLength)}${code}`
}

function textOfBlock(block: Content, { role }: Message, names: Map<string, string>): string {
  switch (block.type) {
    case 'text':
      return block.text.content.trim() === '' ? '' : `[${speakers[role]}]\n${block.text.content}`
    case 'image':
      return `[${speakers[role]}]\n${textOfImage(block)}`
    case 'reasoning':
      return ''
    case 'tool_use':
      names.set(block.toolUse.id, block.toolUse.name)
      return textOfCall(block.toolUse)
    case 'tool_result':
      return textOfResult(block.toolResult, names)
    default:
      block satisfies never
      return ''
  }
}

const speakers: Record<Message['role'], string> = {
  user: 'User',
  assistant: 'Assistant',
  tool: 'Tool',
  bashExecution: 'User ran a command',
  custom: 'Note',
  branchSummary: 'Summary of a branch that was left',
  compactionSummary: 'Summary of what came before',
}

function textOfCall({ name, input, partialInput }: ToolUse): string {
  const text = partialInput ?? JSON.stringify(input)
  const isLong = text.length > maxInputLength
  return `[Assistant calls ${name}]\n${isLong ? `${beginning(text, maxInputLength)} …` : text}`
}

function textOfResult({ toolUseId, isError, content }: ToolResult, names: Map<string, string>): string {
  const text = typeof content === 'string' ? content : content.map(textInResult).join('\n')
  const name = names.get(toolUseId)
  const what = name === undefined ? 'an earlier call' : name
  return `[${isError ? 'Failed result' : 'Result'} of ${what}]\n${shortened(text, maxResultLength)}`
}

function textInResult(block: Content): string {
  if (block.type === 'text') return block.text.content
  return block.type === 'image' ? textOfImage(block) : ''
}

function textOfImage({ image }: Content & { type: 'image' }): string {
  return `(an image, ${image.source.mediaType})`
}

function shortened(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const start = beginning(text, Math.ceil(maxLength * 0.6))
  const end = text.slice(start.length - maxLength).replace(/^[\uDC00-\uDFFF]/, '')
  return `${start}\n… (${text.length - start.length - end.length} characters left out) …\n${end}`
}

/** Never cuts a character in half. */
export function beginning(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')
}
