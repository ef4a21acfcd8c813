import { payloadOf } from '../line/codec.ts'
import { isObject } from '../util/json.ts'
import { isNote, type DiskLine, type Position } from '../line/line.ts'

/** A node of the tree: the position of its line, without the content. */
export interface Node extends Position {
  readonly id: string
  readonly seq: number
  readonly type: string
  /** `unread` if the parent lies above the part that a quick open has read. */
  readonly parent: Node | null | 'unread'
  readonly isNote: boolean
  /** The newest node of each kind on the path from the root to this node, inclusive. */
  readonly inForce: InForce
  /** Only for a compaction: the first kept entry. */
  readonly firstKeptId?: string
}

export interface InForce {
  readonly system: Node | null
  readonly model: Node | null
  readonly thinking: Node | null
  readonly compaction: Node | null
}

export const nothingInForce: InForce = { system: null, model: null, thinking: null, compaction: null }

/** Thrown if an answer lies above the part that was read; the session then reads the whole log and retries. */
export class UnreadError extends Error {}

/** All nodes that were read, by id. A parent is resolved when its child is added, so cycles are impossible. */
export class Tree {
  readonly #byId = new Map<string, Node>()
  /** Newer nodes that are not in the map yet: reading a log and building its context need no lookup. */
  #unlisted: Node[] = []
  /** Ids mostly rise. One above all others is new, which is quicker to see than looking it up. */
  #greatestId = ''
  /** Nodes whose id was reused by a later line. */
  readonly #replaced: Node[] = []
  #hasTwins = false
  #newest: Node | null = null
  /** False after a quick open: only the nodes that the context needs are loaded. */
  readonly isWhole: boolean

  constructor(options: { isWhole: boolean }) {
    this.isWhole = options.isWhole
  }

  /** The nodes by id. */
  get #nodes(): Map<string, Node> {
    if (this.#unlisted.length === 0) return this.#byId
    for (const node of this.#unlisted) this.#byId.set(node.id, node)
    this.#unlisted = []
    return this.#byId
  }

  get size(): number {
    return this.#nodes.size
  }

  /** Fills an empty tree with nodes that have different ids, oldest first. */
  restore(nodes: readonly Node[]): void {
    for (const node of nodes) this.#noteId(node.id)
    this.#unlisted = [...nodes]
    this.#newest = nodes.at(-1) ?? null
  }

  /** True if no node can have this id yet. */
  #noteId(id: string): boolean {
    if (id <= this.#greatestId) return false
    this.#greatestId = id
    return true
  }

  /** The last node in the log, notes included. */
  get newest(): Node | null {
    return this.#newest
  }

  get(id: string): Node | undefined {
    // Most entries are children of the one just before them.
    return this.#newest?.id === id ? this.#newest : this.#nodes.get(id)
  }

  /** True if an id occurred twice, gaps included: its meaning then depends on the position in the log. */
  get hasTwins(): boolean {
    return this.#hasTwins
  }

  /** How many lines reused the id of an earlier one. */
  get twinCount(): number {
    return this.#replaced.length
  }

  /** In the order of the log. */
  all(): Iterable<Node> {
    if (this.twinCount === 0) return this.#nodes.values()
    return [...this.#replaced, ...this.#nodes.values()].sort((left, right) => left.seq - right.seq)
  }

  add(line: DiskLine, parent: Node | null | 'unread', place: Position & { seq: number }): Node {
    const inherited = parent === null || parent === 'unread' ? nothingInForce : parent.inForce
    const node: Node = {
      id: line.id,
      seq: place.seq,
      type: line.type === 'thinking_level_change' ? 'thinking_level' : line.type,
      parent,
      isNote: isNote(line),
      at: place.at,
      size: place.size,
      inForce: inherited,
    }
    if (line.type !== 'compaction') return this.insert(node)
    const firstKeptId = String(payloadOf(line)['first_kept_entry_id'])
    const firstKept = this.#nodes.get(firstKeptId)
    if (!firstKept && !this.isWhole) throw new UnreadError(`${firstKeptId} has not been read`)
    // If that entry was lost, it may be a gap by now, which has its own id.
    return this.insert({ ...node, firstKeptId: firstKept?.id ?? firstKeptId })
  }

  /** Adds a node whose `inForce` is still its parent's. */
  insert(draft: Node): Node {
    const node = withOwnInForce(draft)
    this.#newest = node
    if (this.#noteId(node.id)) {
      this.#unlisted.push(node)
      return node
    }
    // A repeated id replaces the first node, at its own place in the log; children of the first keep it.
    const nodes = this.#nodes
    const first = nodes.get(node.id)
    if (first) {
      this.#hasTwins = true
      nodes.delete(node.id)
      if (!isGap(first)) this.#replaced.push(first)
    }
    nodes.set(node.id, node)
    return node
  }

  /** A second id for a node: an unknown parent that was resolved to a gap. */
  alias(id: string, node: Node): void {
    this.#noteId(id)
    this.#nodes.set(id, node)
  }
}

/** Makes a node, whose `inForce` is still its parent's, the one in force itself if it sets something. */
export function withOwnInForce(draft: Node): Node {
  const node = draft as { -readonly [K in keyof Node]: Node[K] }
  if (node.type === 'system') node.inForce = { ...node.inForce, system: node }
  else if (node.type === 'model_change') node.inForce = { ...node.inForce, model: node }
  else if (node.type === 'thinking_level') node.inForce = { ...node.inForce, thinking: node }
  else if (node.type === 'compaction') node.inForce = { ...node.inForce, compaction: node }
  return node
}

/** Whether the node stands for a lost line. A stored line may have the type `gap` too, but it has a size. */
export function isGap(node: Node): boolean {
  return node.size === 0
}

/** From the root to the node, inclusive. */
export function pathTo(node: Node | null): Node[] {
  const path: Node[] = []
  for (let step = node; step !== null; step = parentOf(step)) path.push(step)
  return path.reverse()
}

export interface ContextPath {
  /** The nodes of the context, oldest first. */
  nodes: Node[]
  /** The newest compaction on the path, if there is one. */
  compaction: Node | null
  /** The first kept entry is not on this path: damage to report. */
  keptIsMissing: boolean
}

/** The part of the path that the model sees. Its cost depends on the context, not on the history. */
export function contextPathTo(leaf: Node | null): ContextPath {
  const compaction = leaf?.inForce.compaction ?? null
  if (!compaction) return { nodes: pathTo(leaf), compaction, keptIsMissing: false }
  const nodes: Node[] = []
  let afterCompaction = 0
  for (let step = leaf; step !== null; step = parentOf(step)) {
    nodes.push(step)
    if (step === compaction) afterCompaction = nodes.length
    if (afterCompaction > 0 && step.id === compaction.firstKeptId)
      return { nodes: nodes.reverse(), compaction, keptIsMissing: false }
  }
  return { nodes: nodes.slice(0, afterCompaction).reverse(), compaction, keptIsMissing: true }
}

function parentOf(node: Node): Node | null {
  if (node.parent === 'unread') throw new UnreadError(`The parent of ${node.id} has not been read`)
  return node.parent
}

/** The text of a label line, nested or flat; an empty one removes the label. */
export function labelOf(line: DiskLine): { targetId: string; label: string } | undefined {
  const payload = payloadOf(line)
  const targetId = payload['target_id']
  const label = isObject(line['label']) ? payload['label'] : line['label']
  if (typeof targetId !== 'string') return undefined
  return { targetId, label: typeof label === 'string' ? label : '' }
}
