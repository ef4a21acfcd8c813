import { lstatSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { readCheckpoint } from '../../checkpoint.ts'
import { payloadOf } from '../../codec.ts'
import { SessionError } from '../../errors.ts'
import { isId } from '../../ids.ts'
import type { DiskLine } from '../../line.ts'
import type { ReadableLog } from '../../log-store.ts'
import { textOfLine } from '../../message-text.ts'
import { parseLine } from '../../parse-line.ts'
import { Reading, replay, type ReplayedLine } from '../../replay.ts'
import { sessionInfoOf } from '../../session-info.ts'
import type { SearchHit, SearchQuery, SessionInfo, SessionPage, SessionQuery } from '../../session-list.ts'
import { SessionState, type Placed } from '../../session-state.ts'
import { UnreadError } from '../../tree.ts'
import { pageOf } from '../list-page.ts'
import {
  IndexDb,
  IndexError,
  maxNamedTerms,
  type Addition,
  type Candidate,
  type Document,
  type Row,
} from './index-db.ts'
import type { IndexSource, ListIndex } from './list-index.ts'
import { logName } from './log-paths.ts'
import { findWords, fold, matchExpression, termsOf, wordsOf, type FoundTerms } from './search-text.ts'

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
  readonly #file: string
  readonly #wholeReadBytes: number
  #db: IndexDb | undefined
  #isClosed = false
  #sliceStartMs = 0
  /** Searches go one after the other, so that no entry is indexed twice. */
  #searching: Promise<unknown> = Promise.resolve()
  /** Which logs are in the full-text index, by folder. */
  readonly #indexed = new Map<string, Indexed>()
  #completing: Promise<void> = Promise.resolve()
  readonly #toComplete = new Set<string>()

  /** Nothing is opened before the first call. */
  constructor(options: SessionIndexOptions) {
    this.#file = options.file
    this.#wholeReadBytes = options.wholeReadBytes ?? defaultWholeReadBytes
  }

  async list(source: IndexSource, query: SessionQuery): Promise<SessionPage> {
    return this.#withIndex((db) => this.#list(source, query, db))
  }

  async search(source: IndexSource, { text, limit = defaultHits }: SearchQuery): Promise<SearchHit[]> {
    const words = wordsOf(text)
    if (words.length === 0 || limit < 1) return []
    const found = this.#searching.then(() => this.#withIndex((db) => this.#search(source, { words, limit }, db)))
    this.#searching = found.catch(() => undefined)
    return found
  }

  /** What still runs ends by itself at its next pause. */
  close(): void {
    this.#isClosed = true
    this.#db?.close()
  }

  /** A broken index is made anew once; after that, or while somebody holds it, the work is done without. */
  async #withIndex<T>(work: (db: IndexDb | undefined) => Promise<T>): Promise<T> {
    for (let attempt = 1; attempt <= 2; attempt++) {
      let db: IndexDb | undefined
      try {
        db = this.#open()
        return await work(db)
      } catch (error) {
        if (!(error instanceof IndexError)) throw error
        this.#throwIfClosed()
        if (error.isBusy) break
        this.#discard(db)
      }
    }
    return work(undefined)
  }

  #open(): IndexDb {
    this.#throwIfClosed()
    if (this.#db?.isInPlace) return this.#db
    this.#db?.close()
    this.#db = undefined
    this.#db = IndexDb.open(this.#file)
    return this.#db
  }

  #discard(db: IndexDb | undefined): void {
    // Another call in this process was quicker.
    if (db !== this.#db) return
    this.#db = undefined
    try {
      db?.close()
      // A file that took the place of ours is somebody else's new one.
      if (!db || db.isInPlace) IndexDb.remove(this.#file)
    } catch {
      // Opening it again will tell.
    }
  }

  async #list(source: IndexSource, query: SessionQuery, db: IndexDb | undefined): Promise<SessionPage> {
    const part = this.#partOf(source, 'list', db)
    const page = new PageBuilder(source.folder, query)
    const estimates: string[] = []
    const offer = (row: Row): void => {
      page.offer(row)
      if (row.size > smallLogBytes && valueOf(row).info.estimated) estimates.push(row.id)
    }
    const { changed, vanished } = await this.#walk(source.folder, part, offer)
    const saving = new Saving(part)
    for (const ids of chunksOf(vanished)) {
      saving.drop(ids)
      await this.#pause()
    }
    const budget = { bytes: this.#wholeReadBytes }
    await inParallel(changed, async (log) => {
      const { row, isTrue } = await readRow(source, log, budget)
      if (!row) return
      offer(row)
      if (isTrue) saving.add(row)
      await this.#pause()
    })
    saving.flush()
    if (part) this.#completeLater(source, estimates)
    return page.finish()
  }

  /** Logs that were too long to be read at once are read in the background, for the next list. */
  #completeLater(source: IndexSource, ids: readonly string[]): void {
    for (const id of ids) {
      const path = join(source.folder, id)
      if (this.#toComplete.has(path)) continue
      this.#toComplete.add(path)
      this.#completing = this.#completing
        .then(() => this.#complete(source, id))
        .catch(() => {
          // The row stays an estimate, and the next list comes here again.
        })
        .finally(() => this.#toComplete.delete(path))
    }
  }

  async #complete(source: IndexSource, id: string): Promise<void> {
    const file = statLog(source.folder, id)
    if (!file) return
    const state = new SessionState({ isWhole: true })
    await withLog(source, id, (log) => this.#read(log, new Reading(state), 0))
    await this.#withIndex(async (db) => {
      const part = this.#partOf(source, 'list', db)
      part?.db.saveRows(part.source, [rowOf(file, state)])
    })
  }

  async #search(
    source: IndexSource,
    query: { words: string[]; limit: number },
    db: IndexDb | undefined,
  ): Promise<SearchHit[]> {
    const part = this.#partOf(source, 'search', db)
    const hits = new NewestHits(query.limit)
    const unindexed = await this.#indexTexts(source, part)
    if (part) await this.#lookUp(source, part, { words: query.words, except: unindexed, hits })
    await this.#scan(source, [...unindexed.values()], query.words, hits)
    return hits.list()
  }

  /** Brings the texts up to date, oldest log first, and gives the logs for which that was not possible. */
  async #indexTexts(source: IndexSource, part: Part | undefined): Promise<Map<string, LogStat>> {
    const { files, changed, vanished } = await this.#changedTexts(source, part)
    const unindexed = new Map(changed.map(({ file }) => [file.id, file]))
    if (!part) return unindexed
    changed.sort((left, right) => left.file.mtimeMs - right.file.mtimeMs)
    const adding = new Adding(part, (file) => {
      unindexed.delete(file.id)
      files.set(file.id, file)
    })
    try {
      for (const ids of chunksOf(vanished)) {
        if (part.db.dropDocuments(part.source, ids)) {
          this.#indexed.clear()
          return await this.#indexTexts(source, part)
        }
        for (const id of ids) files.delete(id)
        await this.#pause()
      }
      await inParallel(changed, (log) => this.#indexLog(source, log, adding))
      adding.flush()
      if (changed.length > 0) await this.#tidy(part.db)
    } catch (error) {
      if (!(error instanceof IndexError && error.isBusy)) throw error
    }
    return unindexed
  }

  /** What is indexed is remembered for as long as nobody else writes: asking the index for it takes longer than to search. */
  async #changedTexts(source: IndexSource, part: Part | undefined): Promise<ChangedTexts> {
    const version = part?.db.version
    const known = this.#indexed.get(source.folder)
    if (part && known?.db === part.db && known.version === version) {
      return { files: known.files, ...(await this.#compare(source.folder, part, known.files)) }
    }
    const files = new Map<string, LogStat>()
    this.#indexed.set(source.folder, { db: part?.db, version, files })
    return { files, ...(await this.#walk(source.folder, part, (row) => files.set(row.id, statOf(row)))) }
  }

  async #compare(folder: string, part: Part, files: ReadonlyMap<string, LogStat>): Promise<Comparison> {
    const ids = await sessionIdsIn(folder)
    const changed: ChangedLog[] = []
    const present: string[] = []
    for (const [index, id] of ids.entries()) {
      if (index % walkStep === 0) await this.#pause()
      const file = statLog(folder, id)
      if (!file) continue
      const known = files.get(id)
      if (known) present.push(id)
      if (!known || !isSameFile(known, file)) changed.push({ file, stored: part.db.row(part.source, id) })
    }
    if (present.length === files.size) return { changed, vanished: [] }
    return { changed, vanished: [...new Set(files.keys()).difference(new Set(present))] }
  }

  async #tidy(db: IndexDb): Promise<void> {
    for (let step = 0; step < tidySteps && db.tidy(); step++) await this.#pause()
    if (!db.beginCompacting()) return
    while (db.tidy()) await this.#pause()
  }

  async #indexLog(source: IndexSource, { file, stored }: ChangedLog, adding: Adding): Promise<void> {
    try {
      await withLog(source, file.id, async (log) => {
        const mark = stored && (JSON.parse(stored.value) as Mark)
        let known = stored?.value
        let isContinued = mark !== undefined && (await stillHas(log, mark.last))
        let state = stateAt(isContinued ? mark : undefined)
        let documents: Document[] = []
        let termCount = 0
        const watch = (accepted: ReplayedLine): void => {
          const document = documentOf(accepted)
          if (!document) return
          documents.push(document)
          termCount += document.terms.words.size + document.terms.pairs.size
        }
        const add = (size: number): void => {
          const value = JSON.stringify(markOf(state))
          adding.add({ row: { ...file, size, modified: '', value }, known, isContinued, documents }, termCount)
          known = value
          isContinued = true
          documents = []
          termCount = 0
        }
        for (let isAtEnd = false; !isAtEnd;) {
          // A state of its own for each stretch: the tree of a long log would not fit.
          isAtEnd = await this.#read(log, new Reading(state, watch), state.end, () => termCount > maxPendingTerms)
          // A size that no file has: the log goes on, and so would the next search if this one were cut short.
          add(isAtEnd ? file.size : -1)
          await this.#pause()
          if (adding.isUntidy) adding.tidy()
          await this.#pause()
          state = stateAt(markOf(state))
        }
      })
    } catch (error) {
      if (this.#isClosed || error instanceof IndexError) throw error
      // A log that cannot be read has no words to find; the list shows it as damaged.
    }
  }

  async #lookUp(
    source: IndexSource,
    part: Part,
    { words, except, hits }: { words: readonly string[]; except: ReadonlyMap<string, unknown>; hits: NewestHits },
  ): Promise<void> {
    const expression = await matchExpression(words, (text) => this.#termsWith(part, text))
    if (expression === undefined) return
    let below: number | undefined = Number.MAX_SAFE_INTEGER
    let misses = 0
    for (let size = firstWindow; below !== undefined; size = Math.min(size * 4, maxWindow)) {
      const window: Candidate[] = []
      below = gather(part.db.candidates(part.source, expression, below), { size, hits, window })
      const examined = window.filter(({ id }) => !except.has(id)).sort((left, right) => right.ms - left.ms)
      for (let from = 0; from < examined.length; from += examinedTogether) {
        const group = examined.slice(from, from + examinedTogether)
        if (group.every(({ ms }) => ms < hits.floorMs)) break
        if (misses >= maxMisses) return
        const byLog = Map.groupBy(group, ({ id }) => id)
        const missed = [...byLog].map(([id, candidates]) => examine(source, id, { candidates, words, hits }))
        for (const count of await Promise.all(missed)) misses += count
        await this.#pause()
      }
      await this.#pause()
    }
  }

  /** The words that have a part, the shortest first if there are too many. */
  async #termsWith(part: Part, text: string): Promise<FoundTerms> {
    const all: string[] = []
    for (const terms of part.db.termsWith(part.source, text)) {
      all.push(...terms)
      await this.#pause()
    }
    if (all.length <= maxNamedTerms) return { terms: all, isComplete: true }
    all.sort((left, right) => left.length - right.length)
    return { terms: all.slice(0, maxNamedTerms), isComplete: false }
  }

  /** Reads logs that are not in the index, newest first, until nothing newer can come. */
  async #scan(source: IndexSource, files: LogStat[], words: readonly string[], hits: NewestHits): Promise<void> {
    for (const file of files.sort((left, right) => right.mtimeMs - left.mtimeMs)) {
      if (file.mtimeMs < hits.floorMs) return
      try {
        const watch = ({ line, seq }: ReplayedLine): boolean => hits.offerLine(file.id, line, { seq, words })
        await withLog(source, file.id, (log) => this.#read(log, new Reading(stateAt(undefined), watch), 0))
      } catch {
        this.#throwIfClosed()
        // A log that cannot be read, or is gone by now, has nothing to find.
      }
    }
  }

  /** Like `replay`, with pauses. False where `isEnough` ended it before the end. */
  async #read(log: ReadableLog, reading: Reading, from: number, isEnough = (): boolean => false): Promise<boolean> {
    for await (const batch of log.lines(from)) {
      for (const stored of batch) {
        if (isEnough()) return false
        reading.take(stored)
        // Asked here first: a promise for each line would take longer than the line.
        if (this.#isPauseDue) await this.#pause()
      }
    }
    reading.finish()
    return true
  }

  /** Compares the logs in a folder with what is remembered, some hundred at a time. */
  async #walk(folder: string, part: Part | undefined, visit: (unchanged: Row) => void): Promise<Comparison> {
    const ids = await sessionIdsIn(folder)
    const changed: ChangedLog[] = []
    const vanished: string[] = []
    // Ids mostly sort by time: newest first, a page is soon full and what follows is not looked into.
    let through = afterAllIds
    let to = ids.length
    do {
      const from = Math.max(0, to - walkStep)
      const after = ids[from - 1] ?? ''
      const rows = part?.db.rowsBetween(part.source, { after, through }) ?? new Map<string, Row>()
      for (const id of ids.slice(from, to)) {
        const file = statLog(folder, id)
        if (!file) continue
        const stored = rows.get(id)
        rows.delete(id)
        if (stored && isSameFile(stored, file)) visit(stored)
        else changed.push({ file, stored })
      }
      vanished.push(...rows.keys())
      through = after
      to = from
      await this.#pause()
    } while (to > 0)
    return { changed, vanished }
  }

  #partOf(source: IndexSource, kind: 'list' | 'search', db: IndexDb | undefined): Part | undefined {
    // Relative, so that the rows stay true when the whole root is moved.
    const folder = relative(dirname(this.#file), source.folder).split(sep).join('/')
    return db && { db, source: db.sourceNumber(folder, kind) }
  }

  get #isPauseDue(): boolean {
    return performance.now() - this.#sliceStartMs > sliceMs
  }

  /** Lets others run between two slices of work. */
  async #pause(): Promise<void> {
    this.#throwIfClosed()
    if (!this.#isPauseDue) return
    await setImmediate()
    this.#sliceStartMs = performance.now()
  }

  #throwIfClosed(): void {
    if (this.#isClosed) throw new SessionError('session-closed', 'The store has been closed.')
  }
}

