import type { HitPosition, SearchHit, SearchQuery, TextRange } from '../state/session-info.ts'

export const defaultHits = 50

/** Decides by time, role and position which entries a query wants, before and after their text is read. */
export class HitFilter {
  readonly sinceMs: number
  readonly #untilMs: number
  readonly #roles: ReadonlySet<string> | undefined
  readonly #after: HitPosition | undefined

  constructor({ roles, since, until, after }: SearchQuery) {
    this.sinceMs = since === undefined ? -Infinity : msOf(since)
    this.#untilMs = until === undefined ? Infinity : msOf(until)
    this.#roles = roles && new Set(roles)
    this.#after = after
  }

  /** Whether an entry of this time and place may be wanted, whatever its role. */
  admits(position: { ms: number; sessionId: string; seq: number }): boolean {
    const { ms } = position
    if (ms < this.sinceMs || ms >= this.#untilMs) return false
    const after = this.#after
    return after === undefined || newestFirst({ ...after, ms: msOf(after.timestamp) }, position) < 0
  }

  admitsRole(role: string): boolean {
    return this.#roles?.has(role) ?? true
  }
}

/** Keeps the newest of all hits offered. */
export class NewestHits {
  readonly #limit: number
  readonly #filter: HitFilter
  readonly #found: { ms: number; sessionId: string; seq: number; hit: SearchHit }[] = []

  constructor(query: SearchQuery) {
    this.#limit = query.limit ?? defaultHits
    this.#filter = new HitFilter(query)
  }

  /** Older hits are not kept. */
  get floorMs(): number {
    return Math.max(this.#found[this.#limit - 1]?.ms ?? -Infinity, this.#filter.sinceMs)
  }

  wants(position: { ms: number; sessionId: string; seq: number }): boolean {
    return position.ms >= this.floorMs && this.#filter.admits(position)
  }

  wantsRole(role: string): boolean {
    return this.#filter.admitsRole(role)
  }

  add(hit: SearchHit): void {
    const { sessionId, seq, timestamp } = hit
    this.#found.push({ ms: msOf(timestamp), sessionId, seq, hit })
    this.#found.sort(newestFirst)
    this.#found.splice(this.#limit)
  }

  list(): SearchHit[] {
    return this.#found.map(({ hit }) => hit)
  }
}

/** Entries without a valid time are the oldest. */
export function msOf(timestamp: string | undefined): number {
  return Date.parse(timestamp ?? '') || 0
}

interface Placed {
  ms: number
  sessionId: string
  seq: number
}

function newestFirst(left: Placed, right: Placed): number {
  if (left.ms !== right.ms) return right.ms - left.ms
  if (left.sessionId !== right.sessionId) return left.sessionId < right.sessionId ? 1 : -1
  return right.seq - left.seq
}

const graphemes = new Intl.Segmenter('und', { granularity: 'grapheme' })

/** Where folded words are in a short text. Folding changes lengths, so it is done character by character. */
export function rangesOf(text: string, words: readonly string[], fold: (text: string) => string): TextRange[] {
  let folded = ''
  /** The character of each folded code unit. */
  const origins: TextRange[] = []
  for (const { segment, index } of graphemes.segment(text)) {
    const piece = fold(segment)
    folded += piece
    const origin = { start: index, end: index + segment.length }
    for (let unit = 0; unit < piece.length; unit++) origins.push(origin)
  }
  const found: TextRange[] = []
  for (const word of words.filter((each) => each !== '')) {
    for (let at = folded.indexOf(word); at !== -1; at = folded.indexOf(word, at + word.length)) {
      const [first, last] = [origins[at], origins[at + word.length - 1]] as [TextRange, TextRange]
      found.push({ start: first.start, end: last.end })
    }
  }
  return joined(found.sort((left, right) => left.start - right.start))
}

/** Words may overlap; a range is marked once. */
function joined(sorted: readonly TextRange[]): TextRange[] {
  const ranges: TextRange[] = []
  for (const range of sorted) {
    const last = ranges.at(-1)
    if (last && range.start < last.end) last.end = Math.max(last.end, range.end)
    else ranges.push({ ...range })
  }
  return ranges
}
