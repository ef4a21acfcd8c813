import type { Content, Context, ContextMessage, Entry, ToolDefinition } from '@tapetree/session'
import type { Styles } from '../command-line/color.ts'
import { counted } from '../text/amounts.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'
import type { ContextGaps } from './context-path.ts'

/** A context for people: what is sent, in order, each with its source. */
export function* contextText(context: Context, gaps: ContextGaps, { bold, dim }: Styles): Generator<string> {
  const { system, provenance, messages, repairs } = context
  const heading = (words: string): string => `\n${bold(`── ${harmlessLine(words)}`)}\n`
  if (system) {
    yield heading(`system prompt, ${placeOf(provenance.systemId, gaps)}`)
    yield `${harmless(system.prompt)}\n`
    yield heading(`${counted(system.tools.length, 'tool')}, ${placeOf(provenance.systemId, gaps)}`)
    for (const tool of system.tools) yield toolText(tool)
  }
  for (const [index, message] of messages.entries()) {
    yield heading(`${index + 1}. ${message.message.role}, ${placeOf(message.entryId, gaps)}${whyOf(message, gaps)}`)
    for (const block of message.message.content) yield `${harmless(blockText(block))}\n`
    const { bashExecution } = message.message
    if (bashExecution) yield `${harmless(`$ ${bashExecution.command}\n${bashExecution.output}`)}\n`
  }
  if (gaps.leftOut.length > 0) {
    yield heading(`not sent: ${counted(gaps.leftOut.length, 'message')} of the path`)
    for (const entry of gaps.leftOut) yield dim(`${placeOf(entry.id, gaps)}: ${leftOutBecause(entry)}\n`)
  }
  if (repairs.length > 0) yield heading('repaired so that a provider accepts it')
  for (const repair of repairs) yield `${harmlessLine(repair)}\n`
}

export function placeOf(entryId: string | null, { entries }: Pick<ContextGaps, 'entries'>): string {
  if (entryId === null) return 'without a source'
  const seq = entries.get(entryId)?.seq
  return seq === undefined ? `entry ${entryId}` : `entry ${seq} (${entryId})`
}

function whyOf({ made, message }: ContextMessage, { replaced }: ContextGaps): string {
  switch (made) {
    case 'summary':
      if (message.role === 'branchSummary') return ': summarizes an abandoned branch'
      return `: replaces ${rangeOf(replaced?.entries ?? [])}`
    case 'missing-result':
      return ': synthetic, because the call has no result on this branch'
    case 'orphan-result':
      return ': a result whose call is not in the context'
    case undefined:
      return ''
    default:
      return made satisfies never
  }
}

function rangeOf(entries: readonly Entry[]): string {
  const [first, last] = [entries.at(0), entries.at(-1)]
  if (!first || !last) return 'no entries'
  return `${counted(entries.length, 'entry', 'entries')}, ${first.seq} to ${last.seq}`
}

function leftOutBecause(entry: Entry): string {
  if (entry.type === 'message' && entry.message.bashExecution?.excludeFromContext) return 'a command with `!!`'
  return 'it has nothing to send'
}

function toolText({ name, description, inputSchema }: ToolDefinition): string {
  return `${harmless(`${name}: ${description}\n  ${JSON.stringify(inputSchema)}`)}\n`
}

function blockText(block: Content): string {
  switch (block.type) {
    case 'text':
      return block.text.content
    case 'reasoning':
      return `(reasoning) ${block.reasoning.text}`
    case 'tool_use':
      return `(call ${block.toolUse.id}) ${block.toolUse.name} ${JSON.stringify(block.toolUse.input)}`
    case 'tool_result': {
      const { toolUseId, isError, content } = block.toolResult
      const said = typeof content === 'string' ? content : content.map(blockText).join('\n')
      return `(${isError ? 'error' : 'result'} of ${toolUseId}) ${said}`
    }
    case 'image': {
      const { source } = block.image
      if (source.type === 'blob') return `(image ${source.mediaType}, ${source.size} bytes, sha256 ${source.sha256})`
      if (source.type === 'url') return `(image at ${source.data})`
      return `(image ${source.mediaType}, ${source.data.length} characters of base64)`
    }
    default:
      return block satisfies never
  }
}
