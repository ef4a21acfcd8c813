import { crc32 } from '#crc32'
import type { DiskLine } from './line.ts'

/** A line ready to be stored: its text without the newline, and the seq and crc that cursors refer to. */
export interface SealedLine {
  seq: number
  crc: string
  text: string
}

/** `seq` first, `crc` last; the checksum covers every byte before the last `,"crc":`. */
export function sealLine(disk: DiskLine, seq: number): SealedLine {
  return sealBody(JSON.stringify(disk), seq)
}

/** The same for a line whose members (without seq and crc) are already serialized. */
export function sealBody(body: string, seq: number): SealedLine {
  const open = `{"seq":${seq},${body.slice(1, -1)}`
  const crc = checksum(open)
  return { seq, crc, text: `${open},"crc":"${crc}"}` }
}

export function checksum(bytes: string | Uint8Array): string {
  return crc32(bytes).toString(16).padStart(8, '0')
}
