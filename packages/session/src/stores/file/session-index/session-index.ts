import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../../../state/session-info.ts'
import { IndexFile } from './index-file.ts'
import { IndexRows } from './index-rows.ts'
import { IndexSearch } from './index-search.ts'
import type { IndexSource, ListIndex } from './list-index.ts'
import { Slices } from './slices.ts'

export interface SessionIndexOptions {
  /** See `indexFileIn`. */
  file: string
  /** How many bytes of long logs one list reads completely; others are estimated from their start and end first. */
  wholeReadBytes?: number
}

/**
 * List and search over all sessions of a root. The logs are authoritative: every call compares each log's
 * inode, size and time, reads those that changed, and uses the index file for the others. A missing, broken or
 * locked index only costs time.
 */
export class SessionIndex implements ListIndex {
  readonly #slices = new Slices()
  readonly #file: IndexFile
  readonly #rows: IndexRows
  readonly #search: IndexSearch

  /** Opens nothing until the first call. */
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

  /** Running work stops at its next pause. */
  close(): void {
    this.#slices.close()
    this.#file.close()
  }
}

const defaultWholeReadBytes = 32 * 1024 * 1024
