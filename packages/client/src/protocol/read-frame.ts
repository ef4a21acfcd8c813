import { checksum, type DiskLine } from '@tapetree/session/format'
import { ackSchema, type Ack, type ServerFrame } from './frames.ts'

/** A parsed frame of the socket. */
export type Incoming =
  | { type: 'line'; seq: number; crc: string; disk: DiskLine }
  | { type: 'lost'; seq: number; count: number }
  /** A line that is too long for a frame. */
  | { type: 'large'; seq: number; crc: string }
  | { type: 'frame'; frame: ServerFrame }
  /** A frame of a newer server. */
  | { type: 'unknown' }

/** Throws if the text is not a frame. */
export function readFrame(text: string): Incoming {
  const parsed = JSON.parse(text) as Record<string, unknown>
  const { seq, type } = parsed
  if (typeof type !== 'string') throw new TypeError('A frame without a type.')
  if (typeof seq === 'number') return readLine(text, { ...parsed, seq, type })
  if (type === 'ack') return { type: 'frame', frame: { type, data: ackSchema.parse(parsed['data']) as Ack } }
  if (!frameTypes.has(type) || typeof parsed['data'] !== 'object') return { type: 'unknown' }
  return { type: 'frame', frame: parsed as unknown as ServerFrame }
}

function readLine(text: string, line: Record<string, unknown> & { seq: number; type: string }): Incoming {
  const { seq, type, id, count, crc, line_crc: lineCrc } = line
  if (id === undefined && type === 'lost' && typeof count === 'number') return { type, seq, count }
  if (id === undefined && type === 'large' && typeof lineCrc === 'string') return { type, seq, crc: lineCrc }
  return { type: 'line', seq, crc: typeof crc === 'string' ? crc : checksum(text), disk: line as unknown as DiskLine }
}

const frameTypes = new Set<string>([
  'attached',
  'delta',
  'partial',
  'state',
  'queue_updated',
  'queue_message_sending',
  'queue_message_sent',
  'pong',
  'gone',
  'bye',
] satisfies ServerFrame['type'][])
