import type { Content, Entry, ImageSource, Message, ToolUse, TreeNode } from '@tapetree/session'
import { callArgument } from '../text/content-text.ts'
import { costText, counted } from '../text/amounts.ts'
import { describeEntry } from '../text/describe-entry.ts'
import { fitText } from '../text/display-width.ts'
import { escapeHtml, markdownHtml } from './markdown-html.ts'
import type { ExportedSession } from './exported-session.ts'

/** One entry of the page. `after` goes at its end: links to other branches. */
export async function entryHtml({ entry, label }: TreeNode, session: ExportedSession, after = ''): Promise<string> {
  const isFailed = entry.type === 'message' && (entry.message.error !== undefined || hasError(entry.message))
  const kind = entry.type === 'message' ? entry.message.role : entry.type
  return (
    `<article id="${anchorOf(entry)}" class="${escapeHtml(kind)}${isFailed ? ' failed' : ''}">` +
    `${headerHtml(entry, label)}${await bodyHtml(entry, session)}${after}</article>\n`
  )
}

export function anchorOf({ id }: Entry): string {
  return `e-${escapeHtml(id)}`
}

function headerHtml(entry: Entry, label: string | undefined): string {
  const { kind } = describeEntry(entry)
  const facts: string[] = [`<b>${escapeHtml(kind)}</b>`, `<a href="#${anchorOf(entry)}">${entry.seq}</a>`]
  if (entry.timestamp !== '') facts.push(`<time>${escapeHtml(entry.timestamp)}</time>`)
  if (entry.type === 'message') {
    const { model, usage, durationMs } = entry.message
    if (model !== undefined) facts.push(escapeHtml(model))
    if (usage?.outputTokens !== undefined) facts.push(escapeHtml(`${usage.outputTokens} tokens out`))
    if (typeof usage?.cost === 'number') facts.push(escapeHtml(costText(usage.cost)))
    if (typeof durationMs === 'number') facts.push(`${(durationMs / 1000).toFixed(1)} s`)
  }
  if (label !== undefined) facts.push(`<span class="tag">${escapeHtml(label)}</span>`)
  return `<header class="entry">${facts.map((fact) => `<span>${fact}</span>`).join('')}</header>`
}

async function bodyHtml(entry: Entry, session: ExportedSession): Promise<string> {
  switch (entry.type) {
    case 'message':
      return messageHtml(entry.message, session)
    case 'system': {
      const tools = entry.system.tools.map(({ name, description }) => `${name}: ${description}`).join('\n\n')
      return (
        folded('Prompt', preHtml(entry.system.prompt)) +
        folded(counted(entry.system.tools.length, 'tool'), preHtml(tools))
      )
    }
    case 'compaction': {
      const { summary, tokensBefore, firstKeptEntryId } = entry.compaction
      const kept = `<a href="#e-${escapeHtml(firstKeptEntryId)}">the first kept entry</a>`
      return `<p>Replaces everything before ${kept}; ${escapeHtml(tokensBefore)} tokens.</p>${markdownHtml(summary)}`
    }
    case 'branch_summary':
      return markdownHtml(entry.branchSummary.summary)
    case 'custom':
      return folded(entry.custom.customType, preHtml(JSON.stringify(entry.custom.data, null, 2)))
    case 'unknown':
      return folded(entry.unknown.type, preHtml(JSON.stringify(entry.unknown.line, null, 2)))
    default:
      return `<p>${escapeHtml(describeEntry(entry).words)}</p>`
  }
}

async function messageHtml({ content, bashExecution, error }: Message, session: ExportedSession): Promise<string> {
  let html = ''
  for (const block of content) html += await blockHtml(block, session)
  if (bashExecution) html += preHtml(`$ ${bashExecution.command}`) + outputHtml('Output', bashExecution.output)
  if (error) html += `<p class="bad">${escapeHtml(`${error.kind}: ${error.message}`)}</p>`
  return html
}

async function blockHtml(block: Content, session: ExportedSession): Promise<string> {
  switch (block.type) {
    case 'text':
      return markdownHtml(clipped(block.text.content))
    case 'reasoning':
      return block.reasoning.text === '' ? '' : folded('Reasoning', markdownHtml(clipped(block.reasoning.text)))
    case 'tool_use':
      return callHtml(block.toolUse)
    case 'tool_result': {
      const { toolUseId, isError, content } = block.toolResult
      const title = `${session.callNames.get(toolUseId) ?? toolUseId}${isError ? ' failed' : ''}`
      if (typeof content === 'string') return outputHtml(title, content)
      let html = `<p class="turn">${escapeHtml(title)}</p>`
      for (const each of content)
        html += each.type === 'text' ? outputHtml('Output', each.text.content) : await blockHtml(each, session)
      return html
    }
    case 'image':
      return imageHtml(block.image.source, session)
    default:
      return block satisfies never
  }
}

function callHtml({ name, input, partialInput }: ToolUse): string {
  const [about = ''] = callArgument({ name, input }).split('\n', 1)
  const title = `${name} ${fitText(about, 120)}`.trim()
  return folded(title, preHtml(partialInput ?? JSON.stringify(input, null, 2)))
}

const shortOutput = 1500

function outputHtml(title: string, text: string): string {
  return folded(title, preHtml(text), { isOpen: text.length <= shortOutput })
}

function folded(title: string, html: string, { isOpen = false } = {}): string {
  return `<details${isOpen ? ' open' : ''}><summary>${escapeHtml(title)}</summary>${html}</details>`
}

function preHtml(text: string): string {
  return `<pre>${escapeHtml(clipped(text))}</pre>`
}

/** The page is for viewing; the bundle has the full text. */
const maxShown = 100_000

function clipped(text: string): string {
  if (text.length <= maxShown) return text
  return `${text.slice(0, maxShown).toWellFormed()}\n… ${counted(text.length - maxShown, 'more character')}: not in this page.`
}

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const maxImageBytes = 8 * 1024 * 1024

/** Only embedded bytes: the browser would request a URL. */
async function imageHtml(source: ImageSource, session: ExportedSession): Promise<string> {
  if (source.type === 'url') return `<p>Image at <code>${escapeHtml(source.data)}</code></p>`
  if (!imageTypes.has(source.mediaType)) return `<p>Image of type ${escapeHtml(source.mediaType)}</p>`
  const data = source.type === 'base64' ? source.data : await blobData(source.sha256, session)
  if (data === undefined) return '<p>Image missing</p>'
  if (data.length * 0.75 > maxImageBytes) return '<p>Image too large for this page</p>'
  return `<img loading="lazy" alt="" src="data:${source.mediaType};base64,${escapeHtml(data)}">`
}

async function blobData(sha256: string, session: ExportedSession): Promise<string | undefined> {
  const bytes = await session.imageBytes(sha256)
  return bytes && Buffer.from(bytes).toString('base64')
}

function hasError({ content }: Message): boolean {
  return content.some((block) => block.type === 'tool_result' && block.toolResult.isError === true)
}
