import { PersistentMap } from './persistent-map.ts'
import { noContribution, type Contribution, type GapItem } from './transcript-items.ts'
import type { TranscriptNode } from './transcript-path.ts'

/** All nodes of the log, of every branch, so that a move of the leaf can be shown. It settles damage as `SessionState` does. */
export interface TranscriptTree {
  readonly nodes: PersistentMap<TranscriptNode>
  /** The last node in the log, notes included. */
  readonly newest: TranscriptNode | null
  readonly lastGap: TranscriptNode | null
  /** The first line taken in. If it is not the first of the log, an unknown entry is no damage: it has not been loaded. */
  readonly firstSeq: number
}

export const emptyTree: TranscriptTree = { nodes: PersistentMap.empty(), newest: null, lastGap: null, firstSeq: 0 }

interface Placed {
  tree: TranscriptTree
  node: TranscriptNode
}

/** A line, and where it hangs. */
interface NodePlace {
  id: string
  parentId: string | null
  seq: number
  timestamp: string
}

export function addNode(tree: TranscriptTree, place: NodePlace, contribution: Contribution = noContribution): Placed {
  const { id, parentId, seq, timestamp } = place
  const above = parentId === null ? { tree, node: null } : findNode(tree, { id: parentId, seq, timestamp })
  const placed = insert(above.tree, { id, seq, timestamp, parent: above.node, ...contribution })
  return contribution.item?.type === 'gap' ? { ...placed, tree: { ...placed.tree, lastGap: placed.node } } : placed
}

/** The node that a line names. An id that no line before it had stands for the last gap, or for one made here. */
export function findNode(tree: TranscriptTree, named: Omit<NodePlace, 'parentId'>): Placed {
  const { id } = named
  const node = tree.newest?.id === id ? tree.newest : tree.nodes.get(id)
  if (node) return { tree, node }
  if (tree.lastGap) return { tree: { ...tree, nodes: tree.nodes.set(id, tree.lastGap) }, node: tree.lastGap }
  const gap: GapItem['gap'] = { type: tree.firstSeq > 1 ? 'not_loaded' : 'missing' }
  return addGap(tree, { type: 'gap', ...named, gap })
}

/** A gap stands behind the last node, wherever that is in the tree. */
export function addGap(tree: TranscriptTree, item: GapItem): Placed {
  const { id, seq, timestamp } = item
  const placed = insert(tree, { id, seq, timestamp, parent: tree.newest, item, results: [] })
  return { ...placed, tree: { ...placed.tree, lastGap: placed.node } }
}

/** An id that comes again replaces the first; what hangs on the first keeps it. */
function insert(tree: TranscriptTree, node: TranscriptNode): Placed {
  return { tree: { ...tree, nodes: tree.nodes.set(node.id, node), newest: node }, node }
}
