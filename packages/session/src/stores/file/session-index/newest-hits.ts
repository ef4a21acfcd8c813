import { payloadOf } from '../../../line/codec.ts'
import type { DiskLine } from '../../../line/line.ts'
import { textOfLine } from '../../../line/message-text.ts'
import type { SearchHit } from '../../../state/session-info.ts'
import { findWords } from './search-text.ts'

/** Keeps the newest of all hits offered. */
export class NewestHits {
  readonly #limit: number
  readonly #found: { ms: number; hit: SearchHit }[] = []

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Older hits are not kept. */
  get floorMs(): number {
    return this.#found[this.#limit - 1]?.ms ?? -Infinity
  }

  /** Adds the line if its text contains every word: the only place that decides what matches. */
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

export function msOf(line: DiskLine): number {
  return Date.parse(line.timestamp ?? '') || 0
}

/** Order within a millisecond. */
function newestFirst(left: SearchHit, right: SearchHit): number {
  if (left.sessionId !== right.sessionId) return left.sessionId < right.sessionId ? 1 : -1
  return right.seq - left.seq
}
