import { fromDisk, payloadFromDisk } from '../line/codec.ts'
import type { Header } from '../line/entry.ts'
import { parseLine } from '../line/parse-line.ts'
import type { PlacedRecord } from '../state/recent-facts.ts'
import type { SessionReader } from '../log/session-reader.ts'
import { isGap, type Node } from '../state/tree.ts'
import { CallsAbove } from '../view/calls-above.ts'
import type { PermissionRequest, SnapshotFold, Transcript, TranscriptError, TranscriptRun } from '../view/transcript.ts'

/**
 * Enough to start a transcript without the whole log: the fold at `head`, and the newest lines of the path.
 * Earlier lines are loaded on demand.
 */
export interface SessionSnapshot {
  head: { seq: number; crc: string }
  /** Lines of the path as stored, oldest first. */
  lines: { seq: number; text: string }[]
  /** The entry before the first line, from which readers page back. Null at the beginning. */
  before: string | null
  leafId: string | null
  fold: SnapshotFold
}

export interface SnapshotOptions {
  /** Maximum number of newest entries of the path. */
  entries: number
  /** Returns fewer entries if together they exceed this size, but at least one. */
  bytes?: number
}

/** The snapshot at the last durable line. Reads only the lines that it returns. */
export async function makeSnapshot(reader: SessionReader, options: SnapshotOptions): Promise<SessionSnapshot> {
  const { state } = reader
  const { seq, crc } = state.last
  const fold = foldOf(reader)
  const leafId = state.leaf?.id ?? null
  const nodes = newestNodes(state.leaf, options)
  const lines = await linesOf(nodes, reader)
  const calls = new CallsAbove([...state.facts.running, ...state.facts.asked])
  for (const line of lines.toReversed()) goBackTo(calls, line)
  for (let reach = 0; calls.areAny && reach < CallsAbove.maxReach; reach++) {
    const parent = parentOf(nodes[0])
    if (!parent) break
    nodes.unshift(parent)
    const [line] = await linesOf([parent], reader)
    if (!line) continue
    lines.unshift(line)
    goBackTo(calls, line)
  }
  const oldest = nodes[0]
  const before = oldest && oldest.parent !== null ? oldest.id : null
  return { head: { seq, crc }, lines, before, leafId, fold }
}

function goBackTo(calls: CallsAbove, { seq, text }: SessionSnapshot['lines'][number]): void {
  const parsed = parseLine(new TextEncoder().encode(text))
  if (parsed.type === 'line') calls.goBackTo(fromDisk(parsed.line, seq))
}

async function linesOf(nodes: readonly Node[], { log }: SessionReader): Promise<SessionSnapshot['lines']> {
  const readable = nodes.filter((node) => !isGap(node))
  const bytes = await log.readAt(readable)
  const decoder = new TextDecoder()
  return readable.map((node, index) => ({ seq: node.seq, text: decoder.decode(bytes[index]) }))
}

/** From the leaf upwards, up to the requested size or the unread part; oldest first. */
function newestNodes(leaf: Node | null, { entries, bytes = Infinity }: SnapshotOptions): Node[] {
  const nodes: Node[] = []
  let size = 0
  for (let node: Node | undefined = leaf ?? undefined; node && nodes.length < entries; node = parentOf(node)) {
    size += node.size
    if (size > bytes && nodes.length > 0) break
    nodes.push(node)
  }
  return nodes.reverse()
}

function parentOf(node: Node | undefined): Node | undefined {
  return node?.parent === 'unread' ? undefined : (node?.parent ?? undefined)
}

function foldOf({ state }: SessionReader): SnapshotFold {
  const { facts, header, totals, damage } = state
  const { usage } = totals
  return {
    header: header ? (fromDisk(header, 1) as Header) : null,
    name: state.name,
    labels: [...state.labels],
    waiting: state.inbox.messages,
    hold: state.inbox.hold,
    permissions: state.permissions.pending.map((each) => placed('permission_request', each) as PermissionRequest),
    run: facts.run && (placed('run_start', facts.run) as TranscriptRun),
    lastRun: facts.lastRun && (payloadFromDisk('run_end', facts.lastRun.payload) as Transcript['lastRun']),
    lastError: facts.lastError && (placed('error', facts.lastError) as TranscriptError),
    plan: facts.plan ? (payloadFromDisk('plan', facts.plan.payload)['items'] as Transcript['plan']) : [],
    usage: {
      inputTokens: usage.input_tokens,
      outputTokens: usage.output_tokens,
      cacheReadTokens: usage.cache_read_tokens,
      cacheWriteTokens: usage.cache_write_tokens,
      reasoningTokens: usage.reasoning_tokens,
      totalTokens: usage.total_tokens,
      cost: usage.cost,
    },
    damage: {
      lostLines: damage.reduce((sum, { count }) => sum + count, 0),
      throughSeq: damage.reduce((last, { seq, count }) => (count > 0 ? Math.max(last, seq + count - 1) : last), 0),
      seenThrough: state.damageSeenThrough,
    },
    ended: state.ended,
    running: [...facts.running],
  }
}

function placed(type: string, { payload, seq, timestamp }: PlacedRecord): unknown {
  return { ...payloadFromDisk(type, payload), seq, timestamp }
}
