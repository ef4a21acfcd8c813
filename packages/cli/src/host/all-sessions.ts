import type { Place, SessionInfo, SessionPage, SessionQuery } from '@tapetree/session'

/** A store, or whatever else lists sessions page by page. */
export interface ListedSessions {
  list(query: SessionQuery): Promise<SessionPage>
}

const pageSize = 1000

export async function allSessions(store: ListedSessions, place: Place): Promise<SessionInfo[]> {
  const all: SessionInfo[] = []
  let cursor: string | undefined
  do {
    const page = await store.list({ place, limit: pageSize, ...(cursor !== undefined && { cursor }) })
    all.push(...page.sessions)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
}
