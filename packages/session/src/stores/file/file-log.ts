import { hostname } from 'node:os'
import { SessionError } from '../../errors.ts'
import type { Position } from '../../line/line.ts'
import type {
  AppendOptions,
  AppendResult,
  Claim,
  DerivedFile,
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
    const lines = new Map<Position, Uint8Array>()
    for (const group of neighbours(positions)) {
      const from = (group[0] as Position).at
      const to = endOf(group.at(-1) as Position)
      const bytes = await readRange(this.#reads, this.#fd, { from, to })
      for (const position of group) lines.set(position, bytes.subarray(position.at - from, endOf(position) - from))
    }
    return positions.map((position) => lines.get(position) as Uint8Array)
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

  async loadCheckpoint({ maxBytes = Infinity }: { maxBytes?: number } = {}): Promise<string | undefined> {
    const path = this.paths.derived.checkpoint
    if (!this.port.exists(path)) return undefined
    const fd = this.port.openRead(path)
    try {
      return Buffer.from(
        await readRange(this.port, fd, { from: 0, to: Math.min(maxBytes, this.port.size(fd)) }),
      ).toString()
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
    return this.#parts.file.append(lines, options.durability)
  }

  /** The outcome of a file write is always known, so there is nothing to settle. */
  async reclaim(): Promise<Claim> {
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

  async saveDerived(file: DerivedFile, content: string): Promise<void> {
    // A checkpoint vouches for every line before it, so those lines must be durable first.
    if (file === 'checkpoint') await this.#parts.file.settle()
    // The folder with this name may belong to another session by now.
    if (!this.#parts.hold.isOurs()) return
    const path = this.paths.derived[file]
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

const maxGroupBytes = 1024 * 1024
const maxGapBytes = 16 * 1024

/** Positions in file order, grouped so that each group takes one read. */
function neighbours(positions: readonly Position[]): Position[][] {
  const groups: Position[][] = []
  for (const position of positions.toSorted((left, right) => left.at - right.at)) {
    const group = groups.at(-1)
    const first = group?.[0]
    const last = group?.at(-1)
    const isClose =
      first && last && position.at - endOf(last) < maxGapBytes && endOf(position) - first.at < maxGroupBytes
    if (isClose) group.push(position)
    else groups.push([position])
  }
  return groups
}

function endOf({ at, size }: Position): number {
  return at + size
}
