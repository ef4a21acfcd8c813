import { contextPathTo, pathTo, type Node } from '../../../packages/session/src/state/tree.ts'
import type { Flip } from './flip.ts'
import type { Folded, ReadRange } from './fold.ts'
import type { IntactLine, IntactLog } from './intact-log.ts'

/** What is wrong with a reading of the flipped bytes; nothing, if the promise was kept. */
export function judge(
  log: IntactLog,
  flip: Flip,
  folded: Folded,
  options: { range: ReadRange; bytes: Uint8Array },
): string[] {
  const isTail = flip.part === 'newline' && flip.line === log.lines.length - 1
  const lost = flip.part === 'newline' && !isTail ? undefined : flip.line
  return [
    ...judgeReport(log, flip, folded),
    ...judgeLines(log, folded, { lost, ...options }),
    ...judgeTree(log, folded, lost),
    ...judgeLeaf(log, flip, folded, lost),
    ...judgeInbox(log, folded, lost),
  ]
}

function judgeReport(log: IntactLog, flip: Flip, { state, unfinishedBytes }: Folded): string[] {
  const problems: string[] = []
  if (state.damageCount === 0 && unfinishedBytes === 0) problems.push('the flip is not reported')
  const counted = state.damage.reduce((sum, { count }) => sum + count, 0)
  // A last line that falls into two pieces may have been two lines: their seqs are not used again.
  const allowed = flip.line === log.lines.length - 1 ? 2 : 1
  if (counted > allowed) problems.push(`${counted} lines are reported lost`)
  return problems
}

interface Reach {
  range: ReadRange
  bytes: Uint8Array
  /** Index of the one line that may be unreadable. */
  lost: number | undefined
}

function judgeLines(log: IntactLog, { read }: Folded, { range, bytes, lost }: Reach): string[] {
  const problems: string[] = []
  let next = 0
  for (const [index, { placed }] of log.lines.entries()) {
    if (index < range.from || index >= range.to) continue
    const found = read[next]?.seq === placed.seq ? read[next++] : undefined
    if (!found && index !== lost) problems.push(`line ${index + 1} was not returned`)
    else if (found && !isSame(bytes, log.bytes, found, placed)) problems.push(`line ${index + 1} was returned changed`)
  }
  if (next < read.length) problems.push(`${read.length - next} lines were returned that never were`)
  return problems
}

function isSame(left: Uint8Array, right: Uint8Array, a: { at: number; size: number }, b: typeof a): boolean {
  return Buffer.compare(left.subarray(a.at, a.at + a.size), right.subarray(b.at, b.at + b.size)) === 0
}

/** Every other entry is in the tree, under its own parent or, where that is the lost one, under a gap. */
function judgeTree(log: IntactLog, { state }: Folded, lost: number | undefined): string[] {
  const problems: string[] = []
  const lostId = lost === undefined ? undefined : log.lines[lost]?.line.id
  for (const [index, { line, placed }] of log.lines.entries()) {
    if (line.parent_id === undefined || index === lost) continue
    const node = state.tree.get(line.id)
    if (!node || node.type !== line.type || node.seq !== placed.seq)
      problems.push(`entry ${line.id} is not in the tree`)
    else if (!hangsOn(node, line.parent_id, lostId)) problems.push(`entry ${line.id} hangs on the wrong parent`)
  }
  return problems
}

function hangsOn({ parent }: Node, parentId: string | null, lostId: string | undefined): boolean {
  if (parent === null || parent === 'unread') return parent === parentId
  return parent.id === parentId || (parentId === lostId && parent.type === 'gap')
}

/** The leaf is where it was, or on the lost line; path and context have everything else that was on them. */
function judgeLeaf(log: IntactLog, flip: Flip, { state }: Folded, lost: number | undefined): string[] {
  const { leaf } = state
  if (!leaf) return ['there is no leaf']
  const problems: string[] = []
  const last = log.lines.findLastIndex(({ line }) => line.id === log.leafId)
  const isExpected = leaf.id === log.leafId || (leaf.type === 'gap' && lost !== undefined && lost >= last)
  if (!isExpected) problems.push(`the leaf is ${leaf.id}`)
  const lostLine = lost === undefined ? undefined : log.lines[lost]
  if (lostLine?.line.type === 'label' && leaf.id !== log.leafId && !isInHead(lostLine, flip)) {
    problems.push('a lost note became the leaf')
  }
  const isThere = (ids: readonly string[], nodes: readonly Node[], what: string): void => {
    const found = new Set(nodes.map(({ id }) => id))
    const missing = ids.filter((id) => !found.has(id) && id !== lostLine?.line.id)
    if (missing.length > 0) problems.push(`${missing.join(', ')} is missing from the ${what}`)
  }
  isThere(log.pathIds, pathTo(leaf), 'path')
  isThere(log.contextIds, contextPathTo(leaf).nodes, 'context')
  return problems
}

/** What is left of such a line may not say any more that it was a note. */
function isInHead({ text, placed }: IntactLine, flip: Flip): boolean {
  return flip.at - placed.at < text.indexOf('"parent_id"')
}

/** A waiting message goes only with the line that added it; labels only with theirs. */
function judgeInbox(log: IntactLog, { state }: Folded, lost: number | undefined): string[] {
  const problems: string[] = []
  const lostLine = lost === undefined ? undefined : log.lines[lost]?.line
  for (const id of log.waitingIds) {
    const added = (lostLine?.['submission'] as { id?: string } | undefined)?.id
    if (id !== added && !state.inbox.get(id)) problems.push(`waiting message ${id} is gone`)
  }
  for (const [target, label] of log.labels) {
    const own = (lostLine?.['label'] as { target_id?: string } | undefined)?.target_id
    if (target !== own && state.labels.get(target) !== label) problems.push(`the label of ${target} is gone`)
  }
  return problems
}
