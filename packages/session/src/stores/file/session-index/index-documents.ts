import type { Position } from '../../../line/line.ts'
import { asIndexError, guarded, type IndexConnection } from './index-connection.ts'
import type { IndexTerms } from './index-terms.ts'
import { quote, type Terms } from './search-text.ts'

export interface Document extends Position {
  seq: number
  /** Time of the entry, in milliseconds since 1970. */
  ms: number
  terms: Terms
}

export interface Candidate extends Position {
  rowid: number
  id: string
  seq: number
  ms: number
  /** No document indexed before this one is newer. */
  reachMs: number
}

/** The full-text index. Documents are stored in batches, each from one log, and only tell where to look. */
export class IndexDocuments {
  readonly #connection: IndexConnection
  readonly #terms: IndexTerms

  constructor(connection: IndexConnection, terms: IndexTerms) {
    this.#connection = connection
    this.#terms = terms
  }

  add(source: number, id: string, documents: readonly Document[]): void {
    for (let from = 0; from < documents.length; from += maxBatchLength)
      this.#addBatch(source, id, documents.slice(from, from + maxBatchLength))
  }

  /** Detaches the documents of a log. They stay in the full-text index, where single documents cannot be found. */
  retire(source: number, id: string): void {
    this.#connection.run(`UPDATE batch SET id = '', places = '[]' WHERE source = ? AND id = ?`, source, id)
  }

  /** Returns true if the documents of all sources were dropped and must be indexed again. */
  startAgainIfMostlyRetired(): boolean {
    const [[retired, all]] = this.#connection.all(
      `SELECT total(count) FILTER (WHERE id = ''), total(count) FROM batch`,
    ) as [[number, number]]
    if (retired < minRetired || retired * 2 < all) return false
    this.#connection.exec(`
      INSERT INTO text (text) VALUES ('delete-all');
      DELETE FROM batch;
      DELETE FROM term;
      DELETE FROM log WHERE source IN (SELECT number FROM source WHERE kind = 'search');
    `)
    this.#terms.forget()
    return true
  }

  tidy(): boolean {
    return this.#merge(mergePages)
  }

  beginCompacting(): boolean {
    return guarded(() => {
      const [[parts]] = this.#connection.all('SELECT count(DISTINCT segid) FROM text_idx') as [[number]]
      if (parts <= maxParts) return false
      return this.#merge(-mergePages)
    })
  }

  *candidates(source: number, expression: string, below: number): Iterable<Candidate> {
    try {
      yield* this.#candidates(source, expression, below)
    } catch (error) {
      throw asIndexError(error)
    }
  }

  *#candidates(source: number, expression: string, below: number): Iterable<Candidate> {
    const matches = this.#connection.prepare(
      'SELECT rowid FROM text WHERE text MATCH ? AND rowid < ? ORDER BY rowid DESC',
    )
    let batch: Batch | undefined
    const question = [quote(sourceTerm(source)), ...(expression === '' ? [] : [expression])].join(' AND ')
    for (const [rowid] of matches.iterate(question, below) as Iterable<unknown> as Iterable<[number]>) {
      if (batch === undefined || rowid < batch.base) batch = this.#batchAt(rowid)
      const place = batch?.source === source ? batch.places[rowid - batch.base] : undefined
      if (batch && place) yield { ...place, rowid, id: batch.id, reachMs: batch.reachMs }
    }
  }

  #batchAt(rowid: number): Batch | undefined {
    const [found] = this.#connection.all(
      'SELECT base, source, id, reach_ms, places FROM batch WHERE base <= ? ORDER BY base DESC LIMIT 1',
      rowid,
    ) as [number, number, string, number, string][]
    if (!found) return undefined
    const [base, source, id, reachMs, places] = found
    return { base, source, id, reachMs, places: unpackPlaces(JSON.parse(places) as number[]) }
  }

  #addBatch(source: number, id: string, documents: Document[]): void {
    const [last] = this.#connection.all('SELECT base + count, reach_ms FROM batch ORDER BY base DESC LIMIT 1') as [
      number,
      number,
    ][]
    const [base, reachMs] = last ?? [1, 0]
    const insert = this.#connection.prepare('INSERT INTO text (rowid, words) VALUES (?, ?)')
    for (const [index, { terms }] of documents.entries()) {
      insert.run(base + index, [sourceTerm(source), ...terms.words, ...terms.pairs].join(' '))
      this.#terms.learn(source, terms.words)
    }
    this.#connection.run(
      'INSERT INTO batch (base, source, id, count, reach_ms, places) VALUES (?, ?, ?, ?, ?, ?)',
      base,
      source,
      id,
      documents.length,
      Math.max(reachMs, ...documents.map(({ ms }) => ms)),
      JSON.stringify(packPlaces(documents)),
    )
  }

  #merge(pages: number): boolean {
    return guarded(() => {
      const before = this.#changes()
      this.#connection.exec(`INSERT INTO text (text, rank) VALUES ('merge', ${pages})`)
      return this.#changes() - before >= 2
    })
  }

  #changes(): number {
    const [[changes]] = this.#connection.all('SELECT total_changes()') as [[number]]
    return changes
  }
}

const maxBatchLength = 256
const maxParts = 16
/** Pages written by one merge step: a few milliseconds. */
const mergePages = 10
/** With fewer retired documents than this, starting over is not worthwhile. */
const minRetired = 10_000

type Placed = Position & { seq: number; ms: number }

interface Batch {
  base: number
  source: number
  id: string
  reachMs: number
  places: Placed[]
}

/** Prefixes the source with a private-use character, which no word has: one full-text index serves all sources. */
function sourceTerm(source: number): string {
  return `\ue000${source}`
}

/** Four numbers for each document, three of them as differences to the previous document. */
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
