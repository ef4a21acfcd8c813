import { payloadOf } from '../../../line/codec.ts'
import type { DiskLine } from '../../../line/line.ts'
import { textOfLine } from '../../../line/message-text.ts'
import { parseLine } from '../../../line/parse-line.ts'
import { Reading, type ReplayedLine } from '../../../log/replay.ts'
import type { SearchHit, SearchQuery } from '../../../state/session-info.ts'
import { SessionState } from '../../../state/session-state.ts'
import type { Candidate } from './index-documents.ts'
import type { IndexFile, Part } from './index-file.ts'
import { maxNamedTerms } from './index-terms.ts'
import { IndexTexts } from './index-texts.ts'
import type { LogStat } from './index-walk.ts'
import type { IndexSource } from './list-index.ts'
import { defaultHits, msOf, NewestHits, rangesOf } from '../../search-hits.ts'
import { readInSlices, withLog } from './read-log.ts'
import { findWords, fold, matchExpression, wordsOf, type FoundTerms } from './search-text.ts'
import type { Slices } from './slices.ts'

/** Queries the full-text index, and reads the logs that it does not cover. */
export class IndexSearch {
  readonly #file: IndexFile
  readonly #slices: Slices
  readonly #texts: IndexTexts
  /** Searches run one after another, so that no entry is indexed twice. */
  #searching: Promise<unknown> = Promise.resolve()

  constructor(file: IndexFile, slices: Slices) {
    this.#file = file
    this.#slices = slices
    this.#texts = new IndexTexts(slices)
  }

  async search(source: IndexSource, query: SearchQuery): Promise<SearchHit[]> {
    const { text, limit = defaultHits, among } = query
    const words = wordsOf(text)
    if (words.length === 0 || limit < 1) return []
    const hits = new NewestHits(query)
    const found = this.#searching.then(() =>
      this.#file.use({ folder: source.folder, kind: 'search' }, (part) =>
        this.#search(source, { words, hits, isWanted: (id) => among?.has(id) ?? true }, part),
      ),
    )
    this.#searching = found.catch(() => undefined)
    return found
  }

  async #search(
    source: IndexSource,
    query: { words: string[]; hits: NewestHits; isWanted: (id: string) => boolean },
    part: Part | undefined,
  ): Promise<SearchHit[]> {
    const unindexed = await this.#texts.update(source, part)
    const { words, hits, isWanted } = query
    const isIndexed = (id: string): boolean => isWanted(id) && !unindexed.has(id)
    if (part) await this.#lookUp(source, part, { words, isIndexed, hits })
    const unread = [...unindexed.values()].filter(({ id }) => isWanted(id))
    await this.#scan(source, unread, words, hits)
    return hits.list()
  }

  async #lookUp(
    source: IndexSource,
    part: Part,
    { words, isIndexed, hits }: { words: readonly string[]; isIndexed: (id: string) => boolean; hits: NewestHits },
  ): Promise<void> {
    const expression = await matchExpression(words, (text) => this.#termsWith(part, text))
    if (expression === undefined) return
    let below: number | undefined = Number.MAX_SAFE_INTEGER
    const missed = { words: 0, role: 0 }
    for (let size = firstWindow; below !== undefined; size = Math.min(size * 4, maxWindow)) {
      const window: Candidate[] = []
      below = gather(part.db.candidates(part.source, expression, below), { size, hits, window })
      const isWanted = ({ id, ms, seq }: Candidate): boolean => isIndexed(id) && hits.wants({ ms, sessionId: id, seq })
      const examined = window.filter(isWanted).sort((left, right) => right.ms - left.ms)
      for (let from = 0; from < examined.length; from += examinedTogether) {
        const group = examined.slice(from, from + examinedTogether)
        if (group.every(({ ms }) => ms < hits.floorMs)) break
        if (missed.words >= maxMisses || missed.role >= maxOtherRoles) return
        const byLog = Map.groupBy(group, ({ id }) => id)
        await Promise.all(
          [...byLog].map(([id, candidates]) => examine(source, id, { candidates, words, hits, missed })),
        )
        await this.#slices.pause()
      }
      await this.#slices.pause()
    }
  }

  /** Terms that contain a part, the shortest first if there are too many. */
  async #termsWith(part: Part, text: string): Promise<FoundTerms> {
    const all: string[] = []
    for (const terms of part.db.termsWith(part.source, text)) {
      all.push(...terms)
      await this.#slices.pause()
    }
    if (all.length <= maxNamedTerms) return { terms: all, isComplete: true }
    all.sort((left, right) => left.length - right.length)
    return { terms: all.slice(0, maxNamedTerms), isComplete: false }
  }

  /** Reads unindexed logs, newest first, until no newer hit is possible. */
  async #scan(source: IndexSource, files: LogStat[], words: readonly string[], hits: NewestHits): Promise<void> {
    for (const file of files.sort((left, right) => right.mtimeMs - left.mtimeMs)) {
      if (file.mtimeMs < hits.floorMs) return
      try {
        const watch = ({ line, seq }: ReplayedLine): void =>
          void offerLine(line, { sessionId: file.id, seq, words, hits })
        await withLog(source, file.id, (log) =>
          readInSlices(log, {
            reading: new Reading(new SessionState({ isWhole: true }), watch),
            from: 0,
            slices: this.#slices,
          }),
        )
      } catch {
        this.#slices.throwIfClosed()
        // Skips a log that is unreadable or gone.
      }
    }
  }
}

/** Candidates are read in windows, each four times the previous size. */
const firstWindow = 200
const maxWindow = 3200
const examinedTogether = 16
/** After this many false candidates a search stops; older hits are not found. */
const maxMisses = 2000
/** The same for entries that have the words, but another role than the query wants. */
const maxOtherRoles = 20_000

/** Takes one window of candidates and returns where the next one begins; undefined if no newer hit is possible. */
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

interface Missed {
  words: number
  role: number
}

/** Reads the candidate entries, keeps those that contain the words and counts the misses. */
async function examine(
  source: IndexSource,
  id: string,
  request: { candidates: Candidate[]; words: readonly string[]; hits: NewestHits; missed: Missed },
): Promise<void> {
  const { candidates, words, hits, missed } = request
  // The log may have been deleted since it was listed.
  const lines = await withLog(source, id, (log) => log.readAt(candidates)).catch(() => [])
  for (const [index, { seq }] of candidates.entries()) {
    const parsed = lines[index] && parseLine(lines[index])
    const isThere = parsed?.type === 'line' && (parsed.line.seq ?? seq) === seq
    const missing = isThere ? offerLine(parsed.line, { sessionId: id, seq, words, hits }) : 'words'
    if (missing !== undefined) missed[missing]++
  }
}

interface OfferedLine {
  sessionId: string
  seq: number
  words: readonly string[]
  hits: NewestHits
}

/** Adds the line if its text contains every word: the only place that decides what matches. Else says what is missing. */
function offerLine(line: DiskLine, { sessionId, seq, words, hits }: OfferedLine): keyof Missed | undefined {
  const { timestamp = '' } = line
  if (!hits.wants({ ms: msOf(timestamp), sessionId, seq })) return undefined
  const role = line.type === 'message' ? String(payloadOf(line)['role']) : line.type
  if (!hits.wantsRole(role)) return 'role'
  const snippet = findWords(textOfLine(line), words)
  if (snippet === undefined) return 'words'
  hits.add({ sessionId, entryId: line.id, seq, timestamp, role, snippet, matches: rangesOf(snippet, words, fold) })
  return undefined
}
