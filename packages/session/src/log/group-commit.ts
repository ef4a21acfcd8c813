import { SessionError } from '../errors.ts'
import type { DiskLine, Line } from '../line/line.ts'
import type { AppendResult, Durability, LinePosition, WritableLog } from './log-store.ts'
import { sealBody, type SealedLine } from '../line/seal-line.ts'
import { fromDisk } from '../line/codec.ts'
import type { Listeners } from '../util/listeners.ts'
import { systemClock, type Clock } from '../util/wait.ts'

/** A line that waits to be written. */
export interface Pending {
  line: DiskLine
  /** The line as JSON, serialized once. */
  body: string
}

export interface Committed {
  line: DiskLine
  sealed: SealedLine
  position: LinePosition
}

export interface CommitHost {
  /** The term and head that the next batch builds on. Read when the batch is assembled, not when a line is queued. */
  expectation(): { term: number; head: number }
  /** Lines that must precede the batch, such as the writer record. */
  preamble(): DiskLine[]
  /** Applies the lines in order, before any append resolves. */
  committed(lines: readonly Committed[]): void
  /** Called after a failed batch: discard everything planned on top of it. */
  rejected(error: SessionError, options: { isFinal: boolean }): void
  /**
   * Called if the outcome of a batch is unknown. Returns the positions of its lines, or undefined if they are
   * not in the log. Rejects if that cannot be found out.
   */
  settleUnknown(lines: readonly UnsettledLine[]): Promise<LinePosition[] | undefined>
  /** Called with a reason when lines begin to wait for the store, and with undefined when they no longer do. */
  waiting(reason: string | undefined): void
}

/** A line that may or may not be in the log. */
export type UnsettledLine = Omit<Committed, 'position'>

interface Waiting {
  pending: Pending
  resolve: (line: Committed) => void
  reject: (error: SessionError) => void
}

interface Batch {
  waiting: readonly Waiting[]
  lines: readonly Pending[]
  sealed: readonly SealedLine[]
  term: number
  head: number
  attempt: Attempt
}

/** How often a batch was sent before, and until when it is sent again. */
interface Attempt {
  pauseMs: number
  endMs: number
}

/**
 * Collects lines that arrive while a batch is being written into the next batch: one write and one sync for
 * many appends. A failed batch rejects everything queued behind it, because those lines build on lines that
 * were not stored.
 */
export class GroupCommit {
  readonly #log: WritableLog
  readonly #host: CommitHost
  readonly #durability: Durability
  #queue: Waiting[] = []
  #working: Promise<void> | undefined
  #isInside = false
  readonly #clock: Clock
  /** The host was told that lines wait. */
  #isWaiting = false
  /** Counts answers of the store. */
  #answers = 0
  #isWatched = false

  constructor(log: WritableLog, host: CommitHost, options: { durability: Durability; clock?: Clock }) {
    this.#log = log
    this.#host = host
    this.#durability = options.durability
    this.#clock = options.clock ?? systemClock
  }

