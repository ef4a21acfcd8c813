import { callsOf, resultsOf } from './context.ts'
import type { Entry } from '../line/entry.ts'

/** Kinds of cut points, best first. */
export type CutKind = 'user' | 'assistant' | 'entry' | 'inside-turn'

export interface CutPoint {
  /** The first entry that would be kept. */
  entryId: string
  index: number
  kind: CutKind
}

/** Every place in a context path where a cut separates no call from its result. */
export function findCutPoints(path: readonly Entry[]): CutPoint[] {
  const splits = splitsAt(path)
  const points: CutPoint[] = []
  for (const [index, entry] of path.entries()) {
    const kind = kindOf(entry)
    if (kind && !splits[index]) points.push({ entryId: entry.id, index, kind })
  }
  return points
}

export interface CutChoice {
  path: readonly Entry[]
  /** Size of an entry in the unit of `keep`, usually tokens. */
  sizeOf: (entry: Entry) => number
  /** Maximum size to keep. */
  keep: number
}

/**
 * The cut that keeps the most within the limit: before a user message, else before an answer without calls,
 * else before another entry, and inside a turn only if nothing else fits. Undefined if nothing can be cut off.
 */
export function chooseCutPoint({ path, sizeOf, keep }: CutChoice): CutPoint | undefined {
  const kept = keptSizes(path, sizeOf)
  const useful = findCutPoints(path).filter((point) => point.index > 0 && (kept[point.index] ?? 0) <= keep)
  for (const kind of ['user', 'assistant', 'entry', 'inside-turn'] as const) {
    const point = useful.find((each) => each.kind === kind)
    if (point) return point
  }
  return undefined
}

function kindOf(entry: Entry): CutKind | undefined {
  if (entry.type !== 'message') return 'entry'
  switch (entry.message.role) {
    case 'user':
      return 'user'
    case 'assistant':
      return callsOf(entry.message).length > 0 ? 'inside-turn' : 'assistant'
    case 'tool':
      return undefined
    case 'bashExecution':
    case 'custom':
    case 'branchSummary':
    case 'compactionSummary':
      return 'entry'
    default:
      entry.message.role satisfies never
      return 'entry' // a role of a newer version
  }
}

/** For each index: does some call before it have its result at or after it? */
function splitsAt(path: readonly Entry[]): boolean[] {
  const open = new Map<string, number>()
  const opened: number[] = path.map(() => 0)
  for (const [index, entry] of path.entries()) {
    if (entry.type !== 'message') continue
    for (const result of resultsOf(entry.message)) {
      const call = open.get(result.toolUseId)
      if (call === undefined) continue
      open.delete(result.toolUseId)
      // A cut after the call and up to the result would separate them.
      opened[call + 1] = (opened[call + 1] ?? 0) + 1
      if (index + 1 < path.length) opened[index + 1] = (opened[index + 1] ?? 0) - 1
    }
    for (const call of callsOf(entry.message)) open.set(call.id, index)
  }
  let parted = 0
  return opened.map((change) => (parted += change) > 0)
}

function keptSizes(path: readonly Entry[], sizeOf: (entry: Entry) => number): number[] {
  const sizes: number[] = []
  let total = 0
  for (const entry of path.toReversed()) sizes.push((total += sizeOf(entry)))
  return sizes.reverse()
}
