import type { ReadableLog } from '../../../log/log-store.ts'
import { parseLine } from '../../../line/parse-line.ts'
import type { Reading } from '../../../log/replay.ts'
import type { Placed } from '../../../state/session-state.ts'
import type { IndexSource } from './list-index.ts'
import type { Slices } from './slices.ts'

interface SliceReading {
  reading: Reading
  from: number
  slices: Slices
  isEnough?: () => boolean
}

export async function withLog<T>(source: IndexSource, id: string, work: (log: ReadableLog) => Promise<T>): Promise<T> {
  const log = await source.openLog(id)
  try {
    return await work(log)
  } finally {
    await log.close()
  }
}

/** Like `replay`, with pauses. Returns false if `isEnough` stopped it before the end. */
export async function readInSlices(
  log: ReadableLog,
  { reading, from, slices, isEnough = () => false }: SliceReading,
): Promise<boolean> {
  for await (const batch of log.lines(from)) {
    for (const stored of batch) {
      if (isEnough()) return false
      reading.take(stored)
      // Checked here first: one promise for each line would take longer than the line.
      if (slices.isPauseDue) await slices.pause()
    }
  }
  reading.finish()
  return true
}

/** Whether the last line of a row is still at its position. */
export async function stillHas(log: ReadableLog, last: Placed): Promise<boolean> {
  const [bytes] = await log.readAt([last])
  const parsed = parseLine(bytes as Uint8Array)
  return parsed.type === 'line' && parsed.crc === last.crc
}
