import type { TreeNodeSummary, treeQuerySchema, treeWindowSchema, comparisonSchema } from '@tapetree/client/protocol'
import { SessionError, type Message, type Session } from '@tapetree/session'
import { fromDisk, type DiskLine, type Entry } from '@tapetree/session/format'
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

function nodeOf(entry: Entry, labels: ReadonlyMap<string, string>): TreeNodeSummary {
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
    case 'system':
    case 'unknown':
      return ''
    default:
      return entry satisfies never
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

type Comparison = z.infer<typeof comparisonSchema>

const maxEntries = 1000

/** The common ancestor of two paths, and the entries after it on each. Reads the whole log. */
export async function compareLeaves(
  session: Session,
  { left, right }: { left: string; right: string },
): Promise<Comparison> {
  const entries = await entriesOf(session)
  const leftPath = pathTo(left, entries)
  const rightPath = pathTo(right, entries)
  const onLeft = new Set(leftPath.map(({ id }) => id))
  const ancestor = rightPath.findLast(({ id }) => onLeft.has(id))?.id ?? null
  const labels = session.getLabels()
  const sideOf = (leafId: string, path: readonly Entry[]): Comparison['left'] => {
    const own = path.slice(path.findIndex(({ id }) => id === ancestor) + 1)
    return {
      leaf_id: leafId,
      entry_count: own.length,
      entries: own.slice(-maxEntries).map((entry) => nodeOf(entry, labels)),
      usage: usageOf(own),
    }
  }
  return { common_ancestor: ancestor, left: sideOf(left, leftPath), right: sideOf(right, rightPath) }
}

async function entriesOf(session: Session): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>()
  for await (const stored of session.lines()) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    // In a damaged log with a repeated id, the first entry counts.
    if (isEntryLine(line) && !entries.has(line.id)) entries.set(line.id, line)
  }
  return entries
}

/** From the root to the entry, inclusive. */
function pathTo(entryId: string, entries: ReadonlyMap<string, Entry>): Entry[] {
  const path = new Set<Entry>()
  let entry = entries.get(entryId)
  if (!entry) throw new SessionError('entry-not-found', `No entry ${entryId} in this session.`)
  while (entry && !path.has(entry)) {
    path.add(entry)
    entry = entry.parentId === null ? undefined : entries.get(entry.parentId)
  }
  return [...path].reverse()
}

function usageOf(entries: readonly Entry[]): Comparison['left']['usage'] {
  const sum = { input_tokens: 0, output_tokens: 0, total_tokens: 0, cost: 0 }
  for (const entry of entries) {
    const usage = entry.type === 'message' ? entry.message.usage : undefined
    if (!usage) continue
    const { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens, cost = 0 } = usage
    sum.input_tokens += inputTokens
    sum.output_tokens += outputTokens
    sum.total_tokens += totalTokens
    sum.cost += cost
  }
  return sum
}
