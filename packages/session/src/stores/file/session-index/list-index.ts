import type { ReadableLog } from '../../../log/log-store.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../../../state/session-info.ts'

/** The sessions that a list or a search covers. */
export interface IndexSource {
  /** Contains one folder for each session; names that are not valid ids are ignored. */
  folder: string
  openLog(sessionId: string): Promise<ReadableLog>
}

/** Answers list and search. */
export interface ListIndex {
  list(source: IndexSource, query: SessionQuery): Promise<SessionPage>
  search(source: IndexSource, query: SearchQuery): Promise<SearchHit[]>
  /** Removes every trace of sessions that no longer exist. Rejects if that is not possible now. */
  purge(): Promise<void>
  close(): void
}
