import { blobsOf } from '../line/large-values.ts'
import type { ReadableLog } from './log-store.ts'
import { replay } from './replay.ts'
import { SessionState, type Damage } from '../state/session-state.ts'

export interface VerifyReport {
  isIntact: boolean
  /** Number of lines that were read and verified. */
  lines: number
  lostLines: number
  damage: Damage[]
  damageCount: number
  /** Bytes after the last newline: a line being written, or a torn one. */
  unfinishedBytes: number
  missingBlobs: string[]
}

/** Reads the whole log and every blob that it names. */
export async function verifyLog(log: ReadableLog): Promise<VerifyReport> {
  const state = new SessionState({ isWhole: true })
  const named = new Set<string>()
  let lines = 0
  await replay(log, state, {
    from: 0,
    watch: ({ line }) => {
      lines++
      for (const sha256 of blobsOf(line)) named.add(sha256)
    },
  })
  const missingBlobs: string[] = []
  for (const sha256 of named) if (!(await log.getBlob(sha256))) missingBlobs.push(sha256)
  const unfinishedBytes = await log.unfinishedBytes()
  const lostLines = state.damage.reduce((sum, each) => sum + each.count, 0)
  return {
    isIntact: state.damageCount === 0 && unfinishedBytes === 0 && missingBlobs.length === 0,
    lines,
    lostLines,
    damage: state.damage,
    damageCount: state.damageCount,
    unfinishedBytes,
    missingBlobs,
  }
}
