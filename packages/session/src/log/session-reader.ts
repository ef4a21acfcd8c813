import { readCheckpoint } from './checkpoint.ts'
import { checkLine } from '../line/check-line.ts'
import { fromParsed } from '../line/codec.ts'
import type { DiskLine } from '../line/line.ts'
import type { Entry } from '../line/entry.ts'
import { SessionError } from '../errors.ts'
import { hasMovedValues, restoreLargeValues } from '../line/large-values.ts'
import type { ReadableLog } from './log-store.ts'
import { parseLine } from '../line/parse-line.ts'
import type { SealedLine } from '../line/seal-line.ts'
import { replay, type Watch } from './replay.ts'
import { SessionState } from '../state/session-state.ts'
import { isGap, UnreadError, type Node } from '../state/tree.ts'

interface ReaderStart {
  state: SessionState
  isBrief: boolean
  parsed?: ParsedMessages
}

/** The folded state of one log. Reads the lines of nodes on demand. */
export class SessionReader {
  readonly log: ReadableLog
  state: SessionState
  /** Only the first part of the checkpoint has been read. */
  #isBrief: boolean
  #cache = new EntryCache()
  /** Released by the first read of more than one entry, which is a context or a screen. */
  #parsed: ParsedMessages | undefined
  readonly #new = new NewLines()

  private constructor(log: ReadableLog, { state, isBrief, parsed }: ReaderStart) {
    this.log = log
    this.state = state
    this.#isBrief = isBrief
    this.#parsed = parsed
  }

  /**
   * Reads from the checkpoint on, or the whole log if the checkpoint does not match. A brief reader starts with
   * the newest nodes and reads older ones on demand.
   */
  static async open(log: ReadableLog, options: { whole?: boolean; isBrief?: boolean } = {}): Promise<SessionReader> {
    const brief = options.isBrief && !options.whole ? await quickState(log, { isBrief: true }) : undefined
    if (brief) return new SessionReader(log, { state: brief, isBrief: true })
    if (options.whole) return new SessionReader(log, { state: await wholeState(log), isBrief: false })
    const quick = await quickState(log)
    if (quick) return new SessionReader(log, { state: quick, isBrief: false })
    const parsed = new ParsedMessages()
    return new SessionReader(log, { state: await wholeState(log, parsed.watch), isBrief: false, parsed })
  }

  /** Applies lines written since the last read, for a session that another process writes. */
  async refresh(): Promise<void> {
    try {
      // After a failed write the owner truncates its partial lines, which this reader may have read already.
      if (!(await this.#endsAsBefore())) throw new UnreadError('The end of the log was taken back')
      await replay(this.log, this.state, { from: this.state.end })
    } catch (error) {
      if (!(error instanceof UnreadError)) throw error
      const state = this.#isBrief ? await quickState(this.log) : undefined
      this.#isBrief = false
      this.state = state ?? (await wholeState(this.log))
    }
  }

  async #endsAsBefore(): Promise<boolean> {
    const { last } = this.state
    if (last.seq === 0) return true
    const [bytes] = await this.log.readAt([last])
    const parsed = bytes && parseLine(bytes)
    return parsed?.type === 'line' && parsed.crc === last.crc
  }

  /**
   * Runs a query on the state. If the answer is unread, or a line no longer matches the checkpoint, reads the
   * whole log and retries.
   */
  async ask<T>(question: (state: SessionState) => T | Promise<T>): Promise<T> {
    for (;;) {
      const { state } = this
      try {
        return await question(state)
      } catch (error) {
        if (!(error instanceof UnreadError) || state.tree.isWhole) throw error
        await this.#readMore()
      }
    }
  }

  /** Reads the rest of the checkpoint; if that is done already, the whole log. */
  async #readMore(): Promise<void> {
    if (this.#isBrief) {
      this.#isBrief = false
      const state = await this.#readCheckpointTo(this.state.end).catch(() => undefined)
      // The checkpoint may be newer than this reader's state.
      if (state?.seq === this.state.seq) {
        if (!this.state.tree.isWhole) this.state = state
        return
      }
    }
    await this.readWhole()
  }

