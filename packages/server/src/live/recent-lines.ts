import { limits, type Cursor } from '@tapetree/client/protocol'
import { checksum } from '@tapetree/session/format'
import type { LogLine } from '@tapetree/session/log-store'

/** A line as sent: serialized once for all clients. */
export interface OutgoingLine {
  seq: number
  crc: string
  /** How many lines it stands for: more than one if some were lost. */
  count: number
  bytes: Buffer
}

/** The newest lines of a log. Clients further behind start with a snapshot. */
export class RecentLines {
  #lines: OutgoingLine[] = []
  /** Index of the first line in the array. */
  #dropped = 0
  #bytes = 0

  add(line: OutgoingLine): void {
    this.#lines.push(line)
    this.#bytes += line.bytes.length
    while (this.#size > limits.maxBehindLines || (this.#bytes > limits.maxBehindBytes && this.#size > 1)) this.#drop()
  }

  /** Adds lines before the first one, if they lead up to it and there is room for them. */
  addOlder(older: readonly OutgoingLine[]): void {
    const first = this.#lines[this.#dropped]
    if (!first) return
    const before = older.filter(({ seq }) => seq < first.seq)
    const last = before.at(-1)
    if (!last || last.seq + last.count !== first.seq) return
    let bytes = this.#bytes
    const added = before
      .toReversed()
      .slice(0, limits.maxBehindLines - this.#size)
      .filter((line) => (bytes += line.bytes.length) <= limits.maxBehindBytes)
      .reverse()
    this.#bytes += added.reduce((sum, line) => sum + line.bytes.length, 0)
    this.#lines = [...added, ...this.#lines.slice(this.#dropped)]
    this.#dropped = 0
  }

  get #size(): number {
    return this.#lines.length - this.#dropped
  }

  /** The seq of the newest line; 0 if there is none. */
  get lastSeq(): number {
    const last = this.#lines.at(-1)
    return last ? last.seq + last.count - 1 : 0
  }

  /** The line after this one, if it is still held. */
  after(seq: number): OutgoingLine | undefined {
    return this.#next(seq)
  }

  /** Whether every line after this one is held. */
  reaches(seq: number): boolean {
    const first = this.#lines[this.#dropped]
    return first ? seq + 1 >= first.seq : false
  }

  /** Undefined if the line is no longer held. */
  crcOf(seq: number): Cursor['crc'] | undefined {
    const line = this.#next(seq - 1)
    return line?.seq === seq ? line.crc : undefined
  }

  /** Called by every reader for every line, mostly without a result, so it avoids any search. */
  #next(seq: number): OutgoingLine | undefined {
    const first = this.#lines[this.#dropped]
    const last = this.#lines.at(-1)
    if (!first || !last || seq + 1 < first.seq || seq >= last.seq) return undefined
    // Usually every number has a line.
    const guess = this.#lines[this.#dropped + seq + 1 - first.seq]
    if (guess?.seq === seq + 1) return guess
    return this.#lines.find((line, index) => index >= this.#dropped && line.seq > seq)
  }

  /**
   * Not one by one: shifting an array of thousands for each line would cost more than the line. Nor too late:
   * dropped lines are held until then, and a few lines may fill the limit.
   */
  #drop(): void {
    this.#bytes -= this.#lines[this.#dropped]?.bytes.length ?? 0
    this.#dropped++
    if (this.#dropped < Math.min(512, this.#size)) return
    this.#lines = this.#lines.slice(this.#dropped)
    this.#dropped = 0
  }
}

/** A line byte for byte; one that is too long for a frame is only announced. */
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

/** The checksum in the line; for a line without one, the checksum of its bytes. */
function crcOf(text: string): string {
  const { crc } = JSON.parse(text) as { crc?: unknown }
  return typeof crc === 'string' ? crc : checksum(text)
}