const defaultHits = 50
const defaultPage = 100
/** Longer work is cut here, so that nobody else waits. */
const sliceMs = 5
const walkStep = 500
/** Sorts behind every id. */
const afterAllIds = '~'
const parallelReads = 4
const maxPendingRows = 200
/** What one search may spend on tidying up after another. */
const tidySteps = 12
/** Words and pairs that one transaction takes: some milliseconds. */
const maxPendingTerms = 3000
/** Of a longer text, which only a foreign writer leaves in the log, the rest is not indexed. */
const maxIndexedLength = 256 * 1024
/** Logs up to this size are read whole whenever they change. */
const smallLogBytes = 256 * 1024
const defaultWholeReadBytes = 32 * 1024 * 1024
const headBytes = 64 * 1024
const tailBytes = 256 * 1024
/** Candidates are looked at in windows, each four times the one before. */
const firstWindow = 200
const maxWindow = 3200
const examinedTogether = 16
/** After so many entries that only seemed to fit, a search ends with what it has: what is older is not found. */
const maxMisses = 2000

/** The rows of one source in the index. */
interface Part {
  db: IndexDb
  source: number
}

interface LogStat {
  id: string
  inode: number
  size: number
  mtimeMs: number
}

interface ChangedLog {
  file: LogStat
  stored: Row | undefined
}

