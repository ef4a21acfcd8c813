import type { SessionStore, TreeNode } from '@tapetree/session'
import { replay, type ReplayedLine } from '../../../packages/session/src/replay.ts'
import { SessionState } from '../../../packages/session/src/session-state.ts'
import { BytesLog } from '../../corpus/bytes-store.ts'
import { brokenPairs } from '../../corpus/context-rules.ts'
import { wholeLines } from './oracle.ts'

/** What a reading gave, as text, so that two readings can be compared. */
export interface Reading {
  problems: string[]
  fingerprint: string
  /** Ids of the entries in the tree. */
  shown: Set<string>
  isIntact: boolean
}

/** Reads a session in every way there is and says what does not hold. It may throw: that is a crash. */
export async function checkReading(store: SessionStore, sessionId: string, bytes: Uint8Array): Promise<Reading> {
  const problems: string[] = []
  const accepted = await acceptedLines(bytes)
  problems.push(...missingLines(bytes, accepted))
  await using session = await store.open(sessionId, { readOnly: true })

  const travelled: { seq: number; text: string }[] = []
  for await (const line of session.lines()) if (line.type === 'line') travelled.push(line)
  if (!isSame(travelled, accepted, bytes)) problems.push('session.lines() and the fold accept different lines')

  const context = await session.getContext()
  problems.push(...brokenPairs(context))
  const tree = treeIds(await session.getTree())
  for (const { line, seq } of accepted) {
    if (line.parent_id !== undefined && !tree.has(`${line.id} ${seq}`))
      problems.push(`entry ${line.id} is not in the tree`)
  }

  const report = await store.verify(sessionId)
  const { damage, info, inbox, leafId, pendingPermissions } = session
  if (report.lines !== accepted.length) problems.push(`verify counts ${report.lines} lines, reading ${accepted.length}`)
  if (report.damageCount < damage.length || damage.length !== report.damage.length)
    problems.push('verify and open disagree')
  const isIntact = damage.length === 0 && report.unfinishedBytes === 0 && report.missingBlobs.length === 0
  if (report.isIntact !== isIntact) problems.push(`verify says intact: ${report.isIntact}`)
  if (Object.keys(Object.prototype).length > 0) problems.push('the prototype of all objects was changed')

  const labels = [...session.getLabels()]
  const said = { accepted, context, tree: [...tree], damage, info, inbox, leafId, pendingPermissions, labels }
  const shown = new Set([...tree].map((name) => name.slice(0, name.indexOf(' '))))
  return { problems, fingerprint: JSON.stringify(said), shown, isIntact: report.isIntact }
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
    // Not greater than the last accepted one, or greater than the bytes in between can explain: a foreign line.
    if (seq !== undefined && (seq <= highest || seq > highest + 1_000_000)) return []
    if (seq === undefined && before.some(({ line }) => line.type === 'writer')) return []
    if (at === 0 && accepted.some((each) => each.at === 3)) return []
    return [`the line at ${at} of ${size} bytes is whole and was not returned`]
  })
}

function isSame(
  travelled: readonly { seq: number; text: string }[],
  accepted: readonly ReplayedLine[],
  bytes: Uint8Array,
): boolean {
  return (
    travelled.length === accepted.length &&
    accepted.every(({ seq, at, size }, index) => {
      const text = Buffer.from(bytes.subarray(at, at + size)).toString()
      return travelled[index]?.seq === seq && travelled[index].text === text
    })
  )
}

function treeIds(roots: readonly TreeNode[]): Set<string> {
  const ids = new Set<string>()
  const waiting = [...roots]
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    ids.add(`${node.entry.id} ${node.entry.seq}`)
    waiting.push(...node.children)
  }
  return ids
}
