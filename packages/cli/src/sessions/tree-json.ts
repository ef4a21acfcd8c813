import { toDisk, type Entry, type TreeNode } from '@tapetree/session'

export interface TreeRow {
  /** With the names that it has in the log. */
  entry: Record<string, unknown>
  parent_id: string | null
  label?: string
  subagents?: readonly string[]
}

/** The tree as a list, parents before children: a long session as nested objects is too deep for most readers of JSON. */
export function treeJson(roots: readonly TreeNode[], subagents: ReadonlyMap<string, readonly string[]>): TreeRow[] {
  const rows: TreeRow[] = []
  const open = roots.map((node) => ({ node, parentId: null as string | null })).toReversed()
  for (let step = open.pop(); step; step = open.pop()) {
    const { node, parentId } = step
    const { entry, label, children } = node
    const sessions = subagents.get(entry.id)
    rows.push({
      entry: entryOnDisk(entry),
      parent_id: parentId,
      ...(label !== undefined && { label }),
      ...(sessions && { subagents: sessions }),
    })
    for (const child of children.toReversed()) open.push({ node: child, parentId: entry.id })
  }
  return rows
}

function entryOnDisk(entry: Entry): Record<string, unknown> {
  return { seq: entry.seq, ...toDisk(entry as unknown as { type: string }, entry) }
}
