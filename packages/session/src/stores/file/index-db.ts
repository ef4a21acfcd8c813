import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { crc32 } from '#crc32'
import type { Position } from '../../line.ts'
import { indexedPrefixes, quote, type Terms } from './search-text.ts'

/** The index of a root. Its name carries the schema, so an older build keeps its own. */
export function indexFileIn(root: string): string {
  return join(root, `index-${schemaNumber}.sqlite`)
}

/** More words than this are not named one by one in a question. */
export const maxNamedTerms = 512

/** Thrown by everything the index is asked. A busy one is left alone, any other is thrown away and made anew. */
export class IndexError extends Error {
  readonly isBusy: boolean

  constructor(cause: unknown) {
    super('The index cannot be used.', { cause })
    this.isBusy = isLeftAlone(cause)
  }
}

/** What the index remembers of one log, and which state of the file it is true for. */
export interface Row {
  id: string
  inode: number
  size: number
  mtimeMs: number
  /** What rows are sorted by; empty where they are not. */
  modified: string
  /** JSON. */
  value: string
}

export interface Document extends Position {
  seq: number
  /** Of the entry, since 1970. */
  ms: number
  terms: Terms
}

/** The documents of one log that are not in the index yet, and the row that says they are. */
export interface Addition {
  row: Row
  /** The value of the row that the caller knows; if it is another one by now, somebody else was quicker. */
  known: string | undefined
  /** False begins the log anew. */
  isContinued: boolean
  documents: Document[]
}

export interface Candidate extends Position {
  rowid: number
  id: string
  seq: number
  ms: number
  /** No document that was indexed before this one is newer. */
  reachMs: number
}

/**
 * The SQL of the index. It holds nothing that cannot be read from the logs again: rows carry a checksum and are left out if it
 * is wrong, and documents only say where to look.
 */
export class IndexDb {
  readonly #file: string
  readonly #db: DatabaseSync
  readonly #inode: number
  readonly #statements = new Map<string, StatementSync>()
  /** Words that one source has for certain; asking for each word of each entry would take most of the time. */
  #knownTerms = { source: 0, words: new Set<string>() }

  #stretches = { source: 0, ends: [] as string[], learntSince: 0 }

  private constructor(file: string, db: DatabaseSync) {
    this.#file = file
    this.#db = db
    this.#inode = statSync(file).ino
  }

  static open(file: string): IndexDb {
    return guarded(() => {
      // Files that belong to this one get its mode from SQLite.
      if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
      const db = new DatabaseSync(file, { timeout: busyTimeoutMs })
      try {
        prepareSchema(db)
        return new IndexDb(file, db)
      } catch (error) {
        db.close()
        throw error
      }
    })
  }

  /** Removes the file, whatever it is. What lies beside it goes first, so that it never meets a new one. */
  static remove(file: string): void {
    guarded(() => {
      for (const ending of ['-journal', '-wal', '-shm', ''])
        rmSync(`${file}${ending}`, { force: true, recursive: true })
    })
  }

  /** False where the file was deleted or replaced since. */
  get isInPlace(): boolean {
    return statSync(this.#file, { throwIfNoEntry: false })?.ino === this.#inode
  }

  /** Changes when another connection has written. */
  get version(): number {
    return guarded(() => {
      const [[version]] = this.#all('PRAGMA data_version') as [[number]]
      return version
    })
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  /** The number of a folder and of what is remembered about its logs. */
  sourceNumber(folder: string, kind: 'list' | 'search'): number {
    return guarded(() => {
      const find = (): number | undefined =>
        this.#all('SELECT number FROM source WHERE folder = ? AND kind = ?', folder, kind)[0]?.[0] as number | undefined
      const found = find()
      if (found !== undefined) return found
      this.#run('INSERT OR IGNORE INTO source (folder, kind) VALUES (?, ?)', folder, kind)
      return find() as number
    })
  }

  /** The rows after one id and through another, by id. */
  rowsBetween(source: number, range: { after: string; through: string }): Map<string, Row> {
    return guarded(() => this.#rowsWhere('source = ? AND id > ? AND id <= ?', source, range.after, range.through))
  }

  row(source: number, id: string): Row | undefined {
    return guarded(() => this.#rowsWhere('source = ? AND id = ?', source, id).get(id))
  }

  saveRows(source: number, rows: readonly Row[]): void {
    this.#transaction(() => {
      for (const row of rows) this.#saveRow(source, row)
    })
  }

  dropRows(source: number, ids: readonly string[]): void {
    this.#transaction(() => {
      for (const id of ids) this.#dropRow(source, id)
    })
  }

