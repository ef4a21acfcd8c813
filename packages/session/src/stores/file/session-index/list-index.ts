import type { ReadableLog } from '../../../log/log-store.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../../../state/session-info.ts'

/** The sessions that a list or a search is about. */
export interface IndexSource {
  /** Has a folder for each session; what does not fit an id is not one. */
  folder: string
  openLog(sessionId: string): Promise<ReadableLog>
}

/** What answers list and search. */
export interface ListIndex {
  list(source: IndexSource, query: SessionQuery): Promise<SessionPage>
  search(source: IndexSource, query: SearchQuery): Promise<SearchHit[]>
  close(): void
}
