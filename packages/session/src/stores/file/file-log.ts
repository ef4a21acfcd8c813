import { hostname } from 'node:os'
import { join } from 'node:path'
import { SessionError } from '../../errors.ts'
import type { Position } from '../../line/line.ts'
import type {
  AppendOptions,
  AppendResult,
  CheckpointPieces,
  Claim,
  DerivedData,
  Owner,
  ReadableLog,
  StoredLine,
  WritableLog,
} from '../../log/log-store.ts'
import type { BlobReference } from '../../line/message.ts'
import type { SealedLine } from '../../line/seal-line.ts'
import { getBlobFile, putBlobFile, replaceFile } from './blob-files.ts'
import type { FilePort, ReadPort } from './file-port.ts'
import type { LogFile } from './log-file.ts'
import type { LogPaths } from './log-paths.ts'
import { scanLines, seekLine } from './log-scan.ts'
import { livingOwner } from './owner-file.ts'
import { endOfLastLine, readRange, type Mended } from './recover.ts'
import { inParallel } from './session-index/slices.ts'
import { storageError } from './storage-error.ts'
import { isHeldHere } from './writer-lock.ts'

/** A log file open for reading, even while another process writes it. */
export class ReadableFileLog implements ReadableLog {
  protected readonly port: FilePort
  protected readonly paths: LogPaths
  readonly #fd: number
  readonly #reads: Reads

  constructor(port: FilePort, paths: LogPaths) {
    this.port = port
    this.paths = paths
    this.#fd = port.openRead(paths.log)
    this.#reads = new Reads(port)
  }

  get localFolder(): string | undefined {
    return this.paths.local
  }

