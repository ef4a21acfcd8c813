import { isEntry } from '../line/line.ts'
import type { ReadableLog, StoredLine } from './log-store.ts'
import { takeApart, type Part } from '../line/merged-line.ts'
import { isForeignSeq, parseStored, textOf } from './replay.ts'

/** A line of the log as sent to an observer, or a notice that lines were lost. */
export type LogLine =
  | { type: 'line'; seq: number; crc: string; text: string }
  | { type: 'lost'; seq: number; count: number }

export interface LogLinesOptions {
  after: number
  /** The last durable seq, read when the iteration gets there. */
  through: () => number
  /** In a damaged log seqs may not increase, so binary search is not possible. */
  isDamaged: boolean
}

/** The accepted lines after `after`, exactly once each and in order. */
export async function* readLogLines(log: ReadableLog, options: LogLinesOptions): AsyncIterable<LogLine> {
  let last = options.after
  const through = options.through()
  for await (const { seq, crc, text } of acceptedLines(log, options)) {
    if (seq > options.through()) break
    if (seq <= last) continue
    if (seq > last + 1) yield { type: 'lost', seq: last + 1, count: seq - last - 1 }
    last = seq
    yield { type: 'line', seq, crc, text }
  }
  if (through > last) yield { type: 'lost', seq: last + 1, count: through - last }
}

async function* acceptedLines(
  log: ReadableLog,
  { after, isDamaged }: LogLinesOptions,
): AsyncIterable<{ seq: number; crc: string; text: string }> {
  const from = isDamaged ? 0 : await log.seek(after + 1)
  if (from === undefined) return
  let accepted = { seq: from === 0 ? 0 : after, end: from }
  // Lines of a plain file have no seq: they are numbered from the first line on, unreadable ones included.
  let counted = accepted.seq
  let isSealed = from > 0
  for await (const batch of log.lines(from)) {
    for (const stored of batch) {
      for (const { parsed, bytes, at } of partsOf(stored)) {
        if (parsed.type === 'damaged' || (isSealed && !parsed.sealed)) {
          counted++
          continue
        }
        const seq = parsed.line.seq ?? counted + 1
        if (isForeignSeq(seq, at, accepted)) continue
        accepted = { seq, end: at + bytes.length }
        counted = seq
        isSealed ||= parsed.line.type === 'writer' && !isEntry(parsed.line)
        yield { seq, crc: parsed.crc, text: decoder.decode(bytes) }
      }
    }
  }
}

const decoder = new TextDecoder()

/** Usually one; merged lines give several. */
function partsOf(stored: StoredLine): Part[] {
  const bytes = textOf(stored)
  if (!bytes) return []
  const at = stored.at + stored.bytes.length - bytes.length
  const parsed = parseStored(stored, bytes)
  const parts = parsed.type === 'line' ? [] : takeApart(bytes)
  return parts.length === 0 ? [{ parsed, at, bytes }] : parts.map((part) => ({ ...part, at: at + part.at }))
}
