import type { RestQueries, RestResults } from '@tapetree/client/types'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { emptyTranscript, foldOfTranscript, reduceTranscript, type TranscriptItem } from '@tapetree/session/view'

type EntryWindow = RestResults['entries']

/** The oldest entry that the open session has loaded, and its parent, which is not. */
export interface Tail {
  readonly seq: number
  readonly parentId: string
}

/** Entries above the loaded ones, as the transcript shows them. */
export interface Excerpt {
  /** Oldest first. */
  readonly items: readonly TranscriptItem[]
  /** All entries of these lines are loaded. */
  readonly from: number
  readonly to: number
  /** It goes down to the first entry of the open session. */
  readonly isJoined: boolean
  /** It shows an entry that is not on the path to the leaf. */
  readonly isOtherBranch: boolean
}

/** A contiguous part of the log. */
interface Loaded {
  readonly from: number
  readonly to: number
  readonly entries: readonly Line[]
  /** The entry that the user asked for. */
  readonly through?: string
}

/** How many entries one request reads. */
const pageSize = 120
/** More are dropped again, at the end that the user scrolls away from. */
const maxEntries = 1200

/**
 * Reads the past of a session around the place that the user looks at. It holds one part of it; the open session has the
 * newest entries. A log has the entries of all branches: the path is found upward from a known entry.
 */
export class History {
  onChange: () => void = () => undefined
  readonly #read: (query: RestQueries['entries']) => Promise<EntryWindow>
  #loaded: Loaded | undefined
  #isReading = false
  #made: { tail: Tail; loaded: Loaded; excerpt: Excerpt } | undefined

  constructor(read: (query: RestQueries['entries']) => Promise<EntryWindow>) {
    this.#read = read
  }

  /** Undefined if nothing is loaded. The same object until something changes. */
  excerpt(tail: Tail): Excerpt | undefined {
    const loaded = this.#loaded
    if (!loaded || loaded.from >= tail.seq) return undefined
    const made = this.#made
    if (made?.loaded === loaded && made.tail.seq === tail.seq && made.tail.parentId === tail.parentId)
      return made.excerpt
    const excerpt = excerptOf(loaded, tail)
    this.#made = { tail, loaded, excerpt }
    return excerpt
  }

  /** Loads the entries around a line or an entry, instead of what was loaded. */
  async goTo(place: { seq: number } | { entryId: string }, tail: Tail): Promise<void> {
    await this.#once(async () => {
      const half = pageSize / 2
      const window = await this.#read({ ...place, before: half, after: half })
      const through = 'entryId' in place ? { through: place.entryId } : {}
      this.#set({ ...loadedFrom(window, tail), ...through })
    })
  }

  /** Loads what is above the loaded part; first what is above the open session. */
  async extendUp(tail: Tail): Promise<void> {
    await this.#once(async () => {
      const loaded = this.excerpt(tail) && this.#loaded
      const seq = loaded ? loaded.from : tail.seq
      if (seq <= 1) return
      const { entries, previous } = await this.#read({ seq, before: pageSize, after: 0 })
      const read = linesOf(entries)
      const below = loaded ? loaded.entries : []
      const kept = below.slice(0, Math.max(0, maxEntries - read.length))
      const to = kept.length < below.length ? (kept.at(-1)?.seq ?? seq - 1) : loaded ? loaded.to : seq - 1
      this.#set({
        from: previous === null ? 1 : (read[0]?.seq ?? seq),
        to,
        entries: [...read, ...kept],
        ...throughOf(loaded),
      })
    })
  }

  /** Loads what is below the loaded part, as far as the open session. */
  async extendDown(tail: Tail): Promise<void> {
    await this.#once(async () => {
      const loaded = this.#loaded
      if (!loaded || loaded.to >= tail.seq - 1) return
      const window = loadedFrom(await this.#read({ seq: loaded.to + 1, before: 0, after: pageSize }), tail)
      const all = [...loaded.entries, ...window.entries]
      const kept = all.slice(-maxEntries)
      const from = kept.length < all.length ? (kept[0]?.seq ?? loaded.from) : loaded.from
      this.#set({ from, to: window.to, entries: kept, ...throughOf(loaded) })
    })
  }

  async #once(work: () => Promise<void>): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    try {
      await work()
    } finally {
      this.#isReading = false
    }
    this.onChange()
  }

  #set(loaded: Loaded): void {
    this.#loaded = loaded
  }
}

