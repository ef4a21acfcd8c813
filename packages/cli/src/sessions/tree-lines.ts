import type { TreeNode } from '@tapetree/session'
import { describeEntry } from '../text/describe-entry.ts'
import { fitText } from '../text/display-width.ts'
import { harmlessLine } from '../text/harmless.ts'
import { segmentsOf, type Segment } from './segments.ts'

export interface TreeDrawing {
  leafId: string | null
  /** The sessions of subagents, by the entry that called them. */
  subagents: ReadonlyMap<string, readonly string[]>
  width: number
}

/** The tree, one line per entry: the current path is at the left, branches are indented. */
export function* treeLines(roots: readonly TreeNode[], drawing: TreeDrawing): Generator<string> {
  const segments = segmentsOf(roots, drawing.leafId)
  const branches = Map.groupBy(segments.slice(1), ({ from }) => from)
  const [path] = segments
  const open: Frame[] = []
  const push = (from: TreeNode | null, prefix: string): void => {
    for (const segment of (branches.get(from) ?? []).toReversed()) {
      open.push({ segment, index: 0, lead: `${prefix}├─ `, prefix: `${prefix}│  ` })
    }
  }
  if (path) open.push({ segment: path, index: 0, lead: '', prefix: '' })
  push(null, '')
  for (let frame = open.at(-1); frame; frame = open.at(-1)) {
    const node = frame.segment.nodes[frame.index]
    if (!node) {
      open.pop()
      continue
    }
    yield `${frame.index === 0 ? frame.lead : frame.prefix}${lineOf(node, frame, drawing)}`
    frame.index++
    push(node, frame.prefix)
  }
}

interface Frame {
  segment: Segment
  index: number
  /** The indentation of its first line, and of the others. */
  lead: string
  prefix: string
}

function lineOf({ entry, label }: TreeNode, { segment, prefix }: Frame, drawing: TreeDrawing): string {
  const { kind, words } = describeEntry(entry)
  const mark = entry.id === drawing.leafId ? '◉' : segment.number === 0 ? '●' : '○'
  const tags = [
    ...(label === undefined ? [] : [`[${harmlessLine(label)}]`]),
    ...(drawing.subagents.get(entry.id) ?? []).map((id) => `(subagent ${id})`),
  ]
  const start = [`${mark} ${entry.seq}`, ...tags, kind].join(' ')
  const columns = Math.max(minColumns, drawing.width - prefix.length)
  // Cuts roughly first: sanitizing a long text is slow.
  return fitText(`${start}  ${harmlessLine(words.slice(0, columns * 16))}`, columns)
}

const minColumns = 20
