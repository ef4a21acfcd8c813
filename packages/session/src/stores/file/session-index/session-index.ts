import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../../../state/session-info.ts'
import { IndexFile } from './index-file.ts'
import { IndexRows } from './index-rows.ts'
import { IndexSearch } from './index-search.ts'
import type { IndexSource, ListIndex } from './list-index.ts'
import { Slices } from './slices.ts'

export interface SessionIndexOptions {
  /** See `indexFileIn`. */
  file: string
  /** So much of long logs is read while a list waits; further ones are estimated from their head and tail first. */
  wholeReadBytes?: number
}

/**
 * List and search over all sessions of a root. The logs are the truth: every call looks at each log's inode, size and time, reads
 * those that changed, and believes the index file for the others. An index that is missing, broken or held by another process
 * costs time and nothing else.
 */
export class SessionIndex implements ListIndex {
  readonly #slices = new Slices()
  readonly #file: IndexFile
  readonly #rows: IndexRows
  readonly #search: IndexSearch

  /** Nothing is opened before the first call. */
  constructor({ file, wholeReadBytes = defaultWholeReadBytes }: SessionIndexOptions) {
    const slices = this.#slices
    this.#file = new IndexFile(file, slices)
    this.#rows = new IndexRows({ file: this.#file, slices, wholeReadBytes })
    this.#search = new IndexSearch(this.#file, slices)
  }

  async list(source: IndexSource, query: SessionQuery): Promise<SessionPage> {
    return this.#rows.list(source, query)
  }

  async search(source: IndexSource, query: SearchQuery): Promise<SearchHit[]> {
    return this.#search.search(source, query)
  }

  /** What still runs ends by itself at its next pause. */
  close(): void {
    this.#slices.close()
    this.#file.close()
  }
}

const defaultWholeReadBytes = 32 * 1024 * 1024
