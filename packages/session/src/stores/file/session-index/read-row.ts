import type { ReadableLog } from '../../../log/log-store.ts'
import { Reading, replay } from '../../../log/replay.ts'
import { sessionInfoOf, type SessionInfo } from '../../../state/session-info.ts'
import { quickState } from '../../../log/session-reader.ts'
import { SessionState, type Placed } from '../../../state/session-state.ts'
import type { Row } from './index-db.ts'
import { statLog, type ChangedLog, type LogStat } from './index-walk.ts'
import type { IndexSource } from './list-index.ts'
import { stillHas, withLog } from './read-log.ts'

/** Logs up to this size are read completely whenever they change. */
export const smallLogBytes = 256 * 1024

/** Value of a list row. */
interface ListValue {
  last: Placed
  info: SessionInfo
}

/**
 * Reads the row of a changed log; undefined if the log is gone. A row that does not match the file is shown but
 * not stored.
 */
export async function readRow(
  source: IndexSource,
  { file, stored }: ChangedLog,
  budget: { bytes: number },
): Promise<{ row?: Row; isTrue?: boolean }> {
  try {
    return await withLog(source, file.id, async (log) => {
      const isTouched = stored?.size === file.size && (await stillHas(log, valueOf(stored).last))
      return { row: isTouched ? { ...stored, ...file } : await foldRow(log, file, budget), isTrue: true }
    })
  } catch {
    // An unreadable session is still listed; only a missing one is not.
    return statLog(source.folder, file.id) ? { row: unreadableRow(file) } : {}
  }
}

export function rowOf(file: LogStat, state: SessionState, changes: Partial<SessionInfo> = {}): Row {
  const info = { ...sessionInfoOf(state, { id: file.id }), ...changes }
  const value: ListValue = { last: state.last, info }
  return { ...file, modified: info.modified, value: JSON.stringify(value) }
}

export function valueOf(row: Row): ListValue {
  return JSON.parse(row.value) as ListValue
}

const headBytes = 64 * 1024
const tailBytes = 256 * 1024

/** Folds a long log from its checkpoint; otherwise completely, within the budget; otherwise only its start and end. */
async function foldRow(log: ReadableLog, file: LogStat, budget: { bytes: number }): Promise<Row> {
  if (file.size > smallLogBytes) {
    const quick = await quickState(log, { isBrief: true })
    if (quick) return rowOf(file, quick)
    if (file.size > budget.bytes) return estimateRow(log, file)
    budget.bytes -= file.size
  }
  const state = new SessionState({ isWhole: true })
  await replay(log, state, { from: 0 })
  return rowOf(file, state)
}

async function estimateRow(log: ReadableLog, file: LogStat): Promise<Row> {
  const state = new SessionState({ isWhole: true })
  const reading = new Reading(state)
  await takeUpTo(headBytes, log, { reading, from: 0 })
  // In a file a position is an offset. It lies inside a line, whose rest would be reported as damage that does
  // not exist.
  await takeUpTo(file.size, log, { reading, from: file.size - tailBytes })
  return rowOf(file, state, { damaged: false, estimated: true })
}

async function takeUpTo(
  to: number,
  log: ReadableLog,
  { reading, from }: { reading: Reading; from: number },
): Promise<void> {
  for await (const batch of log.lines(from)) {
    for (const stored of batch) {
      if (stored.at >= to) return
      reading.take(stored)
    }
  }
}

function unreadableRow(file: LogStat): Row {
  const time = new Date(file.mtimeMs).toISOString()
  const state = new SessionState({ isWhole: true })
  return rowOf(file, state, { created: time, modified: time, damaged: true, estimated: true })
}
