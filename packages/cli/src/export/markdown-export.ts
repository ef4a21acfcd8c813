import type { Content, Message } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { counted } from '../text/amounts.ts'
import { describeEntry } from '../text/describe-entry.ts'
import { harmless } from '../text/harmless.ts'
import type { ExportedSession } from './exported-session.ts'

/** The current path, as Markdown that is also safe for a terminal. */
export function* markdownExport(session: ExportedSession): Generator<string> {
  for (const piece of piecesOf(session)) yield harmless(piece)
}

function* piecesOf(session: ExportedSession): Generator<string> {
  const { segments, branches } = session
  const [path] = segments
  yield `# ${session.title.replaceAll('\n', ' ')}\n\n`
  yield `Session \`${session.id}\`, ${session.created}${session.cwd === undefined ? '' : `, in \`${session.cwd}\``}.\n`
  if (branches > 0) yield `\nNot in this file: ${counted(branches, 'other branch', 'other branches')}.\n`
  for (const { entry, label } of path?.nodes ?? []) {
    const text = entryText(entry, session)
    if (text === '') continue
    yield `\n## ${headingOf(entry)}${label === undefined ? '' : ` [${label}]`}\n\n${text.trimEnd()}\n`
  }
}

function headingOf(entry: Entry): string {
  const kind = capitalised(describeEntry(entry).kind)
  const model = entry.type === 'message' ? entry.message.model : undefined
  return model === undefined ? kind : `${kind} (${model})`
}

function entryText(entry: Entry, session: ExportedSession): string {
  switch (entry.type) {
    case 'message':
      return messageText(entry.message, session)
    case 'system':
      return details('System prompt', fenced(entry.system.prompt))
    case 'compaction':
      return entry.compaction.summary
    case 'branch_summary':
      return entry.branchSummary.summary
    default:
      return describeEntry(entry).words
  }
}

function messageText({ content, bashExecution, error }: Message, session: ExportedSession): string {
  const parts = content.map((block) => blockText(block, session))
  if (bashExecution) parts.push(fenced(`$ ${bashExecution.command}\n${bashExecution.output}`))
  if (error) parts.push(`**Failed:** ${error.message}`)
  return parts.filter((part) => part !== '').join('\n\n')
}

function blockText(block: Content, session: ExportedSession): string {
  switch (block.type) {
    case 'text':
      return block.text.content
    case 'reasoning':
      return block.reasoning.text === '' ? '' : details('Reasoning', block.reasoning.text)
    case 'tool_use':
      return `**${block.toolUse.name}**\n\n${fenced(JSON.stringify(block.toolUse.input, null, 2), 'json')}`
    case 'tool_result': {
      const { toolUseId, isError, content } = block.toolResult
      const name = session.callNames.get(toolUseId) ?? toolUseId
      const said =
        typeof content === 'string' ? fenced(content) : content.map((each) => blockText(each, session)).join('\n\n')
      return `**${name}${isError ? ' failed' : ''}**\n\n${said}`
    }
    case 'image':
      return '(image)'
    default:
      return block satisfies never
  }
}

/** A fence that nothing inside can close. */
function fenced(text: string, language = ''): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`{3,}/g), ([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}

function details(summary: string, text: string): string {
  return `<details><summary>${summary}</summary>\n\n${text}\n\n</details>`
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
