import { fromDisk, payloadFromDisk, payloadOf } from './codec.ts'
import type { Header } from './entry.ts'
import { parseLine } from './parse-line.ts'
import type { PlacedRecord } from './recent-facts.ts'
import type { SessionReader } from './session-reader.ts'
import { isGap, type Node } from './tree.ts'
import type { PermissionRequest, SnapshotFold, Transcript, TranscriptError, TranscriptRun } from './transcript.ts'

/**
 * Enough to begin a transcript without the whole log: what the fold says at `head`, and the newest lines of the path. What lies
 * before them is asked for when somebody wants to see it.
 */
export interface SessionSnapshot {
  head: { seq: number; crc: string }
  /** Lines of the path as they stand in the log, the oldest first. */
  lines: { seq: number; text: string }[]
  /** The entry before the first line: where a reader pages back from. Null at the beginning. */
  before: string | null
  leafId: string | null
  fold: SnapshotFold
}

/** The snapshot at the last durable line. Reads no more of the log than the lines it gives. */
export async function makeSnapshot(reader: SessionReader, options: { entries: number }): Promise<SessionSnapshot> {
  const { state } = reader
  const { seq, crc } = state.last
  const fold = foldOf(reader)
  const leafId = state.leaf?.id ?? null
  const { leaf } = state
  for (let entries = options.entries; ; entries++) {
    const { nodes, before } = newestNodes(leaf, entries)
    const lines = await linesOf(nodes, reader)
    // A result is shown with its call.
    if (before === null || nodes.length < entries || !isResult(lines[0]?.text)) {
      return { head: { seq, crc }, lines, before, leafId, fold }
    }
  }
}

async function linesOf(nodes: readonly Node[], { log }: SessionReader): Promise<SessionSnapshot['lines']> {
  const readable = nodes.filter((node) => !isGap(node))
  const bytes = await log.readAt(readable)
  const decoder = new TextDecoder()
  return readable.map((node, index) => ({ seq: node.seq, text: decoder.decode(bytes[index]) }))
}

function isResult(line: string | undefined): boolean {
  const parsed = line === undefined ? undefined : parseLine(new TextEncoder().encode(line))
  return parsed?.type === 'line' && payloadOf(parsed.line)['role'] === 'tool'
}

/** From the leaf upwards, as far as was asked for or as far as has been read. */
function newestNodes(leaf: Node | null, count: number): { nodes: Node[]; before: string | null } {
  const nodes: Node[] = []
  let node: Node | null | 'unread' = leaf
  while (node !== null && node !== 'unread' && nodes.length < count) {
    nodes.push(node)
    node = node.parent
  }
  const oldest = nodes.at(-1)
  return { nodes: nodes.reverse(), before: node === null ? null : (oldest?.id ?? null) }
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
