import type { CompactionEntry, Context, Entry, Session } from '@tapetree/session'
import { segmentsOf } from './segments.ts'

/** What the path contains and the model does not see as it is. */
export interface ContextGaps {
  /** The active compaction and the entries that its summary replaces. */
  replaced?: { compactionId: string; entries: Entry[] }
  /** Messages after it that are not sent. */
  leftOut: Entry[]
  /** Every entry of the path, by id. */
  entries: ReadonlyMap<string, Entry>
}

export async function contextGaps(session: Session, leafId: string | null, context: Context): Promise<ContextGaps> {
  const [path] = segmentsOf(await session.getTree(), leafId)
  const entries = path?.nodes.map(({ entry }) => entry) ?? []
  const compaction = compactionIn(context, entries)
  const firstKept = compaction ? entries.findIndex(({ id }) => id === compaction.compaction.firstKeptEntryId) : 0
  // If its first kept entry is missing, only what follows the summary is kept.
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
