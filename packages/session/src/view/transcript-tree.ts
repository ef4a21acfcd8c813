import { PersistentMap } from '../util/persistent-map.ts'
import { noContribution, type Contribution, type GapItem } from './transcript-items.ts'
import type { TranscriptNode } from './transcript-path.ts'

/** All nodes of the log, of every branch, so that a move of the leaf can be shown. It settles damage as `SessionState` does. */
export interface TranscriptTree {
  readonly nodes: PersistentMap<TranscriptNode>
  /** The last node in the log, notes included. */
  readonly newest: TranscriptNode | null
  readonly lastGap: TranscriptNode | null
  /** Lost lines whose ids nobody has asked for yet: so many unknown parents may be one of them. */
  readonly adoptable: number
  /** The first line taken in. If it is not the first of the log, an unknown entry is no damage: it has not been loaded. */
  readonly firstSeq: number
}

export const emptyTree: TranscriptTree = {
  nodes: PersistentMap.empty(),
  newest: null,
  lastGap: null,
  adoptable: 0,
  firstSeq: 0,
}

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
  if (contribution.item?.type !== 'gap') return placed
  return { ...placed, tree: { ...placed.tree, lastGap: placed.node, adoptable: 1 } }
}

/** The node that a line names. An id that no line before it had may be that of a lost line, else a gap is made for it here. */
export function findNode(tree: TranscriptTree, named: Omit<NodePlace, 'parentId'>): Placed {
  const { id } = named
  const node = tree.newest?.id === id ? tree.newest : tree.nodes.get(id)
  if (node) return { tree, node }
  const isPartial = tree.firstSeq > 1
  if (tree.lastGap && (isPartial || tree.adoptable > 0)) {
    const adoptable = Math.max(0, tree.adoptable - 1)
    return { tree: { ...tree, adoptable, nodes: tree.nodes.set(id, tree.lastGap) }, node: tree.lastGap }
  }
  const gap: GapItem['gap'] = { type: isPartial ? 'not_loaded' : 'missing' }
  return addGap(tree, { type: 'gap', ...named, gap })
}

/** A gap stands behind the last node, wherever that is in the tree. */
export function addGap(tree: TranscriptTree, item: GapItem): Placed {
  const { id, seq, timestamp } = item
  const placed = insert(tree, { id, seq, timestamp, parent: tree.newest, item, results: [] })
  const adoptable = item.gap.type === 'lost' ? item.gap.lines : 0
  return { ...placed, tree: { ...placed.tree, lastGap: placed.node, adoptable } }
}

/** An id that comes again replaces the first; what hangs on the first keeps it. */
function insert(tree: TranscriptTree, node: TranscriptNode): Placed {
  return { tree: { ...tree, nodes: tree.nodes.set(node.id, node), newest: node }, node }
}
