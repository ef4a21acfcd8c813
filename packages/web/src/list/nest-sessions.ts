import type { SessionSummary } from '@tapetree/client'

/** A session in the list, with its place below its parent. */
export interface NestedSession {
  session: SessionSummary
  /** 0 for a session without a parent in the list. */
  depth: number
  /** Subagents that work for it. */
  childCount: number
  isExpanded: boolean
}

/**
 * Puts subagents below their parents. Only the children of expanded sessions are included. A subagent whose parent is not in the list is
 * a row of its own.
 */
export function nestSessions(
  sessions: readonly SessionSummary[],
  isExpanded: (session: SessionSummary, children: readonly SessionSummary[]) => boolean,
): NestedSession[] {
  const ids = new Set(sessions.map(({ id }) => id))
  const children = Map.groupBy(
    sessions.filter((session) => isBelow(session, ids)),
    ({ parentSession = '' }) => parentSession,
  )
  const nested: NestedSession[] = []
  const add = (session: SessionSummary, depth: number): void => {
    const own = children.get(session.id) ?? []
    // Each is added once, even if a damaged log makes a circle.
    children.delete(session.id)
    const isOpen = own.length > 0 && isExpanded(session, own)
    nested.push({ session, depth, childCount: own.length, isExpanded: isOpen })
    if (isOpen) for (const child of own.toReversed()) add(child, depth + 1)
  }
  for (const session of sessions) if (!isBelow(session, ids)) add(session, 0)
  return nested
}

function isBelow({ id, subagent, parentSession }: SessionSummary, ids: ReadonlySet<string>): boolean {
  return subagent === true && parentSession !== undefined && parentSession !== id && ids.has(parentSession)
}
