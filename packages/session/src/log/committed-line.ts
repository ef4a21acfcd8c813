import { fromDisk } from '../line/codec.ts'
import type { Committed } from './group-commit.ts'
import type { Line } from '../line/line.ts'
import type { Listeners } from '../util/listeners.ts'

/** A line that just became durable. */
export interface CommittedLine {
  seq: number
  crc: string
  /** The line as it stands in the log, without its newline. */
  text: string
  line: Line
}

export type CommitListener = (line: CommittedLine) => void

/** Decodes lines only if there are listeners. */
export function announce(lines: readonly Committed[], listeners: Listeners<CommittedLine>): void {
  if (listeners.size === 0) return
  for (const { line, sealed } of lines) {
    const committed = { seq: sealed.seq, crc: sealed.crc, text: sealed.text, line: fromDisk(line, sealed.seq) }
    listeners.notify(committed)
  }
}
