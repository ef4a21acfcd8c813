import type { CompactionEntry, Context, Entry, Session } from '@tapetree/session'
import { segmentsOf } from './segments.ts'

/** What the path has that the model is not shown as it stands. */
export interface ContextGaps {
  /** The compaction in force and the entries that its summary stands for. */
  replaced?: { compactionId: string; entries: Entry[] }
  /** Messages behind it that are not sent. */
  leftOut: Entry[]
  /** Every entry of the path, by id. */
  entries: ReadonlyMap<string, Entry>
}

export async function contextGaps(session: Session, leafId: string | null, context: Context): Promise<ContextGaps> {
  const [path] = segmentsOf(await session.getTree(), leafId)
  const entries = path?.nodes.map(({ entry }) => entry) ?? []
  const compaction = compactionIn(context, entries)
  const firstKept = compaction ? entries.findIndex(({ id }) => id === compaction.compaction.firstKeptEntryId) : 0
  // Without its first entry nothing is kept but what follows the summary.
  const from = firstKept === -1 ? entries.findIndex(({ id }) => id === compaction?.id) : firstKept
  const sent = new Set(context.messages.map(({ entryId }) => entryId))
  return {
    ...(compaction && { replaced: { compactionId: compaction.id, entries: entries.slice(0, from) } }),
    leftOut: entries.slice(from).filter(({ id, type }) => type === 'message' && !sent.has(id)),
    entries: new Map(entries.map((entry) => [entry.id, entry])),
  }
}

function compactionIn({ messages }: Context, entries: readonly Entry[]): CompactionEntry | undefined {
  const [first] = messages
  const entry = first?.made === 'summary' ? entries.find(({ id }) => id === first.entryId) : undefined
  return entry?.type === 'compaction' ? entry : undefined
}
