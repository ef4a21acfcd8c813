import type { Entry, SessionInfo, TreeNode } from '@tapetree/session'

/** A row of the tree. Deeper rows belong to a side branch of the row above. */
export type TreeRow = EntryRow | SubagentRow

export interface EntryRow {
  type: 'entry'
  id: string
  entry: Entry
  label?: string
  depth: number
  /** The first row of a side branch. */
  isBranchStart: boolean
  /** The first row after its side branch, if it begins one; otherwise after its subagents. */
  end: number
  isOnPath: boolean
  isLeaf: boolean
}

interface SubagentRow {
  type: 'subagent'
  /** Of the call alone. */
  id: string
  description: string
  state: SubagentState
  /** Its session, if it is known. */
  sessionId?: string
  depth: number
  isOnPath: boolean
}

type SubagentState = 'running' | 'waiting for you' | 'done' | 'failed' | 'not finished'

export interface TreeData {
  roots: readonly TreeNode[]
  leafId: string | null
  /** The sessions whose parent is this one. */
  subagents?: readonly SessionInfo[]
}

/**
 * All rows in display order, built once. The path to the leaf, and the newest child on side branches, continue straight down. Other
 * children come before it, one step deeper, so that a long session does not drift to the right.
 */
export function indexTree({ roots, leafId, subagents = [] }: TreeData): TreeRow[] {
  const path = pathTo(roots, leafId)
  const results = resultsIn(roots)
  const rows: TreeRow[] = []
  const open: Step[] = stepsFor(entriesAmong(roots), 0, path).reverse()
  // A session of 10,000 entries is 10,000 levels deep: no recursion.
  for (let step = open.pop(); step; step = open.pop()) {
    if (step.type === 'close') {
      step.row.end = rows.length
      continue
    }
    const { node, depth, isBranchStart } = step
    const row = entryRow(node, { depth, isBranchStart, path, leafId })
    rows.push(row, ...subagentRows(node.entry, { depth, isOnPath: row.isOnPath, results, subagents }))
    row.end = rows.length
    if (isBranchStart) open.push({ type: 'close', row })
    for (const next of stepsFor(entriesAmong(node.children), depth, path).reverse()) open.push(next)
  }
  return rows
}

type Step = { type: 'node'; node: TreeNode; depth: number; isBranchStart: boolean } | { type: 'close'; row: EntryRow }

function stepsFor(children: readonly TreeNode[], depth: number, path: ReadonlySet<string>): Step[] {
  const straight = children.find(({ entry }) => path.has(entry.id)) ?? children.at(-1)
  const sides = children.filter((child) => child !== straight)
  const side = (node: TreeNode): Step => ({ type: 'node', node, depth: depth + 1, isBranchStart: true })
  return [
    ...sides.map(side),
    ...(straight ? [{ type: 'node' as const, node: straight, depth, isBranchStart: false }] : []),
  ]
}

/** Labels and names annotate other entries and are not places to go to. Their children move up to their parent. */
function entriesAmong(nodes: readonly TreeNode[]): TreeNode[] {
  if (!nodes.some(isNote)) return [...nodes]
  const entries: TreeNode[] = []
  const open = [...nodes].reverse()
  for (let node = open.pop(); node; node = open.pop()) {
    if (isNote(node)) for (const child of node.children.toReversed()) open.push(child)
    else entries.push(node)
  }
  return entries
}

function isNote({ entry }: TreeNode): boolean {
  return entry.type === 'label' || entry.type === 'session_info'
}

function entryRow(
  { entry, label }: TreeNode,
  place: { depth: number; isBranchStart: boolean; path: ReadonlySet<string>; leafId: string | null },
): EntryRow {
  const { depth, isBranchStart, path, leafId } = place
  const { id } = entry
  const shown = label === undefined || label === '' ? {} : { label }
  return {
    type: 'entry',
    id,
    entry,
    ...shown,
    depth,
    isBranchStart,
    end: 0,
    isOnPath: path.has(id),
    isLeaf: id === leafId,
  }
}

function pathTo(roots: readonly TreeNode[], leafId: string | null): Set<string> {
  const parents = new Map<string, string | null>()
  for (const { entry } of allNodes(roots)) parents.set(entry.id, entry.parentId)
  const path = new Set<string>()
  for (let id = leafId; id !== null && parents.has(id) && !path.has(id); id = parents.get(id) ?? null) path.add(id)
  return path
}

function* allNodes(roots: readonly TreeNode[]): Generator<TreeNode> {
  const open = [...roots]
  for (let node = open.pop(); node; node = open.pop()) {
    yield node
    for (const child of node.children) open.push(child)
  }
}

/** Whether a call failed, by its id. */
function resultsIn(roots: readonly TreeNode[]): Map<string, boolean> {
  const results = new Map<string, boolean>()
  for (const { entry } of allNodes(roots)) {
    if (entry.type !== 'message') continue
    for (const block of entry.message.content) {
      if (block.type === 'tool_result') results.set(block.toolResult.toolUseId, block.toolResult.isError === true)
    }
  }
  return results
}

const taskTool = 'task'

function subagentRows(
  entry: Entry,
  context: {
    depth: number
    isOnPath: boolean
    results: ReadonlyMap<string, boolean>
    subagents: readonly SessionInfo[]
  },
): SubagentRow[] {
  if (entry.type !== 'message') return []
  const { depth, isOnPath, results, subagents } = context
  return entry.message.content.flatMap((block): SubagentRow[] => {
    if (block.type !== 'tool_use' || block.toolUse.name !== taskTool) return []
    const { id, input } = block.toolUse
    const description = typeof input['description'] === 'string' ? input['description'] : taskTool
    // A subagent is named after its task.
    const session = subagents.find(({ name }) => name === description)
    const state = stateOf(session, results.get(id))
    const known = session ? { sessionId: session.id } : {}
    return [{ type: 'subagent', id, description, state, ...known, depth: depth + 1, isOnPath }]
  })
}

function stateOf(session: SessionInfo | undefined, hasFailed: boolean | undefined): SubagentState {
  if (hasFailed !== undefined) return hasFailed ? 'failed' : 'done'
  if (session?.status === 'running') return 'running'
  return session?.status === 'requires_action' ? 'waiting for you' : 'not finished'
}
