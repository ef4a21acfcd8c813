import { PersistentMap } from '../util/persistent-map.ts'
import { noContribution, type Contribution, type GapItem } from './transcript-items.ts'
import type { TranscriptNode } from './transcript-path.ts'

/** All nodes of the log, on every branch, so that any leaf can be shown. Resolves damage as `SessionState` does. */
export interface TranscriptTree {
  readonly nodes: PersistentMap<TranscriptNode>
  /** The last node in the log, notes included. */
  readonly newest: TranscriptNode | null
  readonly lastGap: TranscriptNode | null
  /** Lost lines whose ids are unknown: that many unknown parents may be among them. */
  readonly adoptable: number
  /**
   * The seq of the first line applied. If that is not the first of the log, an unknown entry is not damage: it
   * is not loaded.
   */
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

/** A line and its parent. */
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

/**
 * The node that a line refers to. An id that no earlier line had may belong to a lost line; otherwise a gap is
 * inserted here.
 */
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

/** A gap follows the last node, wherever that is in the tree. */
export function addGap(tree: TranscriptTree, item: GapItem): Placed {
  const { id, seq, timestamp } = item
  const placed = insert(tree, { id, seq, timestamp, parent: tree.newest, item, results: [] })
  const adoptable = item.gap.type === 'lost' ? item.gap.lines : 0
  return { ...placed, tree: { ...placed.tree, lastGap: placed.node, adoptable } }
}

/** A repeated id replaces the first node; children of the first keep it. */
function insert(tree: TranscriptTree, node: TranscriptNode): Placed {
  return { tree: { ...tree, nodes: tree.nodes.set(node.id, node), newest: node }, node }
}
