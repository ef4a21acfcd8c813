import { readCheckpoint } from './checkpoint.ts'
import { checkLine } from '../line/check-line.ts'
import { fromDisk } from '../line/codec.ts'
import type { Entry } from '../line/entry.ts'
import { SessionError } from '../errors.ts'
import { restoreLargeValues } from '../line/large-values.ts'
import type { ReadableLog } from './log-store.ts'
import { parseLine } from '../line/parse-line.ts'
import { replay } from './replay.ts'
import { SessionState } from '../state/session-state.ts'
import { isGap, UnreadError, type Node } from '../state/tree.ts'

/** The folded state of one log. Reads the lines of nodes on demand. */
export class SessionReader {
  readonly log: ReadableLog
  state: SessionState
  /** Only the first part of the checkpoint has been read. */
  #isBrief: boolean
  #cache = new EntryCache()

  private constructor(log: ReadableLog, { state, isBrief }: { state: SessionState; isBrief: boolean }) {
    this.log = log
    this.state = state
    this.#isBrief = isBrief
  }

  /**
   * Reads from the checkpoint on, or the whole log if the checkpoint does not match. A brief reader starts with
   * the newest nodes and reads older ones on demand.
   */
  static async open(log: ReadableLog, options: { whole?: boolean; isBrief?: boolean } = {}): Promise<SessionReader> {
    const brief = options.isBrief && !options.whole ? await quickState(log, { isBrief: true }) : undefined
    if (brief) return new SessionReader(log, { state: brief, isBrief: true })
    const state = options.whole ? undefined : await quickState(log)
    return new SessionReader(log, { state: state ?? (await wholeState(log)), isBrief: false })
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
    const found = new Map<Node, Entry>()
    for (const node of nodes) {
      const entry = isGap(node) ? gapEntry(node) : this.#cache.get(node)
      if (entry) found.set(node, entry)
    }
    const missing = nodes.filter((node) => !found.has(node))
    const lines = await this.log.readAt(missing)
    for (const [index, node] of missing.entries()) {
      const entry = await this.#decode(node, lines[index] ?? new Uint8Array())
      found.set(node, entry)
      this.#cache.put(node, entry)
    }
    return nodes.map((node) => found.get(node) as Entry)
  }

  /** Empties the cache after a compaction: entries before it are rarely needed again. */
  forgetEntries(): void {
    this.#cache = new EntryCache()
  }

  async #decode(node: Node, bytes: Uint8Array): Promise<Entry> {
    const parsed = parseLine(bytes)
    if (parsed.type === 'damaged') {
      if (!this.state.tree.isWhole) throw new UnreadError(`Entry ${node.id} cannot be read any more`)
      return gapEntry(node)
    }
    return checkLine(fromDisk(await restoreLargeValues(parsed.line, this.log), node.seq)) as Entry
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

async function wholeState(log: ReadableLog): Promise<SessionState> {
  const state = new SessionState({ isWhole: true })
  await replay(log, state, { from: 0 })
  return state
}

function gapEntry(node: Node): Entry {
  const parentId = node.parent === null || node.parent === 'unread' ? null : node.parent.id
  return { type: 'gap', id: node.id, parentId, seq: node.seq, timestamp: '', gap: { reason: 'this line was lost' } }
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

const maxHeldBytes = 32 * 1024 * 1024
