import { lineKind } from '@tapetree/session/format'
import type { TreeNode } from '@tapetree/session/view'

/** A part of the tree without branch points. */
export interface Segment {
  /** 0 is the current path. */
  number: number
  /** How many branch points lead here. */
  depth: number
  nodes: TreeNode[]
  /** The entry that it branches off from; null if that is before the first entry. */
  from: TreeNode | null
}

/** The tree as segments: first the path to the leaf, then the branches. Leaves out notes. */
export function segmentsOf(roots: readonly TreeNode[], leafId: string | null): Segment[] {
  const path = pathTo(roots, leafId)
  const segments: Segment[] = []
  const starts: { first: TreeNode; from: TreeNode | null; depth: number }[] = []
  /** The child that continues the segment; each other child begins a new one. Nothing continues after the leaf. */
  const goOn = (children: readonly TreeNode[], from: TreeNode | null, depth: number): TreeNode | undefined => {
    const isLeaf = (from?.entry.id ?? null) === leafId
    const next = children.find((child) => path.has(child)) ?? (isLeaf ? undefined : children.at(-1))
    for (const first of children) if (first !== next) starts.push({ first, from, depth: depth + 1 })
    return next
  }
  const grow = (first: TreeNode | undefined, from: TreeNode | null, depth: number): void => {
    const nodes: TreeNode[] = []
    segments.push({ number: segments.length, depth, nodes, from })
    for (let node = first; node; node = goOn(node.children.filter(isShown), node, depth)) nodes.push(node)
  }
  grow(goOn(roots.filter(isShown), null, 0), null, 0)
  // Growing a segment may add more.
  for (const { first, from, depth } of starts) grow(first, from, depth)
  return segments
}

/** Notes hang beside the path, except in imported files, in which entries may follow them. */
function isShown({ entry, children }: TreeNode): boolean {
  return lineKind(entry.type) !== 'note' || children.length > 0
}

function pathTo(roots: readonly TreeNode[], leafId: string | null): Set<TreeNode> {
  const parents = new Map<TreeNode, TreeNode | undefined>()
  const open: { node: TreeNode; parent?: TreeNode }[] = roots.map((node) => ({ node }))
  let leaf: TreeNode | undefined
  for (let step = open.pop(); step; step = open.pop()) {
    const { node, parent } = step
    parents.set(node, parent)
    if (node.entry.id === leafId) leaf = node
    for (const child of node.children) open.push({ node: child, parent: node })
  }
  const path = new Set<TreeNode>()
  for (let node = leaf; node; node = parents.get(node)) path.add(node)
  return path
}
