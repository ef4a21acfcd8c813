import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import {
  emptyTranscript,
  foldOfTranscript,
  reduceTranscript,
  type SnapshotInput,
  type Transcript,
  type TranscriptInput,
} from '@tapetree/session/view'
import { CallsAbove } from '@tapetree/session/view/calls-above'
import type { Attached, Cursor, TextFrame } from './protocol/frames.ts'
import type { StateKey } from './protocol/state-values.ts'
import { snapshotFromWire, type WireSnapshot } from './protocol/wire-snapshot.ts'
import { readStateValue, type StateValues } from './state-values.ts'
import type { EventPage } from './protocol/rest.ts'

/** The local copy of a remote session: the fold of its received lines, and the position of the last one. */
export class Replica {
  #transcript: Transcript = emptyTranscript()
  #state = new Map<StateKey, { value: unknown; rev: number }>()
  #cursor: Cursor | undefined
  /** The seq of the next expected line. */
  #next = 1
  #nextAtPong: number | undefined
  #base: Base | undefined
  /**
   * Inputs since the snapshot, so that older entries can be put before it or dropped. Shares its content with
   * the transcript.
   */
  #since: TranscriptInput[] = []

  get transcript(): Transcript {
    return this.#transcript
  }

  /** The last line that can be used as a cursor. */
  get cursor(): Cursor | undefined {
    return this.#cursor
  }

