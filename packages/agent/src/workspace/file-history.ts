import type { Session } from '@tapetree/session'
import { fromDisk, type Line } from '@tapetree/session/format'
import type { RestoreRecord, SnapshotRecord } from '@tapetree/session/view'

/** How the files of a session's workspace changed, in the order of the log. */
export interface FileHistory {
  /** The files at an entry, or before the first one; undefined if they were not recorded. */
  at(entryId: string | null): FileMoment | undefined
  /** Every change after a moment. */
  since(moment: FileMoment): FileStep[]
  /** Every change after a restore. */
  sinceRestore(restoreId: string): FileStep[]
  /** The restores that have ended, oldest first. */
  restores: RestoreRecord['restore'][]
}

interface FileMoment {
  tree: string
  /** The number of steps up to this moment. */
  step: number
}

interface FileStep {
  by: SnapshotRecord['snapshot']['by']
  from: string
  to: string
}

/** Reads the whole log. */
export async function readFileHistory(session: Session): Promise<FileHistory> {
  const lines: Line[] = []
  for await (const line of session.lines())
    if (line.type === 'line') lines.push(fromDisk(JSON.parse(line.text) as Parameters<typeof fromDisk>[0], line.seq))
  return fileHistoryOf(lines)
}

export function fileHistoryOf(lines: Iterable<Line>): FileHistory {
  const steps: FileStep[] = []
  const moments = new Map<string, FileMoment>()
  const resultEntries = new Map<string, string>()
  const restores: RestoreRecord['restore'][] = []
  const restoredAt = new Map<string, number>()
  let first: FileMoment | undefined
  let current: FileMoment | undefined
  for (const line of lines) {
    if (line.type === 'snapshot') {
      const { tree, by, entryId, callId } = line.snapshot
      // The session's own last tree: another session may have recorded other files in between.
      if (current && current.tree !== tree) steps.push({ by, from: current.tree, to: tree })
      current = { tree, step: steps.length }
      first ??= current
      if (entryId !== undefined) moments.set(entryId, current)
      const result = callId === undefined ? undefined : resultEntries.get(callId)
      if (result !== undefined) moments.set(result, current)
    } else if (line.type === 'restore') {
      // What a restore changed is the first step after its start.
      if (line.restore.phase === 'end') restores.push(line.restore)
      else restoredAt.set(line.restore.restoreId, steps.length)
    } else if ('parentId' in line) {
      if (current) moments.set(line.id, current)
      if (line.type !== 'message') continue
      for (const block of line.message.content)
        if (block.type === 'tool_result') resultEntries.set(block.toolResult.toolUseId, line.id)
    }
  }
  return {
    at: (entryId) => (entryId === null ? first : moments.get(entryId)),
    since: ({ step }) => steps.slice(step),
    sinceRestore: (restoreId) => steps.slice(restoredAt.get(restoreId) ?? steps.length),
    restores,
  }
}
