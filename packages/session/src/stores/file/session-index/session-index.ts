import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../../../state/session-info.ts'
import { chunksOf, IndexFile } from './index-file.ts'
import { IndexRows } from './index-rows.ts'
import { IndexSearch } from './index-search.ts'
import type { IndexSource, ListIndex } from './list-index.ts'
import { isPresentIn } from './index-walk.ts'
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

  async purge(): Promise<void> {
    const rows = await this.#file.remove()
    // Texts are indexed again by the next search; reading all logs again for a list would take too long.
    for (const [folder, known] of rows) {
      const kept = known.filter(isPresentIn(folder))
      await this.#file.use({ folder, kind: 'list' }, async (part) => {
        for (const some of chunksOf(kept)) {
          part?.db.saveRows(part.source, some, isPresentIn(folder))
          await this.#slices.pause()
        }
      })
    }
  }

  /** Running work stops at its next pause. */
  close(): void {
    this.#slices.close()
    this.#file.close()
  }
}

const defaultWholeReadBytes = 32 * 1024 * 1024
