import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { RedactingByteStream } from '@tapetree/redact'

/**
 * Stores output within a cap. The beginning is in `output`; after half of the cap, the rest goes into
 * `output.<offset>` files of a quarter each, of which the newest two stay. Offsets count every printed byte.
 */
export class OutputWriter {
  readonly #folder: string
  readonly #capBytes: number
  /** The first segment, and the newest two after it. */
  readonly #segments: Segment[]
  #bytes = 0
  #error: string | undefined

  constructor(folder: string, capBytes: number) {
    this.#folder = folder
    this.#capBytes = capBytes
    this.#segments = [this.#open(0, Math.ceil(capBytes / 2))]
  }

  /** Size of all output, stored or not. */
  get bytes(): number {
    return this.#bytes
  }

  /** Why it stopped storing output, for example because the disk is full. */
  get error(): string | undefined {
    return this.#error
  }

  write(chunk: Uint8Array): void {
    this.#bytes += chunk.length
    try {
      for (let rest = chunk; rest.length > 0 && this.#error === undefined;) {
        const segment = this.#segmentFor(this.#bytes - rest.length)
        const written = writeSync(segment.file, rest, 0, Math.min(rest.length, segment.room))
        segment.room -= written
        rest = rest.subarray(written)
      }
    } catch (error) {
      this.#error = (error as Error).message
    }
  }

  /** Syncs the stored output. */
  close(): void {
    for (const { file } of this.#segments) {
      try {
        if (this.#bytes > 0) fdatasyncSync(file)
      } catch (error) {
        this.#error ??= (error as Error).message
      }
      closeSync(file)
    }
  }

  #segmentFor(offset: number): Segment {
    const newest = this.#segments.at(-1)
    if (newest && newest.room > 0) return newest
    const next = this.#open(offset, Math.ceil(this.#capBytes / 4))
    this.#segments.push(next)
    for (const { file, path } of this.#segments.splice(1, this.#segments.length - 3)) {
      closeSync(file)
      unlinkSync(path)
    }
    return next
  }

  #open(offset: number, room: number): Segment {
    const path = join(this.#folder, offset === 0 ? 'output' : `output.${offset}`)
    return { path, file: openSync(path, 'wx', 0o600), room }
  }
}

interface Segment {
  path: string
  file: number
  room: number
}

/** A contiguous piece of output. */
export interface OutputPiece {
  offset: number
  bytes: Buffer
}

export interface SpooledOutput {
  /** In order. Output is missing between them, and before the first if it starts after the requested offset. */
  pieces: OutputPiece[]
  /** Offset of the next byte. */
  end: number
}

export interface ReadOutputOptions {
  /** The offset to start at. */
  from?: number
  /** Reads at most this many of the newest bytes. */
  limitBytes?: number
}

/** The stored output of a command so far. */
export async function readOutput(folder: string, options: ReadOutputOptions = {}): Promise<SpooledOutput> {
  const { from = 0, limitBytes = Infinity } = options
  const files = await listFiles(folder)
  const newest = files.at(-1)
  const end = newest ? newest.offset + newest.size : 0
  const begin = Math.max(from, end - limitBytes)
  const pieces: OutputPiece[] = []
  for (const { path, offset, size } of files) {
    const start = Math.max(begin, offset)
    const length = offset + size - start
    if (length <= 0) continue
    const bytes = await readRange(path, start - offset, length)
    const last = pieces.at(-1)
    if (!bytes) continue
    if (last && last.offset + last.bytes.length === start) last.bytes = Buffer.concat([last.bytes, bytes])
    else pieces.push({ offset: start, bytes })
  }
  return { pieces, end }
}

interface OutputFile {
  path: string
  offset: number
  size: number
}

async function listFiles(folder: string): Promise<OutputFile[]> {
  const names = await readdir(folder).catch(() => []) // without a folder nothing was printed
  const files = await Promise.all(
    names.map(async (name) => {
      const [isOutput, offset = '0'] = /^output(?:\.(\d+))?$/.exec(name) ?? []
      if (isOutput === undefined) return []
      const path = join(folder, name)
      const found = await stat(path).catch(() => undefined) // it was dropped meanwhile
      return found ? [{ path, offset: Number(offset), size: found.size }] : []
    }),
  )
  return files.flat().sort((left, right) => left.offset - right.offset)
}

async function readRange(path: string, position: number, length: number): Promise<Buffer | undefined> {
  const file = await open(path, 'r').catch(() => undefined) // as above
  if (!file) return undefined
  try {
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, position)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** After this long without output, deferred text is examined. */
const quietMs = 50

/**
 * Redacts output on its way to disk; all offsets count redacted bytes. A possible start of a secret is held
 * back until it is decided, at the latest when the command ends.
 */
export class RedactedOutput {
  readonly #writer: OutputWriter
  readonly #stream: RedactingByteStream
  readonly #quiet: NodeJS.Timeout

  constructor(writer: OutputWriter, stream: RedactingByteStream) {
    this.#writer = writer
    this.#stream = stream
    this.#quiet = setTimeout(() => this.#writer.write(stream.catchUp()), quietMs)
  }

  write(chunk: Uint8Array): void {
    this.#writer.write(this.#stream.write(chunk))
    this.#quiet.refresh()
  }

  close(): void {
    clearTimeout(this.#quiet)
    this.#writer.write(this.#stream.end())
    this.#writer.close()
  }
}
