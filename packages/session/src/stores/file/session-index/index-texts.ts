import { textOfLine } from '../../../line/message-text.ts'
import { Reading, type ReplayedLine } from '../../../log/replay.ts'
import { SessionState, type Placed } from '../../../state/session-state.ts'
import { IndexError } from './index-connection.ts'
import type { Addition, IndexDb, Row } from './index-db.ts'
import type { Document } from './index-documents.ts'
import { chunksOf, maxPendingRows, type Part } from './index-file.ts'
import { compare, isPresentIn, statOf, walk, type ChangedLog, type Comparison, type LogStat } from './index-walk.ts'
import type { IndexSource } from './list-index.ts'
import { msOf } from '../../search-hits.ts'
import { readInSlices, stillHas, withLog } from './read-log.ts'
import { fold, termsOf } from './search-text.ts'
import { inParallel, type Slices } from './slices.ts'

/** Keeps the full-text index up to date with the logs. */
export class IndexTexts {
  readonly #slices: Slices
  /** Indexed logs, by folder. */
  readonly #indexed = new Map<string, Indexed>()

  constructor(slices: Slices) {
    this.#slices = slices
  }

  /** Indexes new text, oldest log first, and returns the logs that could not be indexed. */
  async update(source: IndexSource, part: Part | undefined): Promise<Map<string, LogStat>> {
    const { files, changed, vanished } = await this.#changedTexts(source, part)
    const unindexed = new Map(changed.map(({ file }) => [file.id, file]))
    if (!part) return unindexed
    changed.sort((left, right) => left.file.mtimeMs - right.file.mtimeMs)
    const adding = new Adding(part, {
      isThere: isPresentIn(source.folder),
      onDone: (file) => {
        unindexed.delete(file.id)
        files.set(file.id, file)
      },
    })
    try {
      for (const ids of chunksOf(vanished)) {
        if (part.db.dropDocuments(part.source, ids)) {
          this.#indexed.clear()
          return await this.update(source, part)
        }
        for (const id of ids) files.delete(id)
        await this.#slices.pause()
      }
      await inParallel(changed, (log) => this.#indexLog(source, log, adding))
      adding.flush()
      if (changed.length > 0) await this.#tidy(part.db)
    } catch (error) {
      if (!(error instanceof IndexError && error.isBusy)) throw error
    }
    return unindexed
  }

  /** Cached until another process writes: querying the index for this takes longer than the search. */
  async #changedTexts(source: IndexSource, part: Part | undefined): Promise<ChangedTexts> {
    const version = part?.db.version
    const known = this.#indexed.get(source.folder)
    if (part && known?.db === part.db && known.version === version) {
      return {
        files: known.files,
        ...(await compare(source.folder, { part, slices: this.#slices, files: known.files })),
      }
    }
    const files = new Map<string, LogStat>()
    this.#indexed.set(source.folder, { db: part?.db, version, files })
    const visit = (row: Row): void => void files.set(row.id, statOf(row))
    return { files, ...(await walk(source.folder, { part, slices: this.#slices, visit })) }
  }

  async #tidy(db: IndexDb): Promise<void> {
    for (let step = 0; step < tidySteps && db.tidy(); step++) await this.#slices.pause()
    if (!db.beginCompacting()) return
    while (db.tidy()) await this.#slices.pause()
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
          // A new state for each range: the tree of a long log would not fit in memory.
          isAtEnd = await readInSlices(log, {
            reading: new Reading(state, watch),
            from: state.end,
            slices: this.#slices,
            isEnough: () => termCount > maxPendingTerms,
          })
          // A size that no file has: the log has more lines, and the next search must continue even if this one
          // is interrupted.
          add(isAtEnd ? file.size : -1)
          await this.#slices.pause()
          if (adding.isUntidy) adding.tidy()
          await this.#slices.pause()
          state = stateAt(markOf(state))
        }
      })
    } catch (error) {
      if (this.#slices.isClosed || error instanceof IndexError) throw error
      // An unreadable log has no text to find; the list shows it as damaged.
    }
  }
}

/** Maximum number of merge steps in one search. */
const tidySteps = 12
/** Maximum number of words and pairs in one transaction: a few milliseconds. */
const maxPendingTerms = 3000
/** Text beyond this length is not indexed; only foreign writers leave such lines in the log. */
const maxIndexedLength = 256 * 1024

interface Indexed {
  db: IndexDb | undefined
  version: number | undefined
  files: Map<string, LogStat>
}

type ChangedTexts = Comparison & Pick<Indexed, 'files'>

/** Value of a search row: how far the log is indexed, and where to continue. */
interface Mark {
  last: Placed
  end: number
  seq: number
  sealed: boolean
}

interface AddingOptions {
  isThere: (row: Row) => boolean
  onDone: (file: LogStat) => void
}

/** Writes documents in batches, and reports the logs that are complete. */
class Adding {
  readonly #part: Part
  readonly #options: AddingOptions
  #additions: Addition[] = []
  #termCount = 0
  /** Documents were written since the last merge. */
  isUntidy = false

  constructor(part: Part, options: AddingOptions) {
    this.#part = part
    this.#options = options
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
    this.#part.db.addDocuments(this.#part.source, additions, this.#options.isThere)
    this.isUntidy = true
    for (const { row } of additions) if (row.size >= 0) this.#options.onDone(statOf(row))
  }

  tidy(): void {
    this.isUntidy = false
    this.#part.db.tidy()
  }
}

function markOf({ last, end, seq, sealed }: SessionState): Mark {
  return { last, end, seq, sealed }
}

/** A state that continues reading at a mark. Its tree is incomplete and is not used. */
function stateAt(mark: Mark | undefined): SessionState {
  return Object.assign(new SessionState({ isWhole: true }), mark)
}

function documentOf({ line, seq, at, size }: ReplayedLine): Document | undefined {
  const text = textOfLine(line).slice(0, maxIndexedLength)
  return text === '' ? undefined : { seq, at, size, ms: msOf(line.timestamp), terms: termsOf(fold(text)) }
}
