import { SessionStore, type Session } from '@tapetree/session'
import { writeCheckpoint } from '../../../packages/session/src/log/checkpoint.ts'
import { replay } from '../../../packages/session/src/log/replay.ts'
import { SessionState } from '../../../packages/session/src/state/session-state.ts'
import { BytesLog, BytesStore } from '../../corpus/bytes-store.ts'
import type { Chance } from '../../corpus/chance.ts'

/** What a quick open shows otherwise than a whole read, with a checkpoint that a writer made at some line of this log. */
export async function checkQuickOpen(bytes: Uint8Array, chance: Chance): Promise<string[]> {
  const checkpoint = await checkpointIn(bytes, chance)
  if (checkpoint === undefined) return []
  const port = new BytesStore()
  port.bytes = bytes
  const store = new SessionStore(port)
  await using whole = await store.open('log', { readOnly: true })
  port.checkpoint = checkpoint
  await using quick = await store.open('log', { readOnly: true })
  return (await said(quick)) === (await said(whole)) ? [] : ['a quick open says something else than a whole read']
}

/** A writer makes one behind a line of its own, which is intact; undefined if the chosen place is none like that. */
async function checkpointIn(bytes: Uint8Array, chance: Chance): Promise<string[] | undefined> {
  const ends: number[] = []
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) ends.push(at + 1)
  if (ends.length === 0) return undefined
  const state = new SessionState({ isWhole: true })
  await replay(new BytesLog(bytes.subarray(0, chance.of(ends))), state, { from: 0 })
  const { last, seq, end } = state
  if (last.seq !== seq || last.at + last.size + 1 !== end) return undefined
  const { count, changed } = writeCheckpoint(state, { newestNodes: 1, nodesPerPiece: chance.of([1, 2, 5]) })
  return Array.from({ length: count }, (_, number) => changed.get(number) ?? '')
}

async function said(session: Session): Promise<string> {
  const { leafId, inbox, pendingPermissions, grants, name, head, openRun } = session
  const context = await session.getContext()
  const labels = Object.fromEntries(session.getLabels())
  return JSON.stringify({ context, leafId, inbox, labels, pendingPermissions, grants, name, head, openRun })
}