  async #readCheckpointTo(end: number): Promise<SessionState | undefined> {
    const state = await readCheckpoint(this.log)
    if (state && state.end < end) await replay(this.log, state, { from: state.end, to: end })
    return state
  }

  /** Reads up to the line of the current state: later lines may not be durable yet. */
  async readWhole(): Promise<void> {
    if (this.state.tree.isWhole) return
    const whole = new SessionState({ isWhole: true })
    let reached = -1
    while (whole.end < this.state.end && whole.end > reached) {
      reached = whole.end
      await replay(this.log, whole, { from: whole.end, to: this.state.end })
    }
    // A concurrent query may have read the whole log first.
    if (!this.state.tree.isWhole) this.state = whole
  }

  async nodeOf(entryId: string): Promise<Node> {
    if (!this.state.tree.get(entryId) && this.#isBrief) await this.#readMore()
    if (!this.state.tree.get(entryId)) await this.readWhole()
    const node = this.state.tree.get(entryId)
    if (!node) throw new SessionError('entry-not-found', `No entry ${entryId} in this session.`)
    return node
  }

  /** The entries of these nodes, with their large values restored. */
  async entriesOf(nodes: readonly Node[]): Promise<Entry[]> {
    const entries: (Entry | undefined)[] = nodes.map((node) => (isGap(node) ? gapEntry(node) : this.#cache.get(node)))
    const cachedFrom = firstToCache(nodes)
    const parsed = this.#parsed
    if (nodes.length > 1) this.#parsed = undefined
    const missing: number[] = []
    const keep = (index: number, entry: Entry): void => {
      entries[index] = entry
      const node = nodes[index] as Node
      if (index >= cachedFrom) this.#cache.put(node, entry)
    }
    for (let index = 0; index < entries.length; index++) {
      if (entries[index] !== undefined) continue
      const node = nodes[index] as Node
      const line = parsed?.get(node.seq)
      if (line && !hasMovedValues(line)) keep(index, checkLine(fromParsed(line, node.seq)) as Entry)
      else missing.push(index)
    }
    for (let from = 0; from < missing.length; from += maxReadNodes) {
      const some = missing.slice(from, from + maxReadNodes)
      const lines = await this.#linesOf(some.map((index) => nodes[index] as Node))
      for (let place = 0; place < some.length; place++) {
        const index = some[place] as number
        const node = nodes[index] as Node
        const decoded = this.#decode(node, lines[place] ?? new Uint8Array())
        // A promise for each line would take as long as decoding it.
        keep(index, decoded instanceof Promise ? await decoded : decoded)
      }
    }
    return entries as Entry[]
  }

  /** Keeps a line that was just appended until it is read: the next turn need not ask the store for it. */
  keepNew(line: SealedLine): void {
    this.#new.put(line)
  }

  async #linesOf(nodes: readonly Node[]): Promise<Uint8Array[]> {
    const lines = nodes.map(({ seq }) => this.#new.take(seq))
    const unknown = nodes.filter((_, index) => lines[index] === undefined)
    const read = unknown.length === 0 ? [] : await this.log.readAt(unknown)
    let next = 0
    return lines.map((line) => line ?? read[next++] ?? new Uint8Array())
  }

  /** Empties the cache after a compaction: entries before it are rarely needed again. */
  forgetEntries(): void {
    this.#cache = new EntryCache()
    this.#parsed = undefined
  }

  #decode(node: Node, bytes: Uint8Array): Entry | Promise<Entry> {
    const parsed = parseLine(bytes)
    if (parsed.type === 'damaged') {
      if (!this.state.tree.isWhole) throw new UnreadError(`Entry ${node.id} cannot be read any more`)
      return gapEntry(node)
    }
    const { line } = parsed
    if (!hasMovedValues(line)) return checkLine(fromParsed(line, node.seq)) as Entry
    return restoreLargeValues(line, this.log).then((whole) => checkLine(fromParsed(whole, node.seq)) as Entry)
  }
}

/** The state from the checkpoint on, if one matches and all lines after it can be placed. */
export async function quickState(
  log: ReadableLog,
  options: { isBrief?: boolean } = {},
): Promise<SessionState | undefined> {
  const state = await readCheckpoint(log, options)
  if (!state) return undefined
  try {
    await replay(log, state, { from: state.end })
    return state
  } catch (error) {
    if (error instanceof UnreadError) return undefined
    throw error
  }
}

async function wholeState(log: ReadableLog, watch?: Watch): Promise<SessionState> {
  const state = new SessionState({ isWhole: true })
  await replay(log, state, { from: 0, ...(watch && { watch }) })
  return state
}

function gapEntry(node: Node): Entry {
  const parentId = node.parent === null || node.parent === 'unread' ? null : node.parent.id
  return { type: 'gap', id: node.id, parentId, seq: node.seq, timestamp: '', gap: { reason: 'this line was lost' } }
}

/** The entries before this index would be evicted again by those after it. */
function firstToCache(nodes: readonly Node[]): number {
  let size = 0
  for (let index = nodes.length - 1; index >= 0; index--) {
    size += (nodes[index] as Node).size
    if (size > maxHeldBytes) return index + 1
  }
  return 0
}

/** Caches the most recently used entries, so that the next turn does not reread its context. Bounded by line size. */
class EntryCache {
  readonly #held = new Map<Node, Entry>()
  #size = 0

  get(node: Node): Entry | undefined {
    return this.#held.get(node)
  }

  put(node: Node, entry: Entry): void {
    // Delete and reinsert: the map's order is the order of use.
    if (this.#held.delete(node)) this.#size -= node.size
    this.#held.set(node, entry)
    this.#size += node.size
    if (this.#size > maxHeldBytes) this.#evict()
  }

  /** Evicts a quarter at once: deleting a map's first key repeatedly steps over all deleted ones. */
  #evict(): void {
    for (const oldest of this.#held.keys()) {
      if (this.#size <= maxHeldBytes * 0.75) return
      this.#held.delete(oldest)
      this.#size -= oldest.size
    }
  }
}

const encoder = new TextEncoder()

/** Lines of entries that were appended and not read yet. */
class NewLines {
  readonly #texts = new Map<number, string>()
  #size = 0

  put({ seq, text }: SealedLine): void {
    this.#size += text.length
    if (this.#size > maxNewLength) {
      this.#texts.clear()
      this.#size = 0
    } else this.#texts.set(seq, text)
  }

  take(seq: number): Uint8Array | undefined {
    const text = this.#texts.get(seq)
    if (text === undefined) return undefined
    this.#texts.delete(seq)
    this.#size -= text.length
    return encoder.encode(text)
  }
}

/** The messages that opening has parsed, in the order of their seq. */
class ParsedMessages {
  #seqs: number[] = []
  #lines: DiskLine[] = []
  #size = 0

  /** Keeps nothing of a log with more messages than the limit; they are read again. */
  readonly watch: Watch = ({ line, seq, size }) => {
    if (line.type !== 'message' || this.#size > maxParsedBytes) return
    this.#size += size
    if (this.#size > maxParsedBytes) {
      this.#seqs = []
      this.#lines = []
    } else {
      this.#seqs.push(seq)
      this.#lines.push(line)
    }
  }

  get(seq: number): DiskLine | undefined {
    let low = 0
    let high = this.#seqs.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#seqs[middle] as number) < seq) low = middle + 1
      else high = middle
    }
    return this.#seqs[low] === seq ? this.#lines[low] : undefined
  }
}

/** How many lines are read at once; their bytes are freed when they are decoded. */
const maxReadNodes = 4096
/** Parsing a line again takes longer than all else that a context needs. */
const maxParsedBytes = 96 * 1024 * 1024
const maxHeldBytes = 32 * 1024 * 1024
/** Of all new lines together, in characters. Beyond it, they are read from the log. */
const maxNewLength = 256 * 1024
