import { parseLine } from '../../../packages/session/src/line/parse-line.ts'
import type { Placed } from '../../../packages/session/src/state/session-state.ts'
import { SessionState } from '../../../packages/session/src/state/session-state.ts'
import { contextPathTo, pathTo } from '../../../packages/session/src/state/tree.ts'
import type { DiskLine } from '@tapetree/session/format'
import { sampleLines } from '../../corpus/sample-log.ts'
import { bytesOfLog, sealAll } from '../../corpus/sealed-log.ts'

export interface IntactLine {
  line: DiskLine
  placed: Placed
  text: string
}

/** The log whose bits are flipped, and what it says before. */
export interface IntactLog {
  bytes: Uint8Array
  lines: IntactLine[]
  leafId: string
  /** Ids from the root to the leaf, and those that the context is made of. */
  pathIds: string[]
  contextIds: string[]
  waitingIds: string[]
  labels: Map<string, string>
}

export function intactLog(): IntactLog {
  const sealed = sealAll(sampleLines())
  const bytes = bytesOfLog(sealed)
  let at = 0
  const lines = sealed.map(({ text, seq, crc }): IntactLine => {
    const size = Buffer.byteLength(text)
    const parsed = parseLine(bytes.subarray(at, at + size))
    if (parsed.type === 'damaged') throw new Error(`The log to be damaged is damaged: ${parsed.reason}`)
    const placed = { seq, crc, at, size }
    at += size + 1
    return { line: parsed.line, placed, text }
  })
  const state = new SessionState({ isWhole: true })
  applyLines(state, lines, { from: 0, to: lines.length })
  const { leaf } = state
  if (!leaf || state.damageCount > 0) throw new Error('The log to be damaged does not fold')
  return {
    bytes,
    lines,
    leafId: leaf.id,
    pathIds: pathTo(leaf).map(({ id }) => id),
    contextIds: contextPathTo(leaf).nodes.map(({ id }) => id),
    waitingIds: state.inbox.messages.map(({ id }) => id),
    labels: new Map(state.labels),
  }
}

/** Folds intact lines as their writer does, that is without reading them. */
export function applyLines(
  state: SessionState,
  lines: readonly IntactLine[],
  { from, to }: { from: number; to: number },
): void {
  for (let index = from; index < to; index++) {
    const { line, placed } = lines[index] as IntactLine
    state.apply(line, placed)
    state.end = placed.at + placed.size + 1
  }
}
