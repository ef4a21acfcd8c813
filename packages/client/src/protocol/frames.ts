import { z } from 'zod'
import type { StateKey, WireStateValues } from './state-values.ts'
import type { WireSnapshot } from './wire-snapshot.ts'

/** A problem (RFC 9457): the body of every failed request, and `error` of every rejected command. */
export const problemSchema = z.object({
  /** The kind of problem, such as `session-busy`, for programs. */
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  instance: z.string().optional(),
})

/** Problems may have more members, such as the client that answered first. */
export type Problem = z.infer<typeof problemSchema> & Record<string, unknown>

export const subprotocol = 'tapetree.v1'

/** The last line that a client has applied. */
export const cursorSchema = z.strictObject({ seq: z.int().nonnegative(), crc: z.string().max(64) })
export type Cursor = z.infer<typeof cursorSchema>

export type SnapshotReason = 'first' | 'history_changed' | 'cursor_ahead' | 'too_far_behind'

export interface Attached {
  session_id: string
  client_id: string
  mode: 'tail' | 'snapshot'
  reason?: SnapshotReason
  head: Cursor
  /** The first line that follows. */
  from: number
  limits: { max_behind_lines: number; max_behind_bytes: number; max_frame_bytes: number }
  state: { [Key in StateKey]?: { value: WireStateValues[Key]; rev: number } }
  snapshot?: WireSnapshot
}

export interface TextFrame {
  item: string
  part: number
  kind: 'text' | 'reasoning' | 'tool_input' | 'tool_output'
  off: number
  text: string
  run?: string
}

export const ackSchema = z.object({
  id: z.string(),
  ok: z.boolean(),
  /** The command had taken effect already. */
  dup: z.boolean().optional(),
  /** The seq of the line that the command caused. */
  seq: z.int().optional(),
  result: z.unknown().optional(),
  error: problemSchema.loose().optional(),
})
export type Ack = Omit<z.infer<typeof ackSchema>, 'error'> & { error?: Problem }

/** All frames except log lines, which have no envelope. */
export type ServerFrame =
  | { type: 'attached'; data: Attached }
  | { type: 'delta' | 'partial'; data: TextFrame }
  | { type: 'state'; data: { key: StateKey; value: unknown }; rev: number }
  | {
      type: 'queue_updated'
      data: { queue_length: number; action: 'added' | 'removed' | 'cleared'; message_id: string | null }
    }
  | { type: 'queue_message_sending' | 'queue_message_sent'; data: { message_id: string } }
  | { type: 'ack'; data: Ack }
  | { type: 'pong'; data: { n: number; head: Cursor; time: string } }
  | { type: 'gone' | 'bye'; data: { reason: string; retry_after_ms?: number } }

export const closeCodes = {
  badFrame: 4400,
  auth: 4401,
  origin: 4403,
  gone: 4404,
  noAttach: 4408,
  replaced: 4409,
  tooLarge: 4413,
  rate: 4429,
  restart: 1012,
} as const

export const limits = {
  /** How many lines and bytes a client may be behind and still receive single lines instead of a snapshot. */
  maxBehindLines: 2000,
  maxBehindBytes: 4 * 1024 * 1024,
  maxFrameBytes: 256 * 1024,
  maxTextLength: 64 * 1024,
  /** Longer lines are only announced; clients fetch them by REST. */
  maxLineBytes: 192 * 1024,
  attachMs: 10_000,
  presenceLeaseMs: 45_000,
} as const
