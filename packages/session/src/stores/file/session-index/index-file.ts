import { dirname, relative, sep } from 'node:path'
import { IndexError } from './index-connection.ts'
import { IndexDb } from './index-db.ts'
import type { Slices } from './slices.ts'

/** The rows of one source in the index. */
export interface Part {
  db: IndexDb
  source: number
}

/** Rows that one transaction takes. */
export const maxPendingRows = 200

/** Opens the index file for who needs it, and throws it away when it is broken. */
export class IndexFile {
  readonly #path: string
  readonly #slices: Slices
  #db: IndexDb | undefined

  /** Nothing is opened before the first use. */
  constructor(path: string, slices: Slices) {
    this.#path = path
    this.#slices = slices
  }

  /** A broken index is made anew once; after that, or while somebody holds it, the work is done without. */
  async use<T>(
    { folder, kind }: { folder: string; kind: 'list' | 'search' },
    work: (part: Part | undefined) => Promise<T>,
  ): Promise<T> {
    for (let attempt = 1; attempt <= 2; attempt++) {
      let db: IndexDb | undefined
      try {
        db = this.#open()
        return await work({ db, source: db.sourceNumber(this.#nameOf(folder), kind) })
      } catch (error) {
        if (!(error instanceof IndexError)) throw error
        this.#slices.throwIfClosed()
        if (error.isBusy) break
        this.#discard(db)
      }
    }
    return work(undefined)
  }

  close(): void {
    this.#db?.close()
  }

  #open(): IndexDb {
    this.#slices.throwIfClosed()
    if (this.#db?.isInPlace) return this.#db
    this.#db?.close()
    this.#db = undefined
    this.#db = IndexDb.open(this.#path)
    return this.#db
  }

  #discard(db: IndexDb | undefined): void {
    // Another call in this process was quicker.
    if (db !== this.#db) return
    this.#db = undefined
    try {
      db?.close()
      // A file that took the place of ours is somebody else's new one.
      if (!db || db.isInPlace) IndexDb.remove(this.#path)
    } catch {
      // Opening it again will tell.
    }
  }

  /** Relative, so that the rows stay true when the whole root is moved. */
  #nameOf(folder: string): string {
    return relative(dirname(this.#path), folder).split(sep).join('/')
  }
}

export function* chunksOf(ids: readonly string[]): Iterable<string[]> {
  for (let from = 0; from < ids.length; from += maxPendingRows) yield ids.slice(from, from + maxPendingRows)
}
