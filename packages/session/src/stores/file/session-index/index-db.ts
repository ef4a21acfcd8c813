import { closeSync, existsSync, lstatSync, openSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { crc32 } from '#crc32'
import { guarded, IndexConnection } from './index-connection.ts'
import { IndexDocuments, type Candidate, type Document } from './index-documents.ts'
import { IndexTerms } from './index-terms.ts'
import { indexedPrefixes } from './search-text.ts'

/** Path of a root's index. The name includes the schema version, so older builds keep their own. */
export function indexFileIn(root: string): string {
  return join(root, `index-${schemaNumber}.sqlite`)
}

/** The index files of other builds in the folder of an index, with their companion files. */
export function otherIndexFiles(file: string): string[] {
  const folder = dirname(file)
  const isOther = (name: string): boolean => indexName.test(name) && !name.startsWith(basename(file))
  return readdirSync(folder)
    .filter(isOther)
    .map((name) => join(folder, name))
}

const indexName = /^index-\d+\.sqlite(-journal|-wal|-shm)?$/

/** What the index stores about one log, and the state of the file for which it is valid. */
export interface Row {
  id: string
  inode: number
  size: number
  mtimeMs: number
  /** Sort key of rows; empty if they are not sorted. */
  modified: string
  /** JSON. */
  value: string
}

/** New documents of one log, and the row that marks them as indexed. */
export interface Addition {
  row: Row
  /** The row's value as the caller read it; if it differs now, another process updated it first. */
  known: string | undefined
  /** False replaces the documents of the log. */
  isContinued: boolean
  documents: Document[]
}

/**
 * The SQL of the index. Everything in it can be rebuilt from the logs. Rows with a wrong checksum are ignored,
 * and documents only tell where to look.
 */
export class IndexDb {
  readonly #file: string
  readonly #connection: IndexConnection
  readonly #terms: IndexTerms
  readonly #documents: IndexDocuments

  private constructor(file: string, connection: IndexConnection) {
    this.#file = file
    this.#connection = connection
    this.#terms = new IndexTerms(connection)
    this.#documents = new IndexDocuments(connection, this.#terms)
  }

  static open(file: string): IndexDb {
    return guarded(() => {
      // SQLite gives its companion files the mode of this one.
      if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
      requireFiles(file)
      return new IndexDb(file, IndexConnection.open(file, prepareSchema))
    })
  }

  /** Removes the file, whatever it is. Companion files go first, so that they never meet a new index. */
  static remove(file: string): void {
    guarded(() => {
      for (const ending of endings) rmSync(`${file}${ending}`, { force: true, recursive: true })
    })
  }

  /**
   * Deletes the file while no other connection is inside a transaction, and returns its list rows by folder. A
   * later transaction of another connection fails, because its file has moved, and leaves no journal behind. The
   * connection is closed. Deleting beats cleaning: it needs no journal, which would contain the text again.
   */
  takeAway(): Map<string, Row[]> {
    return guarded(() => {
      this.#connection.exec('BEGIN EXCLUSIVE')
      const rows = this.#listRows()
      IndexDb.remove(this.#file)
      this.#connection.close()
      return rows
    })
  }

  /** False if the file was deleted or replaced since it was opened. */
  get isInPlace(): boolean {
    return this.#connection.isInPlace
  }

  /** Changes when another connection has written. */
  get version(): number {
    return guarded(() => {
      const [[version]] = this.#connection.all('PRAGMA data_version') as [[number]]
      return version
    })
  }

  close(): void {
    this.#connection.close()
  }

  /** The id of a folder and kind in the `source` table. */
  sourceNumber(folder: string, kind: 'list' | 'search'): number {
    return guarded(() => {
      const find = (): number | undefined =>
        this.#connection.all('SELECT number FROM source WHERE folder = ? AND kind = ?', folder, kind)[0]?.[0] as
          | number
          | undefined
      const found = find()
      if (found !== undefined) return found
      this.#connection.run('INSERT OR IGNORE INTO source (folder, kind) VALUES (?, ?)', folder, kind)
      return find() as number
    })
  }

  /** The rows with ids in (after, through], ordered by id. */
  rowsBetween(source: number, range: { after: string; through: string }): Map<string, Row> {
    return guarded(() => this.#rowsWhere('source = ? AND id > ? AND id <= ?', source, range.after, range.through))
  }

  row(source: number, id: string): Row | undefined {
    return guarded(() => this.#rowsWhere('source = ? AND id = ?', source, id).get(id))
  }

  /** Skips logs that are gone: checked in the transaction, so that an erased one never returns. */
  saveRows(source: number, rows: readonly Row[], isThere: (row: Row) => boolean = () => true): void {
    this.#transaction(() => {
      for (const row of rows) if (isThere(row)) this.#saveRow(source, row)
    })
  }

  dropRows(source: number, ids: readonly string[]): void {
    this.#transaction(() => {
      for (const id of ids) this.#dropRow(source, id)
    })
  }

  /**
   * Drops the rows and documents of logs. Returns true if the documents of all sources were dropped and must be
   * indexed again.
   */
  dropDocuments(source: number, ids: readonly string[]): boolean {
    return this.#transaction(() => {
      for (const id of ids) {
        this.#dropRow(source, id)
        this.#documents.retire(source, id)
      }
      return this.#documents.startAgainIfMostlyRetired()
    })
  }

  /** All or nothing. Skips logs that another process updated in the meantime, and logs that are gone, like `saveRows`. */
  addDocuments(source: number, additions: readonly Addition[], isThere: (row: Row) => boolean = () => true): void {
    this.#transaction(() => {
      for (const { row, known, isContinued, documents } of additions) {
        if (this.row(source, row.id)?.value !== known || !isThere(row)) continue
        if (!isContinued) this.#documents.retire(source, row.id)
        this.#documents.add(source, row.id, documents)
        this.#saveRow(source, row)
      }
    })
  }

  /** Merges segments of the full-text index in one short step; false when there is nothing to merge. */
  tidy(): boolean {
    return this.#documents.tidy()
  }

  /** Starts merging if there are so many segments that searches become slow; `tidy` continues it. */
  beginCompacting(): boolean {
    return this.#documents.beginCompacting()
  }

  /**
   * Terms that contain a part, the shortest ones of each range of the vocabulary. `maxNamedTerms` plus one
   * means that there are too many.
   */
  termsWith(source: number, part: string): Iterable<string[]> {
    return this.#terms.with(source, part)
  }

  /** Positions of entries that may match, most recently indexed first. */
  candidates(source: number, expression: string, below: number): Iterable<Candidate> {
    return this.#documents.candidates(source, expression, below)
  }

  #listRows(): Map<string, Row[]> {
    const sources = this.#connection.all(`SELECT number, folder FROM source WHERE kind = 'list'`) as [number, string][]
    return new Map(
      sources.map(([number, folder]) => [folder, [...this.#rowsWhere('source = ?', number).values()]] as const),
    )
  }

  #rowsWhere(condition: string, ...values: SQLInputValue[]): Map<string, Row> {
    const rows = this.#connection.all(
      `SELECT id, inode, size, mtime_ms, modified, value, seal FROM log WHERE ${condition}`,
      ...values,
    ) as [string, number, number, number, string, string, number][]
    const intact = new Map<string, Row>()
    for (const [id, inode, size, mtimeMs, modified, value, seal] of rows) {
      const row = { id, inode, size, mtimeMs, modified, value }
      if (sealOf(row) === seal) intact.set(id, row)
    }
    return intact
  }

  #dropRow(source: number, id: string): void {
    this.#connection.run('DELETE FROM log WHERE source = ? AND id = ?', source, id)
  }

  #saveRow(source: number, row: Row): void {
    this.#connection.run(
      'INSERT OR REPLACE INTO log (source, id, inode, size, mtime_ms, modified, value, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      source,
      row.id,
      row.inode,
      row.size,
      row.mtimeMs,
      row.modified,
      row.value,
      sealOf(row),
    )
  }

  #transaction<T>(work: () => T): T {
    return this.#connection.transaction(work, () => this.#terms.forget())
  }
}

