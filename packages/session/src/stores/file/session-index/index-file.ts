import { existsSync, rmSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { IndexError } from './index-connection.ts'
import { IndexDb, otherIndexFiles, type Row } from './index-db.ts'
import type { Slices } from './slices.ts'

/** The rows of one source in the index. */
export interface Part {
  db: IndexDb
  source: number
}

/** Maximum number of rows in one transaction. */
export const maxPendingRows = 200

/** Opens the index file on demand, and rebuilds it when it is broken. */
export class IndexFile {
  readonly #path: string
  readonly #slices: Slices
  #db: IndexDb | undefined

  /** Opens nothing until the first use. */
  constructor(path: string, slices: Slices) {
    this.#path = path
    this.#slices = slices
  }

  /** Rebuilds a broken index once. If that fails, or another process holds the index, runs the work without it. */
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

  /**
   * Deletes the index, and those of other builds. Returns its list rows by folder; none if it was broken. Rejects
   * with an `IndexError` if other processes keep using it.
   */
  async remove(): Promise<Map<string, Row[]>> {
    const until = Date.now() + removalPatienceMs
    for (;;) {
      try {
        return this.#remove()
      } catch (error) {
        if (!(error instanceof IndexError && error.isBusy) || Date.now() > until) throw error
        await delay(removalRetryMs)
      }
    }
  }

  close(): void {
    this.#db?.close()
  }

  #remove(): Map<string, Row[]> {
    for (const other of otherIndexFiles(this.#path)) rmSync(other, { force: true })
    if (!existsSync(this.#path)) {
      IndexDb.remove(this.#path)
      return new Map()
    }
    try {
      const db = this.#open()
      const rows = db.takeAway()
      this.#db = undefined
      return new Map([...rows].map(([name, each]) => [resolve(dirname(this.#path), name), each]))
    } catch (error) {
      if (!(error instanceof IndexError) || error.isBusy) throw error
      this.#db?.close()
      this.#db = undefined
      IndexDb.remove(this.#path)
      return new Map()
    }
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
    // Another call in this process replaced it first.
    if (db !== this.#db) return
    this.#db = undefined
    try {
      db?.close()
      // A file that replaced ours is another process's new index.
      if (!db || db.isInPlace) IndexDb.remove(this.#path)
    } catch {
      // Reopening it will show the error.
    }
  }

  /** Relative, so that rows stay valid when the root is moved. */
  #nameOf(folder: string): string {
    return relative(dirname(this.#path), folder).split(sep).join('/')
  }
}

export function* chunksOf<T>(items: readonly T[]): Iterable<T[]> {
  for (let from = 0; from < items.length; from += maxPendingRows) yield items.slice(from, from + maxPendingRows)
}

/** How long `remove` waits for transactions of other processes. */
const removalPatienceMs = 10_000
const removalRetryMs = 20
