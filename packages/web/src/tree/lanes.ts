import type { RestResults } from '@tapetree/client/types'

export type TreeEntry = RestResults['tree']['nodes'][number]

/** An entry that is drawn, with its place in the drawing. */
export interface TreeRow {
  entry: TreeEntry
  lane: number
  /** On the path to the current leaf. */
  isCurrent: boolean
  /** Has no entry below it. */
  isLeaf: boolean
  /** Entries between this row and the row of its parent that are not drawn. */
  hiddenCount: number
}

/** A line from a row to a later one. It leaves the lane of its start at once. */
interface TreeEdge {
  from: number
  to: number
  fromLane: number
  toLane: number
  isCurrent: boolean
}

export interface TreeDrawing {
  rows: TreeRow[]
  edges: TreeEdge[]
  laneCount: number
}

/** Facts about the session, which are no part of any branch. */
const notes = new Set(['label', 'session_info', 'gap'])

/**
 * Places entries in the order of the log, each branch in a lane of its own; the current branch has the first. Without `showsAll`, only
 * the entries are drawn that people look for: their own messages, summaries, labels, ends, and places where branches part.
 */
export function drawTree(
  entries: readonly TreeEntry[],
  { leafId, showsAll }: { leafId: string | null; showsAll: boolean },
): TreeDrawing {
  const nodes = new Map(entries.filter(({ type }) => !notes.has(type)).map((each) => [each.id, each]))
  const childCounts = Map.groupBy(nodes.values(), ({ parentId }) => parentId ?? '')
  const current = pathTo(leafId, nodes)
  const isDrawn = (entry: TreeEntry): boolean =>
    showsAll ||
    entry.role === 'user' ||
    entry.type === 'compaction' ||
    entry.type === 'branch_summary' ||
    entry.label !== undefined ||
    (childCounts.get(entry.id)?.length ?? 0) !== 1

  const drawn: { entry: TreeEntry; parentRow: number | undefined; hiddenCount: number }[] = []
  const rowOf = new Map<string, number>()
  for (const entry of nodes.values()) {
    if (!isDrawn(entry)) continue
    const hidden = new Set([entry])
    let parent = nodes.get(entry.parentId ?? '')
    while (parent && !rowOf.has(parent.id)) {
      // A circle, in a damaged log.
      if (hidden.has(parent)) break
      hidden.add(parent)
      parent = nodes.get(parent.parentId ?? '')
    }
    rowOf.set(entry.id, drawn.length)
    drawn.push({ entry, parentRow: parent && rowOf.get(parent.id), hiddenCount: hidden.size - 1 })
  }

  const chains = chainsOf(drawn.map(({ entry, parentRow }) => ({ parentRow, isCurrent: current.has(entry.id) })))
  const lanes = lanesOf(chains)
  const laneOfRow = new Map(
    chains.flatMap((chain, index) => chain.rows.map((row) => [row, lanes[index] ?? 0] as const)),
  )
  const rows = drawn.map(({ entry, hiddenCount }, row) => ({
    entry,
    lane: laneOfRow.get(row) ?? 0,
    isCurrent: current.has(entry.id),
    isLeaf: !childCounts.has(entry.id),
    hiddenCount,
  }))
  const edges = drawn.flatMap(({ entry, parentRow }, row) =>
    parentRow === undefined
      ? []
      : [
          {
            from: parentRow,
            to: row,
            fromLane: laneOfRow.get(parentRow) ?? 0,
            toLane: laneOfRow.get(row) ?? 0,
            isCurrent: current.has(entry.id),
          },
        ],
  )
  return { rows, edges, laneCount: Math.max(0, ...lanes) + 1 }
}

function pathTo(leafId: string | null, nodes: ReadonlyMap<string, TreeEntry>): Set<string> {
  const path = new Set<string>()
  for (let node = nodes.get(leafId ?? ''); node && !path.has(node.id); node = nodes.get(node.parentId ?? ''))
    path.add(node.id)
  return path
}

/** Rows that follow each other in one lane. */
interface Chain {
  rows: number[]
  /** The lane is taken from the row where the chain leaves its parent. */
  start: number
  end: number
  isCurrent: boolean
}

/** The first child continues the chain of its parent, unless another child is on the current path. */
function chainsOf(nodes: readonly { parentRow: number | undefined; isCurrent: boolean }[]): Chain[] {
  const heirs = new Map<number, number>()
  for (const [row, { parentRow, isCurrent }] of nodes.entries())
    if (parentRow !== undefined && (isCurrent || !heirs.has(parentRow))) heirs.set(parentRow, row)
  const chains: Chain[] = []
  for (const [row, { parentRow }] of nodes.entries()) {
    if (parentRow !== undefined && heirs.get(parentRow) === row) continue
    const rows = [row]
    for (let next = heirs.get(row); next !== undefined; next = heirs.get(next)) rows.push(next)
    const isCurrent = rows.some((each) => nodes[each]?.isCurrent === true)
    chains.push({ rows, start: parentRow ?? row, end: rows.at(-1) ?? row, isCurrent })
  }
  return chains
}

/** The lowest lane that is free from the start of a chain to its end. The current chain comes first. */
function lanesOf(chains: readonly Chain[]): number[] {
  const lanes = chains.map(() => 0)
  const taken: Chain[][] = []
  const order = [...chains.keys()].sort(
    (left, right) => Number(chains[right]?.isCurrent) - Number(chains[left]?.isCurrent),
  )
  for (const index of order) {
    const chain = chains[index]
    if (!chain) continue
    let lane = 0
    while (taken[lane]?.some(({ start, end }) => start <= chain.end && chain.start <= end)) lane++
    ;(taken[lane] ??= []).push(chain)
    lanes[index] = lane
  }
  return lanes
}
