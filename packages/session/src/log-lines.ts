import type { ReadableLog } from './log-store.ts'
import { parseLine, splitMerged } from './parse-line.ts'

/** A line of the log as it travels to an observer, or the note that some are lost. */
export type LogLine =
  | { type: 'line'; seq: number; crc: string; text: string }
  | { type: 'lost'; seq: number; count: number }

/** The lines after `after`, exactly once each and in order, up to the one that is durable when it gets there. */
export async function* readLogLines(
  log: ReadableLog,
  options: { after: number; through: () => number },
): AsyncIterable<LogLine> {
  let last = options.after
  const from = await log.seek(last + 1)
  // Lines of a plain file have no seq of their own: they are counted from the first one on.
  let counted = from === 0 ? 0 : last
  for await (const batch of from === undefined ? [] : log.lines(from)) {
    for (const stored of batch) {
      for (const part of partsOf(stored.bytes)) {
        const seq = part.seq ?? counted + 1
        counted = Math.max(counted, seq)
        if (seq > options.through()) return
        if (part.text === undefined || seq <= last) continue
        if (seq > last + 1) yield { type: 'lost', seq: last + 1, count: seq - last - 1 }
        last = seq
        yield { type: 'line', seq, crc: part.crc, text: part.text }
      }
    }
  }
  const missing = options.through() - last
  if (missing > 0) yield { type: 'lost', seq: last + 1, count: missing }
}

const decoder = new TextDecoder()

interface Part {
  seq: number | undefined
  crc: string
  /** Undefined where the line cannot be read. */
  text: string | undefined
}

/** Usually one; lines that ran together give several. */
function partsOf(bytes: Uint8Array): Part[] {
  if (bytes.length === 0) return []
  const whole = partOf(bytes)
  if (whole.text !== undefined) return [whole]
  const parts = splitMerged(bytes).map((part) => partOf(part.bytes))
  return parts.some((part) => part.text !== undefined) ? parts : [whole]
}

function partOf(bytes: Uint8Array): Part {
  const parsed = parseLine(bytes)
  if (parsed.type === 'damaged') return { seq: parsed.head.seq, crc: '', text: undefined }
  return { seq: parsed.line.seq, crc: parsed.crc, text: decoder.decode(bytes) }
}