  /** Undefined if the transcript goes back to the first entry. */
  get oldest(): Oldest | undefined {
    const first = this.#base?.snapshot.lines[0]
    if (!first || !this.#base?.hasOlder || !('parentId' in first) || first.parentId === null) return undefined
    return { base: this.#base, seq: first.seq, parentId: first.parentId }
  }

  value<Key extends StateKey>(key: Key): StateValues[Key] | undefined {
    return this.#state.get(key)?.value as StateValues[Key] | undefined
  }

  keys(): IterableIterator<StateKey> {
    return this.#state.keys()
  }

  /** Returns false if the server's lines do not follow the local ones. */
  attach({ mode, from, state, snapshot }: Attached): boolean {
    this.#state = new Map()
    for (const [key, { value, rev }] of Object.entries(state)) this.takeState(key as StateKey, value, rev)
    if (mode === 'snapshot') {
      if (!snapshot) return false
      this.#begin(snapshot)
    } else if (from !== (this.#cursor?.seq ?? 0) + 1) {
      return false
    }
    this.#next = from
    this.#nextAtPong = undefined
    // The server resends text in flight from its start; earlier live text may never be completed.
    if (this.#transcript.inFlight.size > 0) this.#transcript = { ...this.#transcript, inFlight: new Map() }
    return true
  }

  /** Called for each pong: whether no line has arrived since the last one although the server has more. */
  isStuck(head: number): boolean {
    const isStuck = this.#nextAtPong === this.#next && this.#next <= head
    this.#nextAtPong = this.#next
    return isStuck
  }

  /** Forgets the cursor, so that the next attach starts over. */
  forgetCursor(): void {
    this.#cursor = undefined
  }

  /** Classifies a line: only the next one may be applied. A known line was sent twice. */
  place(seq: number): 'known' | 'next' | 'gap' {
    if (seq === this.#next) return 'next'
    return seq < this.#next ? 'known' : 'gap'
  }

  /** Returns false if the session continues from an entry that is not loaded: its path must be fetched. */
  takeLine(disk: DiskLine, { seq, crc }: Cursor): boolean {
    const line = fromDisk(disk, seq)
    this.#take({ type: 'line', line })
    this.#cursor = { seq, crc }
    this.#next = seq + 1
    const { leaf } = this.#transcript.path
    const from = line.type === 'leaf' ? leaf : leaf?.id === line.id ? leaf.parent : null
    return !(from?.item?.type === 'gap' && from.item.gap.type === 'not_loaded')
  }

  /** The cursor stays at the line before: a lost line has no checksum. */
  takeLost(seq: number, count: number): void {
    this.#take({ type: 'lost', seq, count })
    this.#next = seq + count
  }

  /** Returns false if text in between was missed. */
  takeText(type: 'delta' | 'partial', text: TextFrame): boolean {
    this.#transcript = reduceTranscript(this.#transcript, { type, ...text })
    return !this.#transcript.inFlight.get(text.item)?.needsResync
  }

  /** Keeps only the latest valid value. */
  takeState(key: StateKey, value: unknown, rev: number): boolean {
    if ((this.#state.get(key)?.rev ?? -1) >= rev) return false
    const read = readStateValue(key, value)
    if (read === undefined) return false
    this.#state.set(key, { value: read, rev })
    return true
  }

  /** Puts older entries of the path before the loaded ones, unless the transcript was replaced meanwhile. */
  prepend({ base }: Oldest, lines: readonly Line[], hasOlder: boolean): boolean {
    if (base !== this.#base) return false
    const snapshot = { ...base.snapshot, lines: [...lines, ...base.snapshot.lines] }
    this.#base = { snapshot, hasOlder }
    const { inFlight, finished } = this.#transcript
    const start = reduceTranscript(emptyTranscript(), { type: 'snapshot', snapshot })
    this.#transcript = { ...this.#since.reduce(reduceTranscript, start), inFlight, finished }
    return true
  }

  /** Keeps only the newest entries of the path. Returns false if there is nothing to drop. */
  forgetOlder(keep: number): boolean {
    const lines = this.#newestLines(keep)
    if (!lines) return false
    const { seq, path, inFlight } = this.#transcript
    const snapshot = { head: { seq }, lines, leafId: path.leafId, fold: foldOfTranscript(this.#transcript) }
    this.#base = { snapshot, hasOlder: true }
    this.#since = []
    this.#transcript = { ...reduceTranscript(emptyTranscript(), { type: 'snapshot', snapshot }), inFlight }
    return true
  }

  /** Oldest first; undefined if they are all there are, or if some of them are lost. */
  #newestLines(count: number): Line[] | undefined {
    const known = new Map(this.#base?.snapshot.lines.map((line) => [line.id, line]))
    for (const input of this.#since) if (input.type === 'line') known.set(input.line.id, input.line)
    const newest = new Piece(count, openCalls(this.#transcript))
    for (let node = this.#transcript.path.leaf; node !== null; node = node.parent) {
      const line = known.get(node.id)
      if (!line) return undefined
      if (newest.add(line) && node.parent !== null) return newest.lines.reverse()
    }
    return undefined
  }

  #begin(wire: WireSnapshot): void {
    const snapshot = snapshotFromWire(wire)
    this.#base = { snapshot, hasOlder: wire.before !== null }
    this.#since = []
    this.#transcript = reduceTranscript(emptyTranscript(), { type: 'snapshot', snapshot })
    this.#cursor = wire.head
  }

  #take(input: TranscriptInput): void {
    const before = this.#transcript
    this.#transcript = reduceTranscript(before, input)
    if (this.#transcript !== before) this.#since.push(input)
  }
}

export interface Base {
  readonly snapshot: SnapshotInput
  readonly hasOlder: boolean
}

/** Where older entries are inserted. */
export interface Oldest {
  readonly base: Base
  readonly seq: number
  readonly parentId: string
}

export interface OlderEntries {
  /** Lines of the path, oldest first. */
  lines: Line[]
  hasOlder: boolean
}

/** Walks up the path from an entry, page by page. Pages are requested by the seq of the line after them. */
export async function readOlder(
  from: { seq: number; parentId: string },
  count: number,
  pageBefore: (seq: number) => Promise<EventPage>,
): Promise<OlderEntries> {
  const older = new Piece(count)
  let wanted: string | null = from.parentId
  let { seq } = from
  while (wanted !== null && seq > 1) {
    const { events } = await pageBefore(seq)
    for (const event of events.toReversed()) {
      if (event['id'] !== wanted) continue
      const line = fromDisk(event as unknown as DiskLine, event.seq)
      if (!('parentId' in line)) continue
      wanted = line.parentId
      if (older.add(line)) return { lines: older.lines.reverse(), hasOlder: wanted !== null }
    }
    const [first] = events
    if (!first || first.seq >= seq) break
    seq = first.seq
  }
  return { lines: older.lines.reverse(), hasOlder: false }
}

/** Lines of a path, the newest first. */
class Piece {
  readonly lines: Line[] = []
  readonly #count: number
  readonly #calls: CallsAbove

  constructor(count: number, open?: string[]) {
    this.#count = count
    this.#calls = new CallsAbove(open)
  }

  /** Whether the path can be cut above this line. */
  add(line: Line): boolean {
    this.#calls.goBackTo(line)
    const more = this.lines.push(line) - this.#count
    return more >= (this.#calls.areAny ? CallsAbove.maxReach : 0)
  }
}

/** Calls of the open run whose results are still to come. */
function openCalls({ run, path }: Transcript): string[] {
  if (!run) return []
  return [...path.items].flatMap((item) =>
    item.type === 'assistant' && item.seq > run.seq
      ? item.parts.flatMap((part) => (part.type === 'tool_call' && !part.result ? part.callId : []))
      : [],
  )
}
