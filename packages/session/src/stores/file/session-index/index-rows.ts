import { join } from 'node:path'
import { Reading } from '../../../log/replay.ts'
import type { SessionInfo, SessionPage, SessionQuery } from '../../../state/session-info.ts'
import { SessionState } from '../../../state/session-state.ts'
import { pageOf } from '../../list-page.ts'
import { IndexError } from './index-connection.ts'
import type { Row } from './index-db.ts'
import { chunksOf, maxPendingRows, type IndexFile, type Part } from './index-file.ts'
import { isPresentIn, statLog, walk, walkStep } from './index-walk.ts'
import type { IndexSource } from './list-index.ts'
import { readInSlices, withLog } from './read-log.ts'
import { readRow, rowOf, smallLogBytes, valueOf } from './read-row.ts'
import { inParallel, type Slices } from './slices.ts'

/** List rows: updates those of changed logs and returns a page. */
export class IndexRows {
  readonly #file: IndexFile
  readonly #slices: Slices
  readonly #wholeReadBytes: number
  #completing: Promise<void> = Promise.resolve()
  readonly #toComplete = new Set<string>()

  constructor({ file, slices, wholeReadBytes }: { file: IndexFile; slices: Slices; wholeReadBytes: number }) {
    this.#file = file
    this.#slices = slices
    this.#wholeReadBytes = wholeReadBytes
  }

  async list(source: IndexSource, query: SessionQuery): Promise<SessionPage> {
    return this.#file.use({ folder: source.folder, kind: 'list' }, (part) => this.#list(source, query, part))
  }

  async #list(source: IndexSource, query: SessionQuery, part: Part | undefined): Promise<SessionPage> {
    const page = new PageBuilder(source.folder, query)
    const estimates: string[] = []
    const offer = (row: Row): void => {
      page.offer(row)
      if (row.size > smallLogBytes && valueOf(row).info.estimated) estimates.push(row.id)
    }
    const { changed, vanished } = await walk(source.folder, { part, slices: this.#slices, visit: offer })
    const saving = new Saving(part, isPresentIn(source.folder))
    for (const ids of chunksOf(vanished)) {
      saving.drop(ids)
      await this.#slices.pause()
    }
    const budget = { bytes: this.#wholeReadBytes }
    await inParallel(changed, async (log) => {
      const { row, isTrue } = await readRow(source, log, budget)
      if (!row) return
      offer(row)
      if (isTrue) saving.add(row)
      await this.#slices.pause()
    })
    saving.flush()
    if (part) this.#completeLater(source, estimates)
    return page.finish()
  }

  /** Reads logs that were too long for this call in the background, for the next list. */
  #completeLater(source: IndexSource, ids: readonly string[]): void {
    const pathOf = (id: string): string => join(source.folder, id)
    for (const id of ids.filter((each) => !this.#toComplete.has(pathOf(each)))) {
      const path = pathOf(id)
      this.#toComplete.add(path)
      this.#completing = this.#completing
        .then(() => this.#complete(source, id))
        .catch(() => {
          // The row stays an estimate; the next list retries.
        })
        .finally(() => this.#toComplete.delete(path))
    }
  }

  async #complete(source: IndexSource, id: string): Promise<void> {
    const file = statLog(source.folder, id)
    if (!file) return
    const state = new SessionState({ isWhole: true })
    await withLog(source, id, (log) =>
      readInSlices(log, { reading: new Reading(state), from: 0, slices: this.#slices }),
    )
    await this.#file.use({ folder: source.folder, kind: 'list' }, async (part) => {
      part?.db.saveRows(part.source, [rowOf(file, state)], isPresentIn(source.folder))
    })
  }
}

/** Collects rows newest first, holding little more than one page. */
class PageBuilder {
  readonly #folder: string
  readonly #query: SessionQuery & { limit: number }
  #rows: SessionInfo[] = []
  /** Rows modified before this belong to a later page. */
  #floor = ''

  constructor(folder: string, query: SessionQuery) {
    this.#folder = folder
    this.#query = { ...query, limit: query.limit ?? defaultPage }
  }

  offer(row: Row): void {
    if (row.modified < this.#floor) return
    const { id, ...info } = valueOf(row).info
    this.#rows.push({ id, path: join(this.#folder, id), ...info })
    if (this.#rows.length < 2 * (this.#query.limit + walkStep)) return
    const page = pageOf(this.#rows, { ...this.#query, limit: this.#query.limit + 1 })
    this.#rows = page.sessions
    if (page.cursor !== undefined) this.#floor = (page.sessions.at(-1) as SessionInfo).modified
  }

  finish(): SessionPage {
    return pageOf(this.#rows, this.#query)
  }
}

/** Writes rows in batches. If another process holds the index, writes nothing: the next list reads those logs again. */
class Saving {
  #part: Part | undefined
  readonly #isThere: (row: Row) => boolean
  #rows: Row[] = []

  constructor(part: Part | undefined, isThere: (row: Row) => boolean) {
    this.#part = part
    this.#isThere = isThere
  }

  drop(ids: readonly string[]): void {
    this.#write(({ db, source }) => db.dropRows(source, ids))
  }

  add(row: Row): void {
    this.#rows.push(row)
    if (this.#rows.length >= maxPendingRows) this.flush()
  }

  flush(): void {
    const rows = this.#rows
    this.#rows = []
    if (rows.length > 0) this.#write(({ db, source }) => db.saveRows(source, rows, this.#isThere))
  }

  #write(work: (part: Part) => void): void {
    if (!this.#part) return
    try {
      work(this.#part)
    } catch (error) {
      if (!(error instanceof IndexError && error.isBusy)) throw error
      this.#part = undefined
    }
  }
}

const defaultPage = 100