function throughOf(loaded: Loaded | undefined): Pick<Loaded, 'through'> {
  return loaded?.through === undefined ? {} : { through: loaded.through }
}

function linesOf(entries: EntryWindow['entries']): Line[] {
  return entries.map((entry) => fromDisk(entry as unknown as DiskLine, entry.seq))
}

/** Without the entries that the open session has. */
function loadedFrom({ entries, previous, next }: EntryWindow, tail: Tail): Loaded {
  const lines = linesOf(entries)
  const above = lines.filter(({ seq }) => seq < tail.seq)
  const isWhole = next === null || above.length < lines.length
  return {
    from: previous === null ? 1 : (above[0]?.seq ?? tail.seq),
    to: isWhole ? tail.seq - 1 : (above.at(-1)?.seq ?? tail.seq - 1),
    entries: above,
  }
}

function excerptOf({ from, to, entries, through }: Loaded, tail: Tail): Excerpt {
  const above = entries.filter(({ seq }) => seq < tail.seq)
  const reachesTail = to >= tail.seq - 1
  const known = new Map(above.map((line) => [line.id, line]))
  const usual = pathTo(reachesTail ? tail.parentId : (above.at(-1)?.id ?? null), known)
  const isOtherBranch = through !== undefined && known.has(through) && !usual.some(({ id }) => id === through)
  const path = isOtherBranch ? pathThrough(through, above, known) : usual
  const isJoined = reachesTail && !isOtherBranch
  const items = itemsOf(path, { isWholeAbove: from <= 1, isWholeBelow: isJoined })
  return { items, from, to: Math.min(to, tail.seq - 1), isJoined, isOtherBranch }
}

function parentOf(line: Line | undefined): string | null {
  return line && 'parentId' in line ? line.parentId : null
}

function pathTo(leafId: string | null, known: ReadonlyMap<string, Line>): Line[] {
  const path: Line[] = []
  for (let line = known.get(leafId ?? ''); line; line = known.get(parentOf(line) ?? '')) path.push(line)
  return path.reverse()
}

/** The newest path with this entry. */
function pathThrough(id: string, entries: readonly Line[], known: ReadonlyMap<string, Line>): Line[] {
  const below = new Set([id])
  let leafId = id
  for (const line of entries) {
    if (!below.has(parentOf(line) ?? '')) continue
    below.add(line.id)
    leafId = line.id
  }
  return pathTo(leafId, known)
}

/** A call and its results are in different entries: at an open end, a call without its results waits for more entries. */
function itemsOf(path: readonly Line[], ends: { isWholeAbove: boolean; isWholeBelow: boolean }): TranscriptItem[] {
  const start = ends.isWholeAbove
    ? 0
    : Math.max(
        0,
        path.findIndex((line) => !isResult(line)),
      )
  const lines = path.slice(start)
  const [first] = lines
  const last = lines.at(-1)
  if (!first || !last) return []
  const snapshot = { head: { seq: last.seq }, lines, leafId: last.id, fold: foldOfTranscript(emptyTranscript()) }
  const { items } = reduceTranscript(emptyTranscript(), { type: 'snapshot', snapshot }).path
  const shown = items.slice().filter((item) => item.type !== 'gap' || item.gap.type !== 'not_loaded')
  const end = shown.at(-1)
  const isCut = end?.type === 'assistant' && end.parts.some((part) => part.type === 'tool_call' && !part.result)
  return isCut && !ends.isWholeBelow ? shown.slice(0, -1) : shown
}

function isResult(line: Line): boolean {
  return line.type === 'message' && line.message.role === 'tool'
}
