import { fromDisk, toDisk, type DiskLine, type Header } from '@tapetree/session/format'
import type { SessionSnapshot, SnapshotFold, SnapshotInput } from '@tapetree/session/view'
import { camelCase } from '@tapetree/session/util/json'

export type Payload = Record<string, unknown>

/** A snapshot on the wire: members taken from lines have the names of the log. */
export interface WireSnapshot {
  head: { seq: number; crc: string }
  /** Lines as stored, oldest first. */
  lines: { seq: number; text: string }[]
  /** The entry before the first line. Null at the beginning. */
  before: string | null
  leaf_id: string | null
  fold: WireFold
}

export interface WireFold {
  header: Payload | null
  name: string
  labels: [entryId: string, label: string][]
  waiting: Payload[]
  hold: { reason: string } | null
  permissions: Payload[]
  run: Payload | null
  last_run: Payload | null
  last_error: Payload | null
  plan: unknown
  usage: Payload
  damage: { lost_lines: number; through_seq: number; seen_through: number }
  ended: string | null
  running: string[]
}

export function snapshotToWire({ head, lines, before, leafId, fold }: SessionSnapshot): WireSnapshot {
  const { header, name, labels, waiting, hold, permissions, run, lastRun, lastError, plan, usage, damage } = fold
  const { ended, running } = fold
  return {
    head,
    lines,
    before,
    leaf_id: leafId,
    fold: {
      header: header && toDisk({ ...header }, header),
      name,
      labels,
      waiting: waiting.map((each) => payloadToWire('submission', each)),
      hold,
      permissions: permissions.map((each) => payloadToWire('permission_request', each)),
      run: run && payloadToWire('run_start', run),
      last_run: lastRun && payloadToWire('run_end', lastRun),
      last_error: lastError && payloadToWire('error', lastError),
      plan: payloadToWire('plan', { items: plan })['items'],
      usage: payloadToWire('usage', { tokens: usage })['tokens'] as Payload,
      damage: {
        lost_lines: damage.lostLines,
        through_seq: damage.throughSeq,
        seen_through: damage.seenThrough,
      },
      ended,
      running,
    },
  }
}

/** The snapshot with its lines parsed, as a transcript needs it. */
export function snapshotFromWire({ head, lines, leaf_id: leafId, fold }: WireSnapshot): SnapshotInput {
  return {
    head,
    lines: lines.map(({ seq, text }) => fromDisk(JSON.parse(text) as DiskLine, seq)),
    leafId,
    fold: foldFromWire(fold),
  }
}

function foldFromWire(fold: WireFold): SnapshotFold {
  const { header, run, last_run: lastRun, last_error: lastError, damage, ...others } = fold
  return {
    ...others,
    header: header && (fromDisk(header as DiskLine, 1) as Header),
    waiting: fold.waiting.map((each) => read('submission', each)),
    permissions: fold.permissions.map((each) => read('permission_request', each)),
    run: run && read('run_start', run),
    lastRun: lastRun && read('run_end', lastRun),
    lastError: lastError && read('error', lastError),
    plan: read('plan', { items: fold.plan }).items,
    usage: read('usage', { tokens: fold.usage }).tokens,
    damage: {
      lostLines: damage.lost_lines,
      throughSeq: damage.through_seq,
      seenThrough: damage.seen_through,
    },
  }
}

interface FoldedPayloads extends Record<PayloadType, object> {
  submission: SnapshotFold['waiting'][number]
  permission_request: SnapshotFold['permissions'][number]
  run_start: NonNullable<SnapshotFold['run']>
  run_end: NonNullable<SnapshotFold['lastRun']>
  error: NonNullable<SnapshotFold['lastError']>
  plan: { items: SnapshotFold['plan'] }
  usage: { tokens: SnapshotFold['usage'] }
}

/** The server's own fold is not validated again. */
function read<Type extends keyof FoldedPayloads>(type: Type, payload: object): FoldedPayloads[Type] {
  return payloadFromWire(type, payload) as unknown as FoldedPayloads[Type]
}

/** Line types whose payloads are also sent outside of the log. */
export type PayloadType = 'submission' | 'permission_request' | 'run_start' | 'run_end' | 'error' | 'plan' | 'usage'

/** Converts names of a payload with the log's codec; foreign members keep their names in both directions. */
export function payloadToWire(type: PayloadType, payload: object): Payload {
  return toDisk({ type, [camelCase(type)]: payload }, nowhere)[type] as Payload
}

export function payloadFromWire(type: PayloadType, payload: object): Payload {
  const line: object = fromDisk({ type, ...nowhere, [type]: payload }, 0)
  return (line as Payload)[camelCase(type)] as Payload
}

const nowhere = { id: '', timestamp: '' }