  /** Drops the rows and the documents of logs. True where all documents had to go, of all sources, to be indexed again. */
  dropDocuments(source: number, ids: readonly string[]): boolean {
    return this.#transaction(() => {
      for (const id of ids) {
        this.#dropRow(source, id)
        this.#retire(source, id)
      }
      return this.#startAgainIfMostlyRetired()
    })
  }

  /** All or nothing. What another process has added in the meantime is left as it is. */
  addDocuments(source: number, additions: readonly Addition[]): void {
    this.#transaction(() => {
      for (const { row, known, isContinued, documents } of additions) {
        if (this.row(source, row.id)?.value !== known) continue
        if (!isContinued) this.#retire(source, row.id)
        for (let from = 0; from < documents.length; from += maxBatchLength)
          this.#addBatch(source, row.id, documents.slice(from, from + maxBatchLength))
        this.#saveRow(source, row)
      }
    })
  }

  /** One step of putting parts of the full-text index together; false when there is nothing to do. */
  tidy(): boolean {
    return this.#merge(mergePages)
  }

  /** Whether so many parts have piled up that searching takes long; then all of them begin to become one, by `tidy`. */
  beginCompacting(): boolean {
    return guarded(() => {
      const [[parts]] = this.#all('SELECT count(DISTINCT segid) FROM text_idx') as [[number]]
      if (parts <= maxParts) return false
      return this.#merge(-mergePages)
    })
  }

  /**
   * The words that have a part inside, the shortest ones of each stretch of the vocabulary. One more than `maxNamedTerms` says
   * that there are too many.
   */
  *termsWith(source: number, part: string): Iterable<string[]> {
    const ends = guarded(() => this.#stretchesOf(source))
    for (const [index, through] of ends.entries()) {
      const after = ends[index - 1] ?? ''
      yield guarded(() => {
        const terms = this.#all(
          `SELECT term FROM term WHERE source = ? AND term > ? AND term <= ? AND instr(term, ?) > 0
           ORDER BY length(term) LIMIT ${maxNamedTerms + 1}`,
          source,
          after,
          through,
          part,
        )
        return terms.map(([term]) => term as string)
      })
    }
  }

  /** Where the vocabulary is cut. Finding that out takes as long as looking through it, so it is remembered. */
  #stretchesOf(source: number): string[] {
    const { source: known, ends: knownEnds, learntSince } = this.#stretches
    if (known === source && learntSince < termStretch) return knownEnds
    const ends: string[] = []
    for (let end: string | undefined = ''; end !== undefined;) {
      const [next] = this.#all(
        'SELECT term FROM term WHERE source = ? AND term > ? ORDER BY term LIMIT 1 OFFSET ?',
        source,
        end,
        termStretch,
      ) as [string][]
      end = next?.[0]
      ends.push(end ?? afterAllTerms)
    }
    this.#stretches = { source, ends, learntSince: 0 }
    return ends
  }

  /** Where the entries that fit may be, those that were indexed last first. */
  *candidates(source: number, expression: string, below: number): Iterable<Candidate> {
    try {
      yield* this.#candidates(source, expression, below)
    } catch (error) {
      throw asIndexError(error)
    }
  }

  *#candidates(source: number, expression: string, below: number): Iterable<Candidate> {
    const matches = this.#prepare('SELECT rowid FROM text WHERE text MATCH ? AND rowid < ? ORDER BY rowid DESC')
    let batch: Batch | undefined
    const question = [quote(sourceTerm(source)), ...(expression === '' ? [] : [expression])].join(' AND ')
    for (const [rowid] of matches.iterate(question, below) as Iterable<unknown> as Iterable<[number]>) {
      if (batch === undefined || rowid < batch.base) batch = this.#batchAt(rowid)
      const place = batch?.source === source ? batch.places[rowid - batch.base] : undefined
      if (batch && place) yield { ...place, rowid, id: batch.id, reachMs: batch.reachMs }
    }
  }

  #batchAt(rowid: number): Batch | undefined {
    const [found] = this.#all(
      'SELECT base, source, id, reach_ms, places FROM batch WHERE base <= ? ORDER BY base DESC LIMIT 1',
      rowid,
    ) as [number, number, string, number, string][]
    if (!found) return undefined
    const [base, source, id, reachMs, places] = found
    return { base, source, id, reachMs, places: unpackPlaces(JSON.parse(places) as number[]) }
  }

  #addBatch(source: number, id: string, documents: Document[]): void {
    const [last] = this.#all('SELECT base + count, reach_ms FROM batch ORDER BY base DESC LIMIT 1') as [
      number,
      number,
    ][]
    const [base, reachMs] = last ?? [1, 0]
    const insert = this.#prepare('INSERT INTO text (rowid, words) VALUES (?, ?)')
    for (const [index, { terms }] of documents.entries()) {
      insert.run(base + index, [sourceTerm(source), ...terms.words, ...terms.pairs].join(' '))
      this.#learnTerms(source, terms.words)
    }
    this.#run(
      'INSERT INTO batch (base, source, id, count, reach_ms, places) VALUES (?, ?, ?, ?, ?, ?)',
      base,
      source,
      id,
      documents.length,
      Math.max(reachMs, ...documents.map(({ ms }) => ms)),
      JSON.stringify(packPlaces(documents)),
    )
  }

  #learnTerms(source: number, words: ReadonlySet<string>): void {
    if (this.#knownTerms.source !== source || this.#knownTerms.words.size > maxKnownTerms) this.#forgetTerms(source)
    const known = this.#knownTerms.words
    for (const word of words) {
      if (known.has(word)) continue
      this.#run('INSERT OR IGNORE INTO term (source, term) VALUES (?, ?)', source, word)
      known.add(word)
      this.#stretches.learntSince++
    }
  }

  #forgetTerms(source = 0): void {
    this.#knownTerms = { source, words: new Set() }
  }

  /** The documents of a log stay in the full-text index, where they cannot be found one by one; nothing leads to them any more. */
  #retire(source: number, id: string): void {
    this.#run(`UPDATE batch SET id = '', places = '[]' WHERE source = ? AND id = ?`, source, id)
  }

  #startAgainIfMostlyRetired(): boolean {
    const [[retired, all]] = this.#all(`SELECT total(count) FILTER (WHERE id = ''), total(count) FROM batch`) as [
      [number, number],
    ]
    if (retired < minRetired || retired * 2 < all) return false
    this.#db.exec(`
      INSERT INTO text (text) VALUES ('delete-all');
      DELETE FROM batch;
      DELETE FROM term;
      DELETE FROM log WHERE source IN (SELECT number FROM source WHERE kind = 'search');
    `)
    this.#forgetTerms()
    return true
  }

  #rowsWhere(condition: string, ...values: SQLInputValue[]): Map<string, Row> {
    const rows = this.#all(
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
    this.#run('DELETE FROM log WHERE source = ? AND id = ?', source, id)
  }

  #saveRow(source: number, row: Row): void {
    this.#run(
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
    return guarded(() => {
      this.#db.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        this.#db.exec('COMMIT')
        return result
      } catch (error) {
        this.#forgetTerms()
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
        throw error
      }
    })
  }

  #merge(pages: number): boolean {
    return guarded(() => {
      const before = this.#changes()
      this.#db.exec(`INSERT INTO text (text, rank) VALUES ('merge', ${pages})`)
      return this.#changes() - before >= 2
    })
  }

  #changes(): number {
    const [[changes]] = this.#all('SELECT total_changes()') as [[number]]
    return changes
  }

  #all(sql: string, ...values: SQLInputValue[]): unknown[][] {
    return this.#prepare(sql).all(...values) as unknown as unknown[][]
  }

  #run(sql: string, ...values: SQLInputValue[]): void {
    this.#prepare(sql).run(...values)
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#db.prepare(sql)
    statement.setReturnArrays(true)
    this.#statements.set(sql, statement)
    return statement
  }
}

const schemaNumber = 1
/** SQLite waits in the thread that asks; longer than this nobody should. */
const busyTimeoutMs = 40
const maxBatchLength = 256
const maxParts = 16
/** Pages that one step of merging writes: some milliseconds. */
const mergePages = 10
const termStretch = 20_000
const afterAllTerms = '\u{10ffff}'
const maxKnownTerms = 200_000
/** Fewer documents than this are not worth starting again for. */
const minRetired = 10_000

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

/** No sync: after a power cut the index may be broken, and is made anew. A killed process leaves it whole. */
function prepareSchema(db: DatabaseSync): void {
  db.exec('PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = OFF')
  const version = db.prepare('PRAGMA user_version').get()?.['user_version']
  if (version === schemaNumber) return
  if (version !== 0) throw new Error(`An index of schema ${String(version)} is not ours.`)
  db.exec(`BEGIN IMMEDIATE; ${schema} COMMIT`)
}

function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw asIndexError(error)
  }
}

function asIndexError(error: unknown): IndexError {
  return error instanceof IndexError ? error : new IndexError(error)
}

/** Busy, locked, or no room: throwing the index away would not help. */
function isLeftAlone(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode ?? 0
  return [5, 6, 13].includes(code & 0xff)
}

function sealOf({ id, inode, size, mtimeMs, modified, value }: Row): number {
  return crc32(`${id}\n${inode}\n${size}\n${mtimeMs}\n${modified}\n${value}`)
}

/** A private character, which no word has, in front of the number: one full-text index serves all sources. */
function sourceTerm(source: number): string {
  return `\ue000${source}`
}

type Placed = Position & { seq: number; ms: number }

interface Batch {
  base: number
  source: number
  id: string
  reachMs: number
  places: Placed[]
}

/** Four numbers for each document, three of them as the difference to the one before. */
function packPlaces(places: readonly Placed[]): number[] {
  let last = { seq: 0, at: 0, ms: 0 }
  return places.flatMap(({ seq, at, size, ms }) => {
    const packed = [seq - last.seq, at - last.at, size, ms - last.ms]
    last = { seq, at, ms }
    return packed
  })
}

function unpackPlaces(packed: readonly number[]): Placed[] {
  const places: Placed[] = []
  let last: Placed = { seq: 0, at: 0, size: 0, ms: 0 }
  for (let index = 0; index < packed.length; index += 4) {
    const [seq, at, size, ms] = packed.slice(index, index + 4) as [number, number, number, number]
    last = { seq: last.seq + seq, at: last.at + at, size, ms: last.ms + ms }
    places.push(last)
  }
  return places
}
