import type { Entry } from '../line/entry.ts'
import type { Node, Tree } from '../state/tree.ts'

export interface TreeNode {
  entry: Entry
  children: TreeNode[]
  /** The latest label of this entry, if it has one. */
  label?: string
}

/** Builds the tree: roots, with their children in log order. */
export async function buildTree(
  tree: Tree,
  labels: ReadonlyMap<string, string>,
  entriesOf: (nodes: readonly Node[]) => Promise<Entry[]>,
): Promise<TreeNode[]> {
  const nodes = [...new Set(tree.all())]
  const entries = await entriesOf(nodes)
  const views = new Map<Node, TreeNode>()
  for (const [index, node] of nodes.entries()) {
    const label = labels.get(node.id)
    views.set(node, { entry: entries[index] as Entry, children: [], ...(label !== undefined && { label }) })
  }
  const roots: TreeNode[] = []
  for (const [node, view] of views) {
    const parent = node.parent === null || node.parent === 'unread' ? undefined : views.get(node.parent)
    if (parent) parent.children.push(view)
    else roots.push(view)
  }
  return roots
}
