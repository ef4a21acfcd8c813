import { PersistentList } from '../util/persistent-list.ts'
import { PersistentMap } from '../util/persistent-map.ts'
import {
  callsIn,
  showsTheSame,
  withCall,
  type Contribution,
  type ToolCallPart,
  type ToolCallResult,
  type TranscriptItem,
} from './transcript-items.ts'

/** A node of the tree in a transcript. */
export interface TranscriptNode extends Contribution {
  readonly id: string
  readonly seq: number
  readonly timestamp: string
  readonly parent: TranscriptNode | null
}

/**
 * The items from the root to the leaf, each call with its result on this path. Appending at the leaf extends
 * the items; after a move they are built lazily, so the cost of folding does not depend on the number of
 * branches.
 */
export class TranscriptPath {
  readonly leaf: TranscriptNode | null
  /** Running calls: started, without a result, in an open run. */
  readonly #started: ReadonlySet<string>
  /** The last items built: items that look the same keep their identity. */
  readonly #earlier: Shown
  #shown: Shown | undefined

  private constructor(parts: PathParts) {
    this.leaf = parts.leaf
    this.#started = parts.started
    this.#earlier = parts.earlier
    this.#shown = parts.shown
  }

  static empty(): TranscriptPath {
    return new TranscriptPath({ leaf: null, started: noCalls, earlier: nothingShown, shown: nothingShown })
  }

  get leafId(): string | null {
    return this.leaf?.id ?? null
  }

  /** Calls that were started and have no result yet. */
  get running(): ReadonlySet<string> {
    return this.#started
  }

  /**
   * Oldest first. The list and each item keep their identity, on this path and those derived from it, until
   * they look different.
   */
  get items(): PersistentList<TranscriptItem> {
    return this.#show().items
  }

  /** Extends the path to a child of the leaf, or moves to another branch: an appended node is always the leaf. */
  append(node: TranscriptNode): TranscriptPath {
    const settled = [...callsIn(node.item), ...node.results].map(({ callId }) => callId)
    const ended = this.#without(settled)
    if (node.parent !== this.leaf) return ended.moveTo(node)
    return ended.#change({ leaf: node, shown: ended.#shown && extend(ended.#shown, node) })
  }

  moveTo(node: TranscriptNode | null): TranscriptPath {
    if (node === this.leaf) return this
    return this.#change({ leaf: node, earlier: this.#shown ?? this.#earlier, shown: undefined })
  }

  startCall(callId: string): TranscriptPath {
    const shown = this.#shown && setStatus(this.#shown, callId, 'running')
    return this.#change({ started: new Set([...this.#started, callId]), shown })
  }

  /** No call runs after its run ended. */
  endRun(): TranscriptPath {
    return this.#without([...this.#started])
  }

  /** Marks these calls as not running; a shown call is pending again until its result is added. */
  #without(callIds: readonly string[]): TranscriptPath {
    const running = callIds.filter((callId) => this.#started.has(callId))
    if (running.length === 0) return this
    const started = new Set([...this.#started].filter((callId) => !running.includes(callId)))
    let shown = this.#shown
    for (const callId of running) shown &&= setStatus(shown, callId, 'pending')
    return this.#change({ started, shown })
  }

  #show(): Shown {
    this.#shown ??= putTogether(this.leaf, { started: this.#started, earlier: this.#earlier })
    return this.#shown
  }

  #change(changed: Partial<PathParts>): TranscriptPath {
    const parts = { leaf: this.leaf, started: this.#started, earlier: this.#earlier, shown: this.#shown }
    return new TranscriptPath({ ...parts, ...changed })
  }
}

interface PathParts {
  leaf: TranscriptNode | null
  started: ReadonlySet<string>
  earlier: Shown
  shown: Shown | undefined
}

interface Shown {
  readonly items: PersistentList<TranscriptItem>
  /** The newest call of each id on the path. Some providers reuse ids in every message. */
  readonly calls: PersistentMap<CallPlace>
}

interface CallPlace {
  /** Index of the item, and of the call among the item's parts. */
  readonly index: number
  readonly part: number
}

const noCalls: ReadonlySet<string> = new Set()
const nothingShown: Shown = { items: PersistentList.empty(), calls: PersistentMap.empty() }

function putTogether(leaf: TranscriptNode | null, known: { started: ReadonlySet<string>; earlier: Shown }): Shown {
  let shown = nothingShown
  for (const node of pathTo(leaf)) shown = extend(shown, node)
  for (const callId of known.started) shown = setStatus(shown, callId, 'running')
  return { ...shown, items: keepIdentities(shown.items, known.earlier.items) }
}

function pathTo(leaf: TranscriptNode | null): TranscriptNode[] {
  const nodes: TranscriptNode[] = []
  for (let node = leaf; node !== null; node = node.parent) nodes.push(node)
  return nodes.reverse()
}

function extend(shown: Shown, node: TranscriptNode): Shown {
  let { items, calls } = shown
  if (node.item) {
    for (const { callId, part } of callsIn(node.item)) calls = calls.set(callId, { index: items.length, part })
    items = items.push(node.item)
  }
  const unasked: ToolCallResult[] = []
  for (const result of node.results) {
    const answered = answer({ items, calls }, result)
    if (answered) items = answered
    else unasked.push(result)
  }
  if (unasked.length > 0) {
    const { id, seq, timestamp } = node
    items = items.push({ type: 'tool_result', id, seq, timestamp, results: unasked })
  }
  return { items, calls }
}

/** The first result stands; undefined if the call has one already or is not on this path. */
function answer(shown: Shown, result: ToolCallResult): PersistentList<TranscriptItem> | undefined {
  return changeCall(shown, result.callId, (call) => ({
    ...call,
    status: result.isError ? 'failed' : 'completed',
    result,
  }))
}

function setStatus(shown: Shown, callId: string, status: 'pending' | 'running'): Shown {
  const items = changeCall(shown, callId, (call) => (call.status === status ? call : { ...call, status }))
  return items ? { ...shown, items } : shown
}

function changeCall(
  { items, calls }: Shown,
  callId: string,
  change: (call: ToolCallPart) => ToolCallPart,
): PersistentList<TranscriptItem> | undefined {
  const place = calls.get(callId)
  const item = items.at(place?.index ?? items.length)
  if (!place || item?.type !== 'assistant') return undefined
  const call = item.parts[place.part]
  if (call?.type !== 'tool_call' || call.result) return undefined
  const changed = change(call)
  return changed === call ? items : items.with(place.index, withCall(item, { part: place.part, call: changed }))
}

function keepIdentities(
  items: PersistentList<TranscriptItem>,
  earlier: PersistentList<TranscriptItem>,
): PersistentList<TranscriptItem> {
  let kept = items
  let index = 0
  let isSame = items.length === earlier.length
  for (const item of items) {
    const before = earlier.at(index)
    if (!before || !showsTheSame(before, item)) isSame = false
    else if (before !== item) kept = kept.with(index, before)
    index++
  }
  return isSame ? earlier : kept
}
