import type { AppendResult, Durability, LinePosition } from '../../log/log-store.ts'
import type { SealedLine } from '../../line/seal-line.ts'
import type { FilePort } from './file-port.ts'
import { readRange } from './recover.ts'

export interface LogFileOptions {
  path: string
  fd: number
  end: number
  /** False once the lock file was deleted or moved. */
  isOurs: () => boolean
}

/**
 * The end of a log file. Writes each batch with one write, checks the size before and after, and syncs off the
 * main thread. The file always ends after an acknowledged line, or this object knows where to truncate it.
 */
export class LogFile {
  readonly #port: FilePort
  readonly #path: string
  #fd: number
  /** Where the last acknowledged line ends. */
  #end: number
  /** Bytes that a failed write may have left, partially, after the end. They are truncated before the next write. */
  #unfinished: Uint8Array | undefined
  /** Everything before this offset is synced; lines after it are only accepted. */
  #syncedEnd: number
  #hasFailedToSettle = false
  #isBroken = false
  readonly #isOurs: () => boolean
  #askAgainAt = 0

  /** `end` is where the log ended when it was opened; bytes after it are not ours. */
  constructor(port: FilePort, options: LogFileOptions) {
    this.#port = port
    this.#path = options.path
    this.#fd = options.fd
    this.#end = options.end
    this.#isOurs = options.isOurs
    this.#syncedEnd = this.#end
  }

  get fd(): number {
    return this.#fd
  }

  get end(): number {
    return this.#end
  }

  append(lines: readonly SealedLine[], durability: Durability): AppendResult | Promise<AppendResult> {
    if (this.#isBroken) return { type: 'failed', cause: new Error('an earlier sync failed twice'), final: true }
    if (this.#unfinished) return this.#cutThenAppend(this.#unfinished, lines, durability)
    const bytes = Buffer.from(textOf(lines))
    try {
      this.#expectSize(this.#end)
      this.#write(bytes, durability)
    } catch (error) {
      return this.#afterFailedWrite(error)
    }
    return durability === 'durable' ? this.#sync(lines, bytes) : this.#acknowledge(lines, bytes)
  }

  /** Syncs lines that were only accepted. After one failed sync, later syncs cannot be trusted. */
  async settle(): Promise<void> {
    if (this.#syncedEnd === this.#end) return
    if (this.#hasFailedToSettle) throw new Error('an earlier sync failed')
    const end = this.#end
    this.#hasFailedToSettle = true
    await this.#port.dataSync(this.#fd)
    this.#hasFailedToSettle = false
    this.#syncedEnd = end
  }

  close(): void {
    this.#port.close(this.#fd)
  }

  #write(bytes: Uint8Array, durability: Durability): void {
    this.#unfinished = bytes
    const written = this.#port.write(this.#fd, bytes)
    if (written < bytes.length) throw shortWrite(`only ${written} of ${bytes.length} bytes could be written`)
    this.#expectSize(this.#end + bytes.length)
    // Checked after the write: a process that could truncate it must have taken another lock before the write
    // completed. For lines that need only be accepted the check runs at intervals, because it costs as much as
    // a write.
    if (durability === 'durable' || Date.now() >= this.#askAgainAt) this.#expectLock()
    this.#unfinished = undefined
  }

  /** Any mismatch means that another process writes to this file. */
  #expectSize(expected: number): void {
    const size = this.#port.size(this.#fd)
    if (size !== expected) throw new SecondWriter(`the file has ${size} bytes where ${expected} were expected`)
  }

  #expectLock(): void {
    this.#askAgainAt = Date.now() + askAgainMs
    if (!this.#isOurs()) throw new SecondWriter('the lock file was deleted or moved away')
  }

  async #afterFailedWrite(cause: unknown): Promise<AppendResult> {
    if (cause instanceof SecondWriter) return { type: 'fenced', reason: cause.message }
    try {
      if (this.#unfinished) await this.#cut(this.#unfinished)
    } catch {
      // The next append retries before it writes.
    }
    return { type: 'failed', cause, final: false }
  }

  /** Truncates only bytes that are certainly ours: a prefix of the bytes we tried to write, with nothing after it. */
  async #cut(ours: Uint8Array): Promise<void> {
    this.#expectLock()
    const size = this.#port.size(this.#fd)
    const found = await readRange(this.#port, this.#fd, { from: this.#end, to: Math.max(size, this.#end) })
    if (size < this.#end || Buffer.compare(found, ours.subarray(0, found.length)) !== 0) {
      throw new SecondWriter(`the file has ${size} bytes, and those after ${this.#end} are not ours`)
    }
    // Reading was asynchronous. Nothing happens between this check and the truncation.
    this.#expectSize(size)
    if (size > this.#end) this.#port.truncate(this.#fd, this.#end)
    this.#unfinished = undefined
  }

  async #cutThenAppend(
    unfinished: Uint8Array,
    lines: readonly SealedLine[],
    durability: Durability,
  ): Promise<AppendResult> {
    try {
      await this.#cut(unfinished)
    } catch (error) {
      return this.#afterFailedWrite(error)
    }
    return this.append(lines, durability)
  }

  #acknowledge(lines: readonly SealedLine[], bytes: Uint8Array): AppendResult {
    const positions = positionsOf(lines, this.#end, bytes.length)
    this.#end += bytes.length
    return { type: 'appended', positions }
  }

  async #sync(lines: readonly SealedLine[], bytes: Uint8Array): Promise<AppendResult> {
    try {
      await this.#port.dataSync(this.#fd)
    } catch {
      const failure = await this.#syncAgain(bytes)
      if (failure) return failure
    }
    this.#syncedEnd = this.#end + bytes.length
    return this.#acknowledge(lines, bytes)
  }

  /**
   * After a failed sync the system may have dropped the pages, and a second sync on the same descriptor could
   * falsely succeed. Opens a new descriptor, writes the same bytes and retries once.
   */
  async #syncAgain(bytes: Uint8Array): Promise<AppendResult | undefined> {
    try {
      const fd = this.#port.openAppend(this.#path)
      this.#port.close(this.#fd)
      this.#fd = fd
      this.#expectSize(this.#end + bytes.length)
      await this.#cut(bytes)
      this.#write(bytes, 'durable')
      await this.#port.dataSync(fd)
      return undefined
    } catch (cause) {
      if (cause instanceof SecondWriter) return { type: 'fenced', reason: cause.message }
      this.#isBroken = true
      this.#unfinished = bytes
      await this.#afterFailedWrite(cause)
      return { type: 'failed', cause, final: true }
    }
  }
}

/** How long a writer of accepted-only lines trusts that its lock is intact. */
const askAgainMs = 10

class SecondWriter extends Error {}

function textOf(lines: readonly SealedLine[]): string {
  let text = ''
  for (const line of lines) text += `${line.text}\n`
  return text
}

function positionsOf(lines: readonly SealedLine[], start: number, total: number): LinePosition[] {
  if (lines.length === 1) return [{ at: start, size: total - 1, next: start + total }]
  let next = start
  return lines.map(({ text }) => {
    const at = next
    const size = Buffer.byteLength(text)
    next = at + size + 1
    return { at, size, next }
  })
}

/** A regular file takes fewer bytes than given only if the disk is full. */
function shortWrite(message: string): Error {
  return Object.assign(new Error(message), { code: 'ENOSPC' })
}