interface Comparison {
  changed: ChangedLog[]
  /** Ids. */
  vanished: string[]
}

interface Indexed {
  db: IndexDb | undefined
  version: number | undefined
  files: Map<string, LogStat>
}

type ChangedTexts = Comparison & Pick<Indexed, 'files'>

/** What a row of the list holds. */
interface ListValue {
  last: Placed
  info: SessionInfo
}

/** What a row of the search holds: how far the log is indexed, and how to go on from there. */
interface Mark {
  last: Placed
  end: number
  seq: number
  sealed: boolean
}

/** Collects rows newest first and holds little more than a page of them. */
class PageBuilder {
  readonly #folder: string
  readonly #query: SessionQuery & { limit: number }
  #rows: SessionInfo[] = []
  /** Rows that were modified before this are on a later page. */
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

/** Writes rows some hundred at a time. If somebody holds the index, nothing is written: the next list reads those logs again. */
class Saving {
  #part: Part | undefined
  #rows: Row[] = []

  constructor(part: Part | undefined) {
    this.#part = part
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
    if (rows.length > 0) this.#write(({ db, source }) => db.saveRows(source, rows))
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

/** Writes documents some thousand words at a time, and tells whose are all in. */
class Adding {
  readonly #part: Part
  readonly #onDone: (file: LogStat) => void
  #additions: Addition[] = []
  #termCount = 0
  /** Something was written since the parts of the index were last put together. */
  isUntidy = false

  constructor(part: Part, onDone: (file: LogStat) => void) {
    this.#part = part
    this.#onDone = onDone
  }

  add(addition: Addition, termCount: number): void {
    this.#additions.push(addition)
    this.#termCount += termCount
    if (this.#termCount >= maxPendingTerms || this.#additions.length >= maxPendingRows) this.flush()
  }

  flush(): void {
    const additions = this.#additions
    this.#additions = []
    this.#termCount = 0
    if (additions.length === 0) return
    this.#part.db.addDocuments(this.#part.source, additions)
    this.isUntidy = true
    for (const { row } of additions) if (row.size >= 0) this.#onDone(statOf(row))
  }

  tidy(): void {
    this.isUntidy = false
    this.#part.db.tidy()
  }
}

/** The newest hits among all that are offered. */
class NewestHits {
  readonly #limit: number
  readonly #found: { ms: number; hit: SearchHit }[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** What is older than this is not among them. */
  get floorMs(): number {
    return this.#found[this.#limit - 1]?.ms ?? -Infinity
  }

  /** Takes the line if every word is in its text: the one place that decides what is found. */
  offerLine(sessionId: string, line: DiskLine, { seq, words }: { seq: number; words: readonly string[] }): boolean {
    const ms = msOf(line)
    if (ms < this.floorMs) return true
    const snippet = findWords(textOfLine(line), words)
    if (snippet === undefined) return false
    const role = line.type === 'message' ? String(payloadOf(line)['role']) : line.type
    this.#found.push({ ms, hit: { sessionId, entryId: line.id, seq, timestamp: line.timestamp ?? '', role, snippet } })
    this.#found.sort((left, right) => right.ms - left.ms || newestFirst(left.hit, right.hit))
    this.#found.splice(this.#limit)
    return true
  }

  list(): SearchHit[] {
    return this.#found.map(({ hit }) => hit)
  }
}

/** Within a millisecond. */
function newestFirst(left: SearchHit, right: SearchHit): number {
  if (left.sessionId !== right.sessionId) return left.sessionId < right.sessionId ? 1 : -1
  return right.seq - left.seq
}

/** The row of a changed log; none if it is gone. One that is not true of the file is shown and not remembered. */
async function readRow(
  source: IndexSource,
  { file, stored }: ChangedLog,
  budget: { bytes: number },
): Promise<{ row?: Row; isTrue?: boolean }> {
  try {
    return await withLog(source, file.id, async (log) => {
      const isTouched = stored?.size === file.size && (await stillHas(log, valueOf(stored).last))
      return { row: isTouched ? { ...stored, ...file } : await foldRow(log, file, budget), isTrue: true }
    })
  } catch {
    // Nothing may be hidden because it cannot be read; only what is gone is not listed.
    return statLog(source.folder, file.id) ? { row: unreadableRow(file) } : {}
  }
}

/** A long log is folded from its checkpoint, else whole as far as the budget goes, else only its head and tail are. */
async function foldRow(log: ReadableLog, file: LogStat, budget: { bytes: number }): Promise<Row> {
  if (file.size > smallLogBytes) {
    const quick = await foldFromCheckpoint(log)
    if (quick) return rowOf(file, quick)
    if (file.size > budget.bytes) return estimateRow(log, file)
    budget.bytes -= file.size
  }
  const state = new SessionState({ isWhole: true })
  await replay(log, state, { from: 0 })
  return rowOf(file, state)
}

async function foldFromCheckpoint(log: ReadableLog): Promise<SessionState | undefined> {
  const state = await readCheckpoint(log)
  if (!state) return undefined
  try {
    await replay(log, state, { from: state.end })
    return state
  } catch (error) {
    if (error instanceof UnreadError) return undefined
    throw error
  }
}

async function estimateRow(log: ReadableLog, file: LogStat): Promise<Row> {
  const state = new SessionState({ isWhole: true })
  const reading = new Reading(state)
  await takeUpTo(headBytes, log, { reading, from: 0 })
  // In a file a position is an offset. It lies inside a line, whose rest is not one: a damage that is not there.
  await takeUpTo(file.size, log, { reading, from: file.size - tailBytes })
  return rowOf(file, state, { damaged: false, estimated: true })
}

async function takeUpTo(
  to: number,
  log: ReadableLog,
  { reading, from }: { reading: Reading; from: number },
): Promise<void> {
  for await (const batch of log.lines(from)) {
    for (const stored of batch) {
      if (stored.at >= to) return
      reading.take(stored)
    }
  }
}

function rowOf(file: LogStat, state: SessionState, changes: Partial<SessionInfo> = {}): Row {
  const info = { ...sessionInfoOf(state, { id: file.id }), ...changes }
  const value: ListValue = { last: state.last, info }
  return { ...file, modified: info.modified, value: JSON.stringify(value) }
}

function unreadableRow(file: LogStat): Row {
  const time = new Date(file.mtimeMs).toISOString()
  const state = new SessionState({ isWhole: true })
  return rowOf(file, state, { created: time, modified: time, damaged: true, estimated: true })
}

function valueOf(row: Row): ListValue {
  return JSON.parse(row.value) as ListValue
}

function markOf({ last, end, seq, sealed }: SessionState): Mark {
  return { last, end, seq, sealed }
}

/** A state to read on from a mark with. What it says of the tree is not true, and nobody asks. */
function stateAt(mark: Mark | undefined): SessionState {
  return Object.assign(new SessionState({ isWhole: true }), mark)
}

function documentOf({ line, seq, at, size }: ReplayedLine): Document | undefined {
  const text = textOfLine(line).slice(0, maxIndexedLength)
  return text === '' ? undefined : { seq, at, size, ms: msOf(line), terms: termsOf(fold(text)) }
}

function msOf(line: DiskLine): number {
  return Date.parse(line.timestamp ?? '') || 0
}

/** Takes as many candidates as a window has and gives where the next one begins; undefined where nothing newer can come. */
function gather(
  candidates: Iterable<Candidate>,
  { size, hits, window }: { size: number; hits: NewestHits; window: Candidate[] },
): number | undefined {
  for (const candidate of candidates) {
    if (candidate.reachMs < hits.floorMs) return undefined
    window.push(candidate)
    if (window.length === size) return candidate.rowid
  }
  return undefined
}

/** Reads the entries that the index offers, takes those that really have the words and counts the others. */
async function examine(
  source: IndexSource,
  id: string,
  { candidates, words, hits }: { candidates: Candidate[]; words: readonly string[]; hits: NewestHits },
): Promise<number> {
  // A log may have gone away since it was looked at.
  const lines = await withLog(source, id, (log) => log.readAt(candidates)).catch(() => [])
  const isHit = ({ seq }: Candidate, index: number): boolean => {
    const parsed = lines[index] && parseLine(lines[index])
    if (parsed?.type !== 'line' || (parsed.line.seq ?? seq) !== seq) return false
    return hits.offerLine(id, parsed.line, { seq, words })
  }
  return candidates.filter((candidate, index) => !isHit(candidate, index)).length
}

/** Whether the line that a row ends with still stands where it stood. */
async function stillHas(log: ReadableLog, last: Placed): Promise<boolean> {
  const [bytes] = await log.readAt([last])
  const parsed = parseLine(bytes as Uint8Array)
  return parsed.type === 'line' && parsed.crc === last.crc
}

async function withLog<T>(source: IndexSource, id: string, work: (log: ReadableLog) => Promise<T>): Promise<T> {
  const log = await source.openLog(id)
  try {
    return await work(log)
  } finally {
    await log.close()
  }
}

function* chunksOf(ids: readonly string[]): Iterable<string[]> {
  for (let from = 0; from < ids.length; from += maxPendingRows) yield ids.slice(from, from + maxPendingRows)
}

/** Some at a time. The first failure ends it, when those that have begun are done. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  let failure: { error: unknown } | undefined
  const workers = Array.from({ length: parallelReads }, async () => {
    for (const item of rest) {
      if (failure) return
      try {
        await work(item)
      } catch (error) {
        failure = { error }
      }
    }
  })
  await Promise.all(workers)
  if (failure) throw failure.error
}

async function sessionIdsIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter(isId).sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function statLog(folder: string, id: string): LogStat | undefined {
  try {
    const stats = lstatSync(`${folder}/${id}/${logName}`)
    return stats.isFile() ? { id, inode: stats.ino, size: stats.size, mtimeMs: stats.mtimeMs } : undefined
  } catch {
    return undefined // not a session, or gone
  }
}

function statOf({ id, inode, size, mtimeMs }: Row): LogStat {
  return { id, inode, size, mtimeMs }
}

function isSameFile(stored: LogStat, file: LogStat): boolean {
  return stored.inode === file.inode && stored.size === file.size && stored.mtimeMs === file.mtimeMs
}
