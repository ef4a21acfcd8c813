import { textOfLine } from '../../../line/message-text.ts'
import { Reading, type ReplayedLine } from '../../../log/replay.ts'
import { SessionState, type Placed } from '../../../state/session-state.ts'
import { IndexError } from './index-connection.ts'
import type { Addition, IndexDb, Row } from './index-db.ts'
import type { Document } from './index-documents.ts'
import { chunksOf, maxPendingRows, type Part } from './index-file.ts'
import { compare, statOf, walk, type ChangedLog, type Comparison, type LogStat } from './index-walk.ts'
import type { IndexSource } from './list-index.ts'
import { msOf } from './newest-hits.ts'
import { readInSlices, stillHas, withLog } from './read-log.ts'
import { fold, termsOf } from './search-text.ts'
import { inParallel, type Slices } from './slices.ts'

/** The texts of the full-text index: reads what was added to the logs and keeps it there. */
export class IndexTexts {
  readonly #slices: Slices
  /** Which logs are in the full-text index, by folder. */
  readonly #indexed = new Map<string, Indexed>()

  constructor(slices: Slices) {
    this.#slices = slices
  }

  /** Brings the texts up to date, oldest log first, and gives the logs for which that was not possible. */
  async update(source: IndexSource, part: Part | undefined): Promise<Map<string, LogStat>> {
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

  /** What is indexed is remembered for as long as nobody else writes: asking the index for it takes longer than to search. */
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
          // A state of its own for each stretch: the tree of a long log would not fit.
          isAtEnd = await readInSlices(log, {
            reading: new Reading(state, watch),
            from: state.end,
            slices: this.#slices,
            isEnough: () => termCount > maxPendingTerms,
          })
          // A size that no file has: the log goes on, and so would the next search if this one were cut short.
          add(isAtEnd ? file.size : -1)
          await this.#slices.pause()
          if (adding.isUntidy) adding.tidy()
          await this.#slices.pause()
          state = stateAt(markOf(state))
        }
      })
    } catch (error) {
      if (this.#slices.isClosed || error instanceof IndexError) throw error
      // A log that cannot be read has no words to find; the list shows it as damaged.
    }
  }
}

/** What one search may spend on tidying up after another. */
const tidySteps = 12
/** Words and pairs that one transaction takes: some milliseconds. */
const maxPendingTerms = 3000
/** Of a longer text, which only a foreign writer leaves in the log, the rest is not indexed. */
const maxIndexedLength = 256 * 1024

interface Indexed {
  db: IndexDb | undefined
  version: number | undefined
  files: Map<string, LogStat>
}

type ChangedTexts = Comparison & Pick<Indexed, 'files'>

/** What a row of the search holds: how far the log is indexed, and how to go on from there. */
interface Mark {
  last: Placed
  end: number
  seq: number
  sealed: boolean
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
