import { statSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

/** Thrown by every operation of the index. A busy index is kept; for any other error it is deleted and rebuilt. */
export class IndexError extends Error {
  readonly isBusy: boolean

  constructor(cause: unknown) {
    super('The index cannot be used.', { cause })
    this.isBusy = isLeftAlone(cause)
  }
}

/** The open index file, with prepared statements and transactions. */
export class IndexConnection {
  readonly #file: string
  readonly #db: DatabaseSync
  readonly #inode: number
  readonly #statements = new Map<string, StatementSync>()

  private constructor(file: string, db: DatabaseSync) {
    this.#file = file
    this.#db = db
    this.#inode = statSync(file).ino
  }

  static open(file: string, prepareSchema: (db: DatabaseSync) => void): IndexConnection {
    const db = new DatabaseSync(file, { timeout: busyTimeoutMs })
    try {
      prepareSchema(db)
      return new IndexConnection(file, db)
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** False if the file was deleted or replaced since it was opened. */
  get isInPlace(): boolean {
    return statSync(this.#file, { throwIfNoEntry: false })?.ino === this.#inode
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  all(sql: string, ...values: SQLInputValue[]): unknown[][] {
    return this.prepare(sql).all(...values) as unknown as unknown[][]
  }

  run(sql: string, ...values: SQLInputValue[]): void {
    this.prepare(sql).run(...values)
  }

  prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#db.prepare(sql)
    statement.setReturnArrays(true)
    this.#statements.set(sql, statement)
    return statement
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  /** All or nothing. `onFailure` is called before the rollback. */
  transaction<T>(work: () => T, onFailure: () => void): T {
    return guarded(() => {
      this.#db.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        this.#db.exec('COMMIT')
        return result
      } catch (error) {
        onFailure()
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
        throw error
      }
    })
  }
}

export function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw asIndexError(error)
  }
}

export function asIndexError(error: unknown): IndexError {
  return error instanceof IndexError ? error : new IndexError(error)
}

/** SQLite blocks the calling thread while it waits, so the limit is short. */
const busyTimeoutMs = 40

/** Busy, locked, or disk full: rebuilding the index would not help. */
function isLeftAlone(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode ?? 0
  return [5, 6, 13].includes(code & 0xff)
}