  lines(from: number): AsyncIterable<StoredLine[]> {
    return scanLines(this.#reads, this.#fd, from)
  }

  async seek(seq: number): Promise<number | undefined> {
    return seekLine(this.#reads, this.#fd, seq)
  }

  /** Neighboring lines are read together. */
  async readAt(positions: readonly Position[]): Promise<Uint8Array[]> {
    const lines: Uint8Array[] = Array.from({ length: positions.length })
    const order = inFileOrder(positions)
    for (let start = 0; start < order.length;) {
      const { end, from, to } = groupAt(start, order, positions)
      const bytes = await readRange(this.#reads, this.#fd, { from, to })
      for (; start < end; start++) {
        const index = order[start] as number
        const { at, size } = positions[index] as Position
        lines[index] = bytes.subarray(at - from, at - from + size)
      }
    }
    return lines
  }

  async unfinishedBytes(): Promise<number> {
    const size = this.#reads.size(this.#fd)
    return size - (await endOfLastLine(this.#reads, this.#fd, size))
  }

  async changed(signal: AbortSignal): Promise<void> {
    await this.port.changed(this.paths.log, signal)
  }

  get host(): string {
    return hostname()
  }

  async owner(): Promise<Owner | undefined> {
    return livingOwner(this.port, this.paths.owner, () => isHeldHere(this.paths.lock))
  }

  async loadCheckpoint({ isBrief = false }: { isBrief?: boolean } = {}): Promise<string[]> {
    const { derived, pieces } = this.paths
    if (!this.port.exists(derived.checkpoint)) return []
    const numbers = isBrief ? [] : this.port.names(pieces).flatMap((name) => numberOfPiece(name) ?? [])
    numbers.sort((left, right) => left - right)
    const paths = [derived.checkpoint, ...numbers.map((number) => join(pieces, nameOfPiece(number)))]
    const contents: string[] = []
    await inParallel([...paths.entries()], async ([index, path]) => {
      contents[index] = await this.#text(path)
    })
    return contents
  }

  async #text(path: string): Promise<string> {
    const fd = this.port.openRead(path)
    try {
      return Buffer.from(await readRange(this.port, fd, { from: 0, to: this.port.size(fd) })).toString()
    } finally {
      this.port.close(fd)
    }
  }

  async getBlob(sha256: string): Promise<Uint8Array | undefined> {
    try {
      return await getBlobFile(this.port, this.paths.blobs, sha256)
    } catch (error) {
      throw storageError(`Could not read blob ${sha256}`, error)
    }
  }

  async close(): Promise<void> {
    await this.#reads.end()
    this.port.close(this.#fd)
  }
}

/**
 * Tracks reads of a log. Closing waits for pending reads and rejects new ones: after close, the descriptor may
 * belong to another file.
 */
class Reads implements ReadPort {
  readonly #port: ReadPort
  readonly #underWay = new Set<Promise<unknown>>()
  #hasEnded = false

  constructor(port: ReadPort) {
    this.#port = port
  }

  size(fd: number): number {
    this.#refuseEnded()
    return this.#port.size(fd)
  }

  async read(fd: number, bytes: Uint8Array, position: number): Promise<number> {
    this.#refuseEnded()
    const reading = this.#port.read(fd, bytes, position)
    this.#underWay.add(reading)
    try {
      return await reading
    } finally {
      this.#underWay.delete(reading)
    }
  }

  async end(): Promise<void> {
    this.#hasEnded = true
    if (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  #refuseEnded(): void {
    if (this.#hasEnded) throw new SessionError('session-closed', 'The session was closed during a read.')
  }
}

export interface WritableFileLogParts {
  port: FilePort
  paths: LogPaths
  file: LogFile
  mended: Mended
  writer: { host: string; process: string }
  hold: { isOurs: () => boolean; release: () => void }
}

/** A log file open for its only writer. */
export class WritableFileLog extends ReadableFileLog implements WritableLog {
  readonly #parts: WritableFileLogParts
  /** Files count no terms: the writer records do. */
  readonly term = undefined
  /** What the next append must name. Unknown until the first one, because the last line is not parsed here. */
  #expected: { term: number; head: number } | undefined
  /** How many pieces the checkpoint has. Unknown until the first save, which drops those that an earlier writer left. */
  #pieces: number | undefined

  constructor(parts: WritableFileLogParts) {
    super(parts.port, parts.paths)
    this.#parts = parts
  }

  get writer(): { host: string; process: string } {
    return this.#parts.writer
  }

  get mended(): Mended {
    return this.#parts.mended
  }

  append(lines: readonly SealedLine[], options: AppendOptions): AppendResult | Promise<AppendResult> {
    const { term, head } = this.#expected ?? options
    if (options.term !== term) return { type: 'fenced', reason: `its term is now ${term}` }
    if (options.head !== head) return { type: 'fenced', reason: `its last line is now ${head}` }
    const result = this.#parts.file.append(lines, options.durability)
    const taken = (settled: AppendResult): AppendResult => {
      if (settled.type === 'appended') this.#expected = { term, head: head + lines.length }
      return settled
    }
    return result instanceof Promise ? result.then(taken) : taken(result)
  }

  /** The outcome of a file write is always known, so there is nothing to settle. The next append has a new term. */
  async reclaim(): Promise<Claim> {
    this.#expected = undefined
    return { type: 'claimed', log: this }
  }

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    try {
      if (!this.#parts.hold.isOurs()) throw new Error('the lock file was deleted or moved away')
      return await putBlobFile(this.port, this.paths.blobs, bytes)
    } catch (cause) {
      throw new SessionError('storage-failed', `Could not store a blob (${(cause as Error).message}).`, { cause })
    }
  }

  async saveDerived({ checkpoint, queue, metadata }: DerivedData): Promise<void> {
    const { derived } = this.paths
    if (checkpoint) await this.#saveCheckpoint(checkpoint)
    if (queue !== undefined) await this.#replace(derived.queue, queue)
    if (metadata !== undefined) await this.#replace(derived.metadata, metadata)
  }

  async #saveCheckpoint({ count, changed }: CheckpointPieces): Promise<void> {
    const { derived, pieces } = this.paths
    // A checkpoint vouches for every line before it, so those lines must be durable first.
    await this.#parts.file.settle()
    if (!this.#parts.hold.isOurs()) return
    if (this.#pieces === undefined || count < this.#pieces) this.#dropPieces(count)
    this.#pieces = count
    if (count > 1) this.port.makeFolder(pieces)
    for (const [number, content] of changed) {
      if (number > 0) await this.#replace(join(pieces, nameOfPiece(number)), content)
    }
    const first = changed.get(0)
    if (first !== undefined) await this.#replace(derived.checkpoint, first)
  }

  /** Also removes what a killed writer left, and a file in the place of the folder. */
  #dropPieces(from: number): void {
    const { pieces } = this.paths
    try {
      for (const name of this.port.names(pieces)) {
        if ((numberOfPiece(name) ?? from) >= from) this.port.remove(join(pieces, name))
      }
    } catch {
      this.port.remove(pieces)
    }
  }

  async #replace(path: string, content: string): Promise<void> {
    // The folder with this name may belong to another session by now.
    if (!this.#parts.hold.isOurs()) return
    try {
      await replaceFile(this.port, path, content, { sync: false })
    } catch (error) {
      // A folder in the file's place is removed.
      if (!['EISDIR', 'ENOTEMPTY'].includes(String((error as NodeJS.ErrnoException).code))) throw error
      this.port.remove(path)
      await replaceFile(this.port, path, content, { sync: false })
    }
  }

  override async close(): Promise<void> {
    try {
      await super.close()
      this.#parts.file.close()
    } finally {
      this.#parts.hold.release()
    }
  }
}

function nameOfPiece(number: number): string {
  return `${number}.json`
}

function numberOfPiece(name: string): number | undefined {
  const number = Number.parseInt(name)
  return name === nameOfPiece(number) ? number : undefined
}

const maxGroupBytes = 1024 * 1024
const maxGapBytes = 16 * 1024

/** The indices of the positions, in the order of the file. */
function inFileOrder(positions: readonly Position[]): number[] {
  const order = Array.from(positions, (_, index) => index)
  const isSorted = positions.every(({ at }, index) => index === 0 || (positions[index - 1] as Position).at <= at)
  if (isSorted) return order
  return order.sort((left, right) => (positions[left] as Position).at - (positions[right] as Position).at)
}

/** The positions that one read covers: `end` is the index after the last one in `order`. */
function groupAt(
  start: number,
  order: readonly number[],
  positions: readonly Position[],
): { end: number; from: number; to: number } {
  const first = positions[order[start] as number] as Position
  const from = first.at
  let to = from + first.size
  let end = start + 1
  for (; end < order.length; end++) {
    const { at, size } = positions[order[end] as number] as Position
    if (at - to >= maxGapBytes || at + size - from >= maxGroupBytes) break
    to = Math.max(to, at + size)
  }
  return { end, from, to }
}
