import type { SessionStore, TreeNode } from '@tapetree/session'
import { replay, type ReplayedLine } from '../../../packages/session/src/replay.ts'
import { SessionState } from '../../../packages/session/src/session-state.ts'
import { BytesLog } from '../../corpus/bytes-store.ts'
import { brokenPairs } from '../../corpus/context-rules.ts'
import { wholeLines } from './oracle.ts'

export interface Checked {
  problems: string[]
  /** Ids of the entries in the tree. */
  shown: Set<string>
  isReported: boolean
  /** All that was read, as text, so that two readings can be compared. */
  fingerprint: () => string
}

/** Reads a session in every way there is and says what does not hold. It may throw: that is a crash. */
export async function checkReading(store: SessionStore, sessionId: string, bytes: Uint8Array): Promise<Checked> {
  const accepted = await acceptedLines(bytes)
  const problems = missingLines(bytes, accepted)
  await using session = await store.open(sessionId, { readOnly: true })

  const travelled: { seq: number; text: string }[] = []
  for await (const line of session.lines()) if (line.type === 'line') travelled.push(line)
  if (!isSame(travelled, accepted, bytes)) problems.push('session.lines() and the fold accept different lines')

  const context = await session.getContext()
  problems.push(...brokenPairs(context))
  const tree = nodesOf(await session.getTree())
  const inTree = new Set(tree.map(({ seq }) => seq))
  for (const { line, seq } of accepted) {
    if (line.parent_id !== undefined && !inTree.has(seq)) problems.push(`entry ${line.id} is not in the tree`)
  }

  const report = await store.verify(sessionId)
  const { damage, info, inbox, leafId, pendingPermissions } = session
  if (report.lines !== accepted.length) problems.push(`verify counts ${report.lines} lines, reading ${accepted.length}`)
  if (JSON.stringify(report.damage) !== JSON.stringify(damage.map(({ isNew: _, ...each }) => each))) {
    problems.push('verify and open tell of different damage')
  }
  const isIntact = damage.length === 0 && report.unfinishedBytes === 0 && report.missingBlobs.length === 0
  if (report.isIntact !== isIntact) problems.push(`verify says intact: ${report.isIntact}`)
  for (const _ in {}) problems.push('the prototype of all objects was changed')

  const labels = [...session.getLabels()]
  return {
    problems,
    shown: new Set(tree.map(({ id }) => id)),
    isReported: !report.isIntact,
    fingerprint: () =>
      JSON.stringify({ accepted, context, tree, damage, info, inbox, leafId, pendingPermissions, labels }),
  }
}

export async function acceptedLines(bytes: Uint8Array): Promise<ReplayedLine[]> {
  const accepted: ReplayedLine[] = []
  const state = new SessionState({ isWhole: true })
  await replay(new BytesLog(bytes), state, { from: 0, watch: (line) => accepted.push(line) })
  return accepted
}

/** Whole lines that were not returned, though no rule of the format speaks against them. */
function missingLines(bytes: Uint8Array, accepted: readonly ReplayedLine[]): string[] {
  const places = new Set(accepted.map(({ at }) => at))
  return wholeLines(bytes).flatMap(({ at, size, seq }) => {
    if (places.has(at)) return []
    const before = accepted.filter((each) => each.at < at)
    const highest = before.at(-1)?.seq ?? 0
    // Not greater than the last accepted one, or further on than anything can explain: a foreign line.
    if (seq !== undefined && (seq <= highest || seq > highest + 1_000_000)) return []
    if (seq === undefined && before.some(({ line }) => line.type === 'writer')) return []
    return [`the line at ${at} of ${size} bytes is whole and was not returned`]
  })
}

function isSame(
  travelled: readonly { seq: number; text: string }[],
  accepted: readonly ReplayedLine[],
  bytes: Uint8Array,
): boolean {
  if (travelled.length !== accepted.length) return false
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return accepted.every(({ seq, at, size }, index) => {
    const line = travelled[index]
    return line?.seq === seq && line.text === all.toString('utf8', at, at + size)
  })
}

function nodesOf(roots: readonly TreeNode[]): { id: string; seq: number }[] {
  const nodes: { id: string; seq: number }[] = []
  const waiting = [...roots]
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    nodes.push({ id: node.entry.id, seq: node.entry.seq })
    waiting.push(...node.children)
  }
  return nodes
}
