import { fromDisk, type DiskLine, type Session } from '@tapetree/session'

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
