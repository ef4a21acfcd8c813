import {
  emptyTranscript,
  foldOfTranscript,
  fromDisk,
  reduceTranscript,
  type DiskLine,
  type Line,
  type SnapshotInput,
  type Transcript,
  type TranscriptInput,
} from '@tapetree/session'
import { isResult } from './older-entries.ts'
import type { Attached, Cursor, TextFrame } from './protocol/frames.ts'
import type { StateKey } from './protocol/state-values.ts'
import { snapshotFromWire, type WireSnapshot } from './protocol/wire-snapshot.ts'
import { readStateValue, type StateValues } from './state-values.ts'

/** What is known here of a session that is somewhere else: the fold of what came over the wire, and up to where. */
export class Replica {
  #transcript: Transcript = emptyTranscript()
  #state = new Map<StateKey, { value: unknown; rev: number }>()
  #cursor: Cursor | undefined
  /** The seq of the line that must come next. */
  #next = 1
  #nextAtPong: number | undefined
  #base: Base | undefined
  /** What has come since the snapshot, so that older entries can be put before it, or left out. The transcript holds the same content. */
  #since: TranscriptInput[] = []

  get transcript(): Transcript {
    return this.#transcript
  }

  /** The last line that can be named to the server. */
  get cursor(): Cursor | undefined {
    return this.#cursor
  }

  /** Undefined where the transcript goes back to the first entry. */
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

  /** False where what the server goes on with does not join what is here. */
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
    // The text in flight is told again from its beginning; what flew before a restart may never land.
    if (this.#transcript.inFlight.size > 0) this.#transcript = { ...this.#transcript, inFlight: new Map() }
    return true
  }

  /** Called with each pong: whether nothing has come since the last one although the server has more. */
  isStuck(head: number): boolean {
    const isStuck = this.#nextAtPong === this.#next && this.#next <= head
    this.#nextAtPong = this.#next
    return isStuck
  }

  /** Forgets where it is: the next time it is told everything. */
  forgetCursor(): void {
    this.#cursor = undefined
  }

  /** Where a line stands: only the next one may be taken in. One that is known was sent twice, and says nothing new. */
  place(seq: number): 'known' | 'next' | 'gap' {
    if (seq === this.#next) return 'next'
    return seq < this.#next ? 'known' : 'gap'
  }

  /** False where the session has gone on from an entry that is not here: its path has to be told from the server. */
  takeLine(disk: DiskLine, { seq, crc }: Cursor): boolean {
    const line = fromDisk(disk, seq)
    this.#take({ type: 'line', line })
    this.#cursor = { seq, crc }
    this.#next = seq + 1
    const { leaf } = this.#transcript.path
    const from = line.type === 'leaf' ? leaf : leaf?.id === line.id ? leaf.parent : null
    return !(from?.item?.type === 'gap' && from.item.gap.type === 'not_loaded')
  }

  /** The cursor stays at the line before: a line that is lost has no checksum to name it by. */
  takeLost(seq: number, count: number): void {
    this.#take({ type: 'lost', seq, count })
    this.#next = seq + count
  }

  /** False where text in between was missed. */
  takeText(type: 'delta' | 'partial', text: TextFrame): boolean {
    this.#transcript = reduceTranscript(this.#transcript, { type, ...text })
    return !this.#transcript.inFlight.get(text.item)?.needsResync
  }

  /** Only the latest value counts, and only one that can be read. */
  takeState(key: StateKey, value: unknown, rev: number): boolean {
    if ((this.#state.get(key)?.rev ?? -1) >= rev) return false
    const read = readStateValue(key, value)
    if (read === undefined) return false
    this.#state.set(key, { value: read, rev })
    return true
  }

  /** Puts older entries of the path before those that are here, unless all is another story by now. */
  prepend({ base }: Oldest, lines: readonly Line[], hasOlder: boolean): boolean {
    if (base !== this.#base) return false
    const snapshot = { ...base.snapshot, lines: [...lines, ...base.snapshot.lines] }
    this.#base = { snapshot, hasOlder }
    const { inFlight, finished } = this.#transcript
    const start = reduceTranscript(emptyTranscript(), { type: 'snapshot', snapshot })
    this.#transcript = { ...this.#since.reduce(reduceTranscript, start), inFlight, finished }
    return true
  }

  /** Keeps the newest entries of the path, as if it had begun with them. False where there is nothing to forget. */
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

  /** The oldest first; undefined where they are all that there is, or where a part of them is lost. */
  #newestLines(count: number): Line[] | undefined {
    const known = new Map(this.#base?.snapshot.lines.map((line) => [line.id, line]))
    for (const input of this.#since) if (input.type === 'line') known.set(input.line.id, input.line)
    const lines: Line[] = []
    for (let node = this.#transcript.path.leaf; node !== null; node = node.parent) {
      const line = known.get(node.id)
      if (!line) return undefined
      lines.push(line)
      if (lines.length >= count && node.parent !== null && !isResult(line)) return lines.reverse()
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

interface Base {
  readonly snapshot: SnapshotInput
  readonly hasOlder: boolean
}

/** Where older entries are put. */
export interface Oldest {
  readonly base: Base
  readonly seq: number
  readonly parentId: string
}
