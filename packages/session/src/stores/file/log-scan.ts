import { maxReadLineBytes } from '../../line/line.ts'
import type { StoredLine } from '../../log/log-store.ts'
import { parseLine } from '../../line/parse-line.ts'
import type { ReadPort } from './file-port.ts'

/**
 * The complete, non-empty lines of a file from an offset on. Splits on byte 0x0A only. `firstBytes` limits the
 * first read, for callers that need only a few lines; later chunks grow.
 */
export async function* scanLines(
  port: ReadPort,
  fd: number,
  from: number,
  firstBytes = chunkBytes,
): AsyncIterable<StoredLine[]> {
  const line = new PartialLine(from)
  let position = from
  let size = firstBytes
  let reading = readChunk(port, fd, { position, size })
  for (;;) {
    const chunk = await reading
    if (chunk.length === 0) return
    // Read the next chunk while this one is split.
    size = Math.min(chunkBytes, size * 4)
    reading = readChunk(port, fd, { position: position + chunk.length, size })
    reading.catch(() => undefined) // awaited in the next iteration, if there is one
    yield* line.split(chunk, position)
    position += chunk.length
  }
}

/** Allocates no more than the rest of the file: most logs are small, and a full chunk costs more than the read. */
async function readChunk(
  port: ReadPort,
  fd: number,
  { position, size }: { position: number; size: number },
): Promise<Uint8Array> {
  const chunk = new Uint8Array(Math.max(0, Math.min(size, port.size(fd) - position)))
  return chunk.length === 0 ? chunk : chunk.subarray(0, await port.read(fd, chunk, position))
}

const chunkBytes = 1024 * 1024
const batchLines = 512
/** How many bytes of an over-long line are kept to identify it. */
const headBytes = 1024

/** The incomplete line at the end of a chunk; the next chunk continues it. */
class PartialLine {
  #start: number
  #pieces: Uint8Array[] = []
  #size = 0

  constructor(start: number) {
    this.#start = start
  }

  /** Yields batches: a chunk may hold a million empty lines, each taking a hundred times its size in memory. */
  *split(chunk: Uint8Array, position: number): Iterable<StoredLine[]> {
    // The search of a Buffer is much faster than that of a plain array of bytes.
    const searched = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    let lines: StoredLine[] = []
    let from = 0
    for (let end = searched.indexOf(0x0a); end !== -1; end = searched.indexOf(0x0a, from)) {
      if (end > from || this.#size > 0) lines.push(this.#finish(chunk.subarray(from, end)))
      from = end + 1
      this.#start = position + from
      if (lines.length < batchLines) continue
      yield lines
      lines = []
    }
    if (from < chunk.length) this.#hold(chunk.subarray(from))
    if (lines.length > 0) yield lines
  }

  #finish(last: Uint8Array): StoredLine {
    const at = this.#start
    if (this.#size === 0) return { at, size: last.length, next: at + last.length + 1, bytes: last }
    this.#hold(last)
    const line = { at, size: this.#size, next: at + this.#size + 1, bytes: Buffer.concat(this.#pieces) }
    this.#pieces = []
    this.#size = 0
    return line
  }

  #hold(piece: Uint8Array): void {
    this.#size += piece.length
    this.#pieces.push(piece)
    // Over-long lines are never parsed, so only the start is kept.
    if (this.#size > maxReadLineBytes) this.#pieces = [Buffer.concat(this.#pieces, headBytes)]
  }
}

/** Finds the line with a seq, or the first one after it, by binary search. */
export async function seekLine(port: ReadPort, fd: number, seq: number): Promise<number | undefined> {
  let low = 0
  let high = port.size(fd)
  while (high - low > bisectBytes) {
    const middle = low + Math.floor((high - low) / 2)
    const found = await firstNumbered(port, fd, middle, high)
    if (found && found.seq < seq) low = found.at
    else high = middle
  }
  let isFirst = true
  for await (const batch of scanLines(port, fd, low, bisectBytes)) {
    for (const stored of batch) {
      const here = seqOf(stored.bytes)
      // A plain file has no seqs: callers count from the start.
      if (here === undefined && isFirst && low === 0) return 0
      isFirst = false
      if (here !== undefined && here >= seq) return stored.at
    }
  }
  return undefined
}

const bisectBytes = 64 * 1024
/** Most lines are shorter than this. */
const probeBytes = 8 * 1024

/** The first line after an offset whose seq is proven by its checksum; an unproven seq could mislead the search. */
async function firstNumbered(
  port: ReadPort,
  fd: number,
  after: number,
  before: number,
): Promise<{ at: number; seq: number } | undefined> {
  let isFirst = true
  for await (const batch of scanLines(port, fd, after, probeBytes)) {
    for (const stored of batch) {
      if (stored.at >= before) return undefined
      // The scan starts inside a line, so the first piece is not a line.
      const seq = isFirst ? undefined : provenSeqOf(stored.bytes)
      isFirst = false
      if (seq !== undefined) return { at: stored.at, seq }
    }
  }
  return undefined
}

function provenSeqOf(bytes: Uint8Array): number | undefined {
  const parsed = parseLine(bytes)
  return parsed.type === 'line' ? parsed.line.seq : undefined
}

function seqOf(bytes: Uint8Array): number | undefined {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 32)).toString('latin1')
  const seq = /^\{"seq":(\d{1,15}),/.exec(start)
  return seq ? Number(seq[1]) : undefined
}
