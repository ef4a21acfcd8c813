import type { TreeNodeSummary, treeQuerySchema, treeWindowSchema } from '@tapetree/client'
import { fromDisk, type DiskLine, type Entry, type Message, type Session } from '@tapetree/session'
import type { z } from 'zod'
import { isEntryLine } from './wire-entry.ts'

const defaultLimit = 200
const previewLength = 200

/** A window of entries with their parents. Reads only that part of the log. */
export async function treeWindow(
  session: Session,
  { after, before, limit = defaultLimit }: z.infer<typeof treeQuerySchema>,
): Promise<z.infer<typeof treeWindowSchema>> {
  const { leafId: leaf_id } = session
  const labels = session.getLabels()
  if (after !== undefined) {
    const found = await nodesBetween(session, { after, before: before ?? Infinity, most: limit + 1 })
    const nodes = found.slice(0, limit).map((entry) => nodeOf(entry, labels))
    return { nodes, leaf_id, has_before: after > 1, has_after: found.length > limit }
  }
  const end = Math.min(before ?? Infinity, session.head.seq + 1)
  const found = await newestBefore(session, end, limit + 1)
  const nodes = found.slice(-limit).map((entry) => nodeOf(entry, labels))
  return { nodes, leaf_id, has_before: found.length > limit, has_after: end <= session.head.seq }
}

export function nodeOf(entry: Entry, labels: ReadonlyMap<string, string>): TreeNodeSummary {
  const { id, parentId, seq, type, timestamp } = entry
  const label = labels.get(id)
  return {
    id,
    parent_id: parentId,
    seq,
    type,
    timestamp,
    ...(entry.type === 'message' && { role: entry.message.role }),
    preview: previewOf(entry),
    ...(label !== undefined && { label }),
  }
}

/** Records lie between entries, so this reads further back until there are enough. */
async function newestBefore(session: Session, end: number, count: number): Promise<Entry[]> {
  for (let span = count * 2; ; span *= 4) {
    const after = Math.max(0, end - 1 - span)
    const found = await nodesBetween(session, { after, before: end, most: Infinity })
    if (found.length >= count || after === 0) return found.slice(-count)
  }
}

async function nodesBetween(
  session: Session,
  { after, before, most }: { after: number; before: number; most: number },
): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const stored of session.lines({ after })) {
    if (stored.seq >= before || entries.length >= most) break
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (isEntryLine(line)) entries.push(line)
  }
  return entries
}

function previewOf(entry: Entry): string {
  switch (entry.type) {
    case 'message':
      return cut(wordsOf(entry.message))
    case 'compaction':
      return cut(entry.compaction.summary)
    case 'branch_summary':
      return cut(entry.branchSummary.summary)
    case 'model_change':
      return `${entry.modelChange.provider}/${entry.modelChange.modelId}`
    case 'thinking_level':
      return entry.thinkingLevel.thinkingLevel
    case 'custom':
      return entry.custom.customType
    case 'label':
      return entry.label.label ?? ''
    case 'session_info':
      return cut(entry.sessionInfo.name)
    case 'gap':
      return entry.gap.reason
    default:
      return ''
  }
}

function wordsOf({ content, bashExecution }: Message): string {
  if (bashExecution) return `$ ${bashExecution.command}`
  for (const block of content) {
    if (block.type === 'text' && block.text.content.trim() !== '') return block.text.content.trim()
    if (block.type === 'tool_use') return `${block.toolUse.name} ${JSON.stringify(block.toolUse.input)}`
    if (block.type === 'tool_result' && typeof block.toolResult.content === 'string') return block.toolResult.content
  }
  return ''
}

function cut(text: string): string {
  return text.length > previewLength ? text.slice(0, previewLength).toWellFormed() : text
}
