import type { IntactLog } from './intact-log.ts'

/** One bit of the log, and the line that its byte belongs to (a newline belongs to the line it ends). */
export interface Flip {
  at: number
  bit: number
  /** Index of the line. */
  line: number
  part: 'header' | 'seq' | 'head' | 'body' | 'seal' | 'newline'
}

export function* allFlips(log: IntactLog): Iterable<Flip> {
  for (const [line, { placed }] of log.lines.entries()) {
    for (let at = placed.at; at <= placed.at + placed.size; at++) {
      const part = partAt(log, line, at)
      for (let bit = 0; bit < 8; bit++) yield { at, bit, line, part }
    }
  }
}

/** The bytes with that bit flipped; hand the same flip in again to put it back. */
export function flipIn(bytes: Uint8Array, { at, bit }: Flip): void {
  bytes[at] = (bytes[at] as number) ^ (1 << bit)
}

export function describeFlip(log: IntactLog, { at, bit, line, part }: Flip): string {
  const before = log.bytes[at] as number
  const show = (byte: number): string => `0x${byte.toString(16).padStart(2, '0')}`
  const change = `${show(before)} -> ${show(before ^ (1 << bit))}`
  return `byte ${at} bit ${bit} (${change}), ${part} of line ${line + 1} (${log.lines[line]?.line.type})`
}

const headBytes = 130
const sealBytes = 18

function partAt(log: IntactLog, line: number, at: number): Flip['part'] {
  const { placed } = log.lines[line] as IntactLog['lines'][number]
  const offset = at - placed.at
  if (offset === placed.size) return 'newline'
  if (offset >= placed.size - sealBytes) return 'seal'
  if (line === 0) return 'header'
  const digits = offset - '{"seq":'.length
  if (digits >= 0 && digits < String(placed.seq).length) return 'seq'
  return offset < headBytes ? 'head' : 'body'
}
