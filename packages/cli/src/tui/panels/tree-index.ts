import { textOf, type SessionInfo } from '@tapetree/session'
import { lineKind, type Entry } from '@tapetree/session/format'
import type { TreeNode } from '@tapetree/session/view'
import { describeEntry } from '../../text/describe-entry.ts'

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
function indexTree({ roots, leafId, subagents = [] }: TreeData): TreeRow[] {
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
  return lineKind(entry.type) === 'note'
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

/** `conversation` leaves out what the program tells the model at the beginning: its prompt, the environment, and the first settings. */
export type TreeFilter = 'conversation' | 'yours' | 'labeled' | 'all'

const searchedLength = 2000

/** The visible rows of the tree: not folded, and matching the filter. Rows are numbers into the index, which is built once. */
export class TreeRows {
  #rows: TreeRow[] = []
  #shown: number[] = []
  /** Ids of the starts of folded side branches. */
  readonly #folded = new Set<string>()
  #texts: (string | undefined)[] = []
  /** The row of the first message. */
  #first = 0
  #filter: TreeFilter = 'conversation'
  #search: readonly string[] = []

  get count(): number {
    return this.#shown.length
  }

  get filter(): TreeFilter {
    return this.#filter
  }

  at(position: number): TreeRow | undefined {
    return this.#rows[this.#shown[position] ?? -1]
  }

  /** The row of an entry or, if it is hidden, of the nearest visible one before it. */
  positionOf(id: string | undefined): number {
    const wanted = this.#rows.findIndex((row) => row.id === id)
    if (wanted === -1) return -1
    return this.#shown.findLastIndex((index) => index <= wanted)
  }

  get leafId(): string | undefined {
    return this.#rows.find((row) => row.type === 'entry' && row.isLeaf)?.id
  }

  replace(data: TreeData): void {
    this.#rows = indexTree(data)
    this.#texts = []
    this.#first = this.#rows.findIndex(
      (row) => row.type === 'entry' && row.entry.type === 'message' && !isFacts(row.entry),
    )
    this.#choose()
  }

  filterBy(filter: TreeFilter): void {
    this.#filter = filter
    this.#choose()
  }

  searchFor(text: string): void {
    this.#search = text.toLowerCase().split(/\s+/).filter(Boolean)
    this.#choose()
  }

  /** The row begins an unfolded side branch of more than one row. */
  canFold(row: TreeRow): boolean {
    return row.type === 'entry' && row.isBranchStart && !this.#folded.has(row.id) && this.#sizeOf(row) > 1
  }

  /** How many rows a folded branch hides; 0 if the row is not one. */
  hiddenBy(row: TreeRow): number {
    return row.type === 'entry' && this.#folded.has(row.id) ? this.#sizeOf(row) - 1 : 0
  }

  fold(id: string, isFolded: boolean): void {
    if (isFolded) this.#folded.add(id)
    else this.#folded.delete(id)
    this.#choose()
  }

  /** Folds all side branches, or none. */
  foldAll(): void {
    const starts = this.#rows.filter((row) => row.type === 'entry' && row.isBranchStart)
    if (this.#folded.size > 0) this.#folded.clear()
    else for (const { id } of starts) this.#folded.add(id)
    this.#choose()
  }

  /** The start of the side branch that contains a row. */
  branchOf(row: TreeRow): TreeRow | undefined {
    const at = this.#rows.indexOf(row)
    return this.#rows.findLast(
      (each, index) =>
        index < at && each.type === 'entry' && each.isBranchStart && each.depth <= row.depth && each.end > at,
    )
  }

  #sizeOf(row: EntryRow): number {
    return row.end - this.#rows.indexOf(row)
  }

  /** A search includes folded branches, and what the conversation leaves out. */
  #choose(): void {
    this.#shown = []
    const isSearching = this.#search.length > 0
    for (let index = 0; index < this.#rows.length; index++) {
      const row = this.#rows[index] as TreeRow
      if (this.#isChosen(row, index)) this.#shown.push(index)
      if (!isSearching && row.type === 'entry' && this.#folded.has(row.id)) index = row.end - 1
    }
  }

  /** What stands above every message, unless it is a place of its own: the current entry, a label, a branch. */
  #isBackground(row: TreeRow, index: number): boolean {
    if (this.#filter !== 'conversation' || row.type !== 'entry') return false
    if (row.isLeaf || row.isBranchStart || row.label !== undefined) return false
    const { entry } = row
    if (entry.type === 'message') return isFacts(entry)
    if (entry.type === 'model_change' || entry.type === 'thinking_level') return index < this.#first
    return entry.type === 'system' || entry.type === 'custom'
  }

  #isChosen(row: TreeRow, index: number): boolean {
    if (this.#search.length === 0) return passes(row, this.#filter) && !this.#isBackground(row, index)
    if (!passes(row, this.#filter)) return false
    const text = (this.#texts[index] ??= searchText(row))
    return this.#search.every((word) => text.includes(word))
  }
}

/** What environment facts look like in the log: the program wrote them, for the model. */
function isFacts({ message }: Extract<Entry, { type: 'message' }>): boolean {
  return message.role === 'custom' && /^<[a-z][\w-]*>\n/.test(textOf(message))
}

function passes(row: TreeRow, filter: TreeFilter): boolean {
  switch (filter) {
    case 'conversation':
    case 'all':
      return true
    case 'yours':
      return row.type === 'entry' && row.entry.type === 'message' && row.entry.message.role === 'user'
    case 'labeled':
      return row.type === 'entry' && row.label !== undefined
    default:
      filter satisfies never
      return true
  }
}

function searchText(row: TreeRow): string {
  if (row.type === 'subagent') return row.description.toLowerCase()
  const { kind, words } = describeEntry(row.entry)
  return `${kind}: ${words.slice(0, searchedLength)} ${row.label ?? ''}`.toLowerCase()
}