/** SQLite would block forever on a pipe. */
function requireFiles(file: string): void {
  for (const ending of endings) {
    const isFile = lstatSync(`${file}${ending}`, { throwIfNoEntry: false })?.isFile() ?? true
    if (!isFile) throw new Error(`${file}${ending} is not a regular file.`)
  }
}

/** Suffixes of SQLite's companion files, and of the file itself. */
const endings = ['-journal', '-wal', '-shm', '']

const schemaNumber = 1

const schema = `
  CREATE TABLE IF NOT EXISTS source (number INTEGER PRIMARY KEY, folder TEXT, kind TEXT, UNIQUE (folder, kind));
  CREATE TABLE IF NOT EXISTS log (
    source INTEGER, id TEXT, inode REAL, size REAL, mtime_ms REAL, modified TEXT, value TEXT, seal INTEGER,
    PRIMARY KEY (source, id)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS batch (
    base INTEGER PRIMARY KEY, source INTEGER, id TEXT, count INTEGER, reach_ms REAL, places TEXT
  );
  CREATE INDEX IF NOT EXISTS batch_of_log ON batch (source, id);
  CREATE TABLE IF NOT EXISTS term (source INTEGER, term TEXT, PRIMARY KEY (source, term)) WITHOUT ROWID;
  CREATE VIRTUAL TABLE IF NOT EXISTS text USING fts5 (
    words, content = '', detail = none, columnsize = 0, prefix = '${indexedPrefixes.join(' ')}', tokenize = 'ascii'
  );
  INSERT INTO text (text, rank) VALUES ('automerge', 0);
  INSERT INTO text (text, rank) VALUES ('crisismerge', 1000);
  PRAGMA user_version = ${schemaNumber};
`

/** Skips syncs: after a power cut the index may be broken and is rebuilt. A killed process leaves it intact. */
function prepareSchema(db: DatabaseSync): void {
  db.exec('PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF')
  const version = db.prepare('PRAGMA user_version').get()?.['user_version']
  if (version === schemaNumber) return
  if (version !== 0) throw new Error(`An index of schema ${String(version)} is not ours.`)
  db.exec(`BEGIN IMMEDIATE; ${schema} COMMIT`)
}

function sealOf({ id, inode, size, mtimeMs, modified, value }: Row): number {
  return crc32(`${id}\n${inode}\n${size}\n${mtimeMs}\n${modified}\n${value}`)
}
