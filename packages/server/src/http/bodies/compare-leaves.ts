import type { comparisonSchema } from '@tapetree/client'
import { fromDisk, SessionError, type DiskLine, type Entry, type Session } from '@tapetree/session'
import type { z } from 'zod'
import { nodeOf } from './tree-window.ts'
import { isEntryLine } from './wire-entry.ts'

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
