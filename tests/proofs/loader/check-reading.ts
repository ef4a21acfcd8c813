import type { Session, SessionStore, VerifyReport } from '@tapetree/session'
import type { TreeNode } from '@tapetree/session/view'
import { replay, type ReplayedLine } from '../../../packages/session/src/log/replay.ts'
import { SessionState } from '../../../packages/session/src/state/session-state.ts'
import { BytesLog } from '../../corpus/bytes-store.ts'
import { brokenPairs } from '../../corpus/context-rules.ts'
import { wholeLines } from './oracle.ts'

export interface Checked {
  problems: string[]
  /** Ids of the entries in the tree. */
  shown: Set<string>
  /** Only where it was verified. */
  isReported: boolean
  /** All that was read, as text, so that two readings can be compared. */
  fingerprint: () => string
}

/** How a session is read beside its tree and its context: as lines that travel, by `verify`, or both. */
export interface CheckOptions {
  lines: boolean
  verify: boolean
}

/** Reads a session and says what does not hold. It may throw: that is a crash. */
export async function checkReading(
  store: SessionStore,
  { sessionId, bytes, options }: { sessionId: string; bytes: Uint8Array; options: CheckOptions },
): Promise<Checked> {
  const accepted = await acceptedLines(bytes)
  const problems = missingLines(bytes, accepted)
  await using session = await store.open(sessionId, { readOnly: true })
  if (options.lines && !(await travelAsTheyAre(session, accepted, bytes))) {
    problems.push('session.lines() and the fold accept different lines')
  }
  const context = await session.getContext()
  problems.push(...brokenPairs(context))
  const tree = nodesOf(await session.getTree())
  const inTree = new Set(tree.map(({ seq }) => seq))
  for (const { line, seq } of accepted) {
    if (line.parent_id !== undefined && !inTree.has(seq)) problems.push(`entry ${line.id} is not in the tree`)
  }
  const report = options.verify ? await store.verify(sessionId) : undefined
  if (report) problems.push(...disagreements(session, report, accepted.length))
  for (const _ in {}) problems.push('the prototype of all objects was changed')
  const { damage, info, inbox, leafId, pendingPermissions } = session
  const said = {
    accepted,
    context,
    tree,
    damage,
    info,
    inbox,
    leafId,
    pendingPermissions,
    labels: [...session.getLabels()],
  }
  return {
    problems,
    shown: new Set(tree.map(({ id }) => id)),
    isReported: report?.isIntact === false,
    fingerprint: () => JSON.stringify(said),
  }
}

async function travelAsTheyAre(
  session: Session,
  accepted: readonly ReplayedLine[],
  bytes: Uint8Array,
): Promise<boolean> {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  let index = 0
  for await (const line of session.lines()) {
    if (line.type === 'lost') continue
    const expected = accepted[index++]
    if (!expected || line.seq !== expected.seq) return false
    if (line.text !== all.toString('utf8', expected.at, expected.at + expected.size)) return false
  }
  return index === accepted.length
}

function disagreements({ damage }: Session, report: VerifyReport, accepted: number): string[] {
  const problems: string[] = []
  if (report.lines !== accepted) problems.push(`verify counts ${report.lines} lines, reading ${accepted}`)
  if (JSON.stringify(report.damage) !== JSON.stringify(damage.map(({ isNew: _, ...each }) => each))) {
    problems.push('verify and open tell of different damage')
  }
  const isIntact = damage.length === 0 && report.unfinishedBytes === 0 && report.missingBlobs.length === 0
  if (report.isIntact !== isIntact) problems.push(`verify says intact: ${report.isIntact}`)
  return problems
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

function nodesOf(roots: readonly TreeNode[]): { id: string; seq: number }[] {
  const nodes: { id: string; seq: number }[] = []
  const waiting = [...roots]
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    nodes.push({ id: node.entry.id, seq: node.entry.seq })
    waiting.push(...node.children)
  }
  return nodes
}
