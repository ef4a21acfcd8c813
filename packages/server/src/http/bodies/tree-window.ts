import type { TreeNodeSummary, treeQuerySchema, treeWindowSchema } from '@tapetree/client/protocol'
import type { Session } from '@tapetree/session'
import { fromDisk, type DiskLine, type Entry } from '@tapetree/session/format'
import { summarizeEntry } from '@tapetree/session/screen'
import type { z } from 'zod'
import { isEntryLine, toWire } from './wire-entry.ts'

const defaultLimit = 200

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
  return toWire(summarizeEntry(entry, labels)) as TreeNodeSummary
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
