import { fromDisk, SessionError, type DiskLine, type Session, type SessionStore } from '@tapetree/session'

export interface SubagentTotals {
  count: number
  tokens: number
  /** In US dollars. */
  cost: number
}

/** What the subagents used. One whose session is gone, or cannot be read, counts as nothing. */
export async function subagentTotals(
  store: SessionStore,
  subagents: ReadonlyMap<string, readonly string[]>,
): Promise<SubagentTotals> {
  const totals = { count: 0, tokens: 0, cost: 0 }
  for (const id of new Set([...subagents.values()].flat())) {
    totals.count++
    try {
      await using session = await store.open(id, { readOnly: true })
      totals.tokens += session.totals.tokens
      totals.cost += session.totals.cost
    } catch (error) {
      if (!(error instanceof SessionError)) throw error
    }
  }
  return totals
}

/** The sessions that subagents of this one work in, by the entry that called them. */
export async function subagentsOf(session: Session): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for await (const stored of session.lines()) {
    if (stored.type === 'lost' || !stored.text.includes('"child_session"')) continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type !== 'tool_start') continue
    // The codec does not look at values, and the line may be anybody's.
    const { entryId = '', childSession } = (line.toolStart as Partial<typeof line.toolStart> | undefined) ?? {}
    if (typeof childSession !== 'string') continue
    const children = found.get(entryId) ?? []
    found.set(entryId, children.includes(childSession) ? children : [...children, childSession])
  }
  return found
}
