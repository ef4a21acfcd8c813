import { Reading, type ReplayedLine } from '../../../packages/session/src/log/replay.ts'
import { SessionState } from '../../../packages/session/src/state/session-state.ts'
import { applyLines, type IntactLine } from './intact-log.ts'

export interface Folded {
  state: SessionState
  /** Lines that were read and accepted, in their order. */
  read: ReplayedLine[]
  /** Bytes after the last newline, which a reader takes for a line being written. */
  unfinishedBytes: number
}

/** The lines, by index, that are read from the bytes; those before and behind are known, as to the writer that wrote them. */
export interface ReadRange {
  from: number
  to: number
}

export function foldBytes(bytes: Uint8Array, lines: readonly IntactLine[], range: ReadRange): Folded {
  const state = new SessionState({ isWhole: true })
  applyLines(state, lines, { from: 0, to: range.from })
  const read: ReplayedLine[] = []
  const reading = new Reading(state, (line) => read.push(line))
  const stop = lines[range.to]?.placed.at ?? bytes.length
  let from = state.end
  for (let end = bytes.indexOf(0x0a, from); end !== -1 && from < stop; end = bytes.indexOf(0x0a, from)) {
    reading.take({ at: from, size: end - from, next: end + 1, bytes: bytes.subarray(from, end) })
    from = end + 1
  }
  reading.finish()
  applyLines(state, lines, { from: range.to, to: lines.length })
  return { state, read, unfinishedBytes: stop - from }
}
