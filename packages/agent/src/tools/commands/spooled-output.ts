import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * What a command prints, kept within a cap: the beginning is in `output`; once that has half of the cap, what follows goes into
 * `output.<offset>` files of a quarter each, of which the newest two stay. An offset counts every byte that was printed.
 */
export class OutputWriter {
  readonly #folder: string
  readonly #capBytes: number
  /** The first, and the newest two of those that follow it. */
  readonly #segments: Segment[]
  #bytes = 0
  #error: string | undefined

  constructor(folder: string, capBytes: number) {
    this.#folder = folder
    this.#capBytes = capBytes
    this.#segments = [this.#open(0, Math.ceil(capBytes / 2))]
  }

  /** Everything that was printed, kept or not. */
  get bytes(): number {
    return this.#bytes
  }

  /** Why it stopped keeping what is printed, as when the disk is full. */
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

  /** Puts on the disk what is kept. */
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

/** A stretch of output without a hole. */
export interface OutputPiece {
  offset: number
  bytes: Buffer
}

export interface SpooledOutput {
  /** In order. Between them, and before them where it does not begin at the offset asked for, something was not kept. */
  pieces: OutputPiece[]
  /** Where the next byte will be. */
  end: number
}

export interface ReadOutputOptions {
  /** The offset to begin at. */
  from?: number
  /** Reads no more than the newest this many bytes. */
  limitBytes?: number
}

/** What a command has printed so far, as far as it is kept. */
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
  const names = await readdir(folder).catch(() => []) // where there is no folder nothing was printed
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
