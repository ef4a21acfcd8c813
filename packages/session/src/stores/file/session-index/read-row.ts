import type { ReadableLog } from '../../../log/log-store.ts'
import { Reading, replay } from '../../../log/replay.ts'
import { sessionInfoOf, type SessionInfo } from '../../../state/session-info.ts'
import { quickState } from '../../../log/session-reader.ts'
import { SessionState, type Placed } from '../../../state/session-state.ts'
import type { Row } from './index-db.ts'
import { statLog, type ChangedLog, type LogStat } from './index-walk.ts'
import type { IndexSource } from './list-index.ts'
import { stillHas, withLog } from './read-log.ts'

/** Logs up to this size are read whole whenever they change. */
export const smallLogBytes = 256 * 1024

/** What a row of the list holds. */
interface ListValue {
  last: Placed
  info: SessionInfo
}

/** The row of a changed log; none if it is gone. One that is not true of the file is shown and not remembered. */
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
    // Nothing may be hidden because it cannot be read; only what is gone is not listed.
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

/** A long log is folded from its checkpoint, else whole as far as the budget goes, else only its head and tail are. */
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
  // In a file a position is an offset. It lies inside a line, whose rest is not one: a damage that is not there.
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
