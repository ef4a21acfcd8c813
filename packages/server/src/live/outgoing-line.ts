import { limits } from '@tapetree/client'
import { checksum, type LogLine } from '@tapetree/session'
import type { OutgoingLine } from './recent-lines.ts'

/** A line byte for byte; one that is too long for a frame is only named. */
export function outgoing({ seq, crc, text }: { seq: number; crc: string; text: string }): OutgoingLine {
  const bytes = Buffer.from(text)
  if (bytes.length <= limits.maxLineBytes) return { seq, crc, count: 1, bytes }
  const named = JSON.stringify({ seq, type: 'large', size: bytes.length, line_crc: crc })
  return { seq, crc, count: 1, bytes: Buffer.from(named) }
}

export function outgoingLine(line: LogLine): OutgoingLine {
  if (line.type === 'lost') {
    const { seq, count } = line
    return { seq, crc: '', count, bytes: Buffer.from(JSON.stringify({ seq, type: 'lost', count })) }
  }
  return outgoing({ seq: line.seq, crc: crcOf(line.text), text: line.text })
}

/** The one that the line carries; of a line stored without, the checksum of its bytes. */
function crcOf(text: string): string {
  const { crc } = JSON.parse(text) as { crc?: unknown }
  return typeof crc === 'string' ? crc : checksum(text)
}