  append(pending: Pending): Promise<Committed> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ pending, resolve, reject })
      if (this.#working || this.#isInside) return
      if (this.#durability === 'accepted') this.#work()
      // Wait one microtask so that appends of the same tick share the first batch.
      else this.#working = Promise.resolve().then(() => this.#work())
    })
  }

  /** Resolves when no line is pending. */
  async idle(): Promise<void> {
    while (this.#working) await this.#working
  }

  /** Writes batches until none is left. Stays synchronous if the store answers synchronously. */
  #work(): void {
    this.#working = undefined
    this.#isInside = true
    while (this.#queue.length > 0) {
      const batch = this.#makeBatch(this.#takeBatch(), undefined)
      const result = batch && this.#send(batch)
      if (result instanceof Promise) {
        this.#working = result.then(() => this.#work())
        this.#watch()
        break
      }
    }
    this.#isInside = false
  }

  /** Notices a store that does not answer. One timer watches all batches, and does not keep the process alive. */
  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    const answers = this.#answers
    const timer: unknown = setTimeout(() => {
      this.#isWatched = false
      if (!this.#working) return
      if (answers === this.#answers) this.#wait('no answer for 2 seconds')
      this.#watch()
    }, slowMs)
    ;(timer as { unref?: () => void }).unref?.()
  }

  #wait(reason: string): void {
    if (this.#isWaiting) return
    this.#isWaiting = true
    this.#host.waiting(reason)
  }

  #endWait(): void {
    this.#answers++
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#host.waiting(undefined)
  }

  #makeBatch(waiting: readonly Waiting[], attempt: Attempt | undefined): Batch | undefined {
    try {
      const { term, head } = this.#host.expectation()
      const lines = this.#host.preamble().map((line): Pending => ({ line, body: JSON.stringify(line) }))
      for (const { pending } of waiting) lines.push(pending)
      const sealed = lines.map(({ body }, index) => sealBody(body, head + 1 + index))
      return { waiting, lines, sealed, term, head, attempt: attempt ?? firstAttempt }
    } catch (error) {
      this.#fail(waiting, error)
      return undefined
    }
  }

  #send(batch: Batch): Promise<void> | void {
    const { waiting, sealed, term, head } = batch
    try {
      const result = this.#log.append(sealed, { term, head, durability: this.#durability })
      if (result instanceof Promise) {
        return result
          .then((settled) => this.#settle(batch, settled))
          .catch((error: unknown) => this.#fail(waiting, error))
      }
      return this.#settle(batch, result)?.catch((error: unknown) => this.#fail(waiting, error))
    } catch (error) {
      this.#fail(waiting, error)
    }
  }

  #settle(batch: Batch, result: AppendResult): Promise<void> | void {
    switch (result.type) {
      case 'appended':
        this.#succeed(batch, result.positions)
        return
      case 'fenced':
        throw new SessionError('fenced', `Another writer has taken over this session: ${result.reason}`)
      case 'failed':
        if (result.isPassing) {
          this.#wait(reasonOf(result.cause))
          return this.#sendAgain(batch, result.cause)
        }
        if (result.final) throw new FinalError('storage-failed', failureText(result.cause), { cause: result.cause })
        throw new SessionError('storage-failed', failureText(result.cause), { cause: result.cause })
      case 'unknown':
        this.#wait(reasonOf(result.cause))
        return this.#settleUnknown(batch, result.cause)
      default:
        result satisfies never
    }
  }

  async #settleUnknown(batch: Batch, cause: unknown): Promise<void> {
    const { lines, sealed } = batch
    const positions = await this.#host.settleUnknown(
      lines.map(({ line }, index) => ({ line, sealed: sealed[index] as SealedLine })),
    )
    if (!positions) return this.#sendAgain(batch, cause)
    this.#succeed(batch, positions)
  }

  /** Sends the lines of a batch that is not in the log as a new batch: the term may have changed. */
  async #sendAgain({ waiting, attempt }: Batch, cause: unknown): Promise<void> {
    const nowMs = this.#clock.now()
    const { pauseMs, endMs } = attempt.endMs === 0 ? { ...attempt, endMs: nowMs + patienceMs } : attempt
    if (nowMs + pauseMs > endMs) throw new SessionError('storage-failed', failureText(cause), { cause })
    await this.#clock.wait(pauseMs)
    const again = this.#makeBatch(waiting, { pauseMs: Math.min(2 * pauseMs, maxPauseMs), endMs })
    if (again) await this.#send(again)
  }

  #takeBatch(): Waiting[] {
    if (this.#queue.length === 1) return this.#queue.splice(0)
    let size = 0
    const end = this.#queue.findIndex(({ pending }) => (size += pending.body.length) > maxBatchLength)
    return this.#queue.splice(0, end === -1 ? maxBatchLines : Math.min(Math.max(end, 1), maxBatchLines))
  }

  #succeed({ waiting, lines, sealed }: Batch, positions: readonly LinePosition[]): void {
    const committed = lines.map(({ line }, index) => ({
      line,
      sealed: sealed[index] as SealedLine,
      position: positions[index] as LinePosition,
    }))
    this.#endWait()
    this.#host.committed(committed)
    let index = committed.length - waiting.length
    for (const { resolve } of waiting) resolve(committed[index++] as Committed)
  }

  #fail(batch: readonly Waiting[], cause: unknown): void {
    const error =
      cause instanceof SessionError ? cause : new SessionError('storage-failed', failureText(cause), { cause })
    const behind = this.#queue
    this.#queue = []
    this.#endWait()
    this.#host.rejected(error, { isFinal: error instanceof FinalError || error.code === 'fenced' })
    for (const { reject } of [...batch, ...behind]) reject(error)
  }
}

/** After this error the session accepts no more writes. */
class FinalError extends SessionError {}

/** A store that has not answered for this long is waited for. */
const slowMs = 2000

/** A batch whose failure is expected to pass is sent again for this long. */
const patienceMs = 60_000
const maxPauseMs = 1000
const firstAttempt: Attempt = { pauseMs: 50, endMs: 0 }

/** Limits the size of one write; further lines wait for the next batch. */
const maxBatchLines = 256
const maxBatchLength = 4 * 1024 * 1024

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}

function failureText(cause: unknown): string {
  return `The session could not be stored (${reasonOf(cause)}). No acknowledged line is lost. Fix the cause, then try again.`
}

/** A line that just became durable. */
export interface CommittedLine {
  seq: number
  crc: string
  /** The stored text of the line, without its newline. */
  text: string
  line: Line
}

export type CommitListener = (line: CommittedLine) => void

/** Decodes lines only if there are listeners. */
export function announce(lines: readonly Committed[], listeners: Listeners<CommittedLine>): void {
  if (listeners.size === 0) return
  for (const { line, sealed } of lines) {
    const committed = { seq: sealed.seq, crc: sealed.crc, text: sealed.text, line: fromDisk(line, sealed.seq) }
    listeners.notify(committed)
  }
}
