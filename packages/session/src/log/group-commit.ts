import { SessionError } from '../errors.ts'
import type { DiskLine, Position, Line } from '../line/line.ts'
import type { AppendResult, Durability, WritableLog } from './log-store.ts'
import { sealBody, type SealedLine } from '../line/seal-line.ts'
import { fromDisk } from '../line/codec.ts'
import type { Listeners } from '../util/listeners.ts'

/** A line on its way into the log. */
export interface Pending {
  line: DiskLine
  /** The line as JSON, made once. */
  body: string
}

export interface Committed {
  line: DiskLine
  sealed: SealedLine
  position: Position
}

export interface CommitHost {
  /** What the next batch is chained to. Asked when a batch is put together, not when a line is handed over. */
  expectation(): { term: number; head: number }
  /** Lines that must stand before the batch, such as the writer record. */
  preamble(): DiskLine[]
  /** Takes the lines in, in order, before anybody is answered. */
  committed(lines: readonly Committed[]): void
  /** After a failed batch: forget what was planned on top of it. */
  rejected(error: SessionError, options: { isFinal: boolean }): void
  /** The outcome of a batch is not known: where its lines are in the log, or undefined if they are not. */
  settleUnknown(lines: readonly SealedLine[]): Promise<Position[] | undefined>
}

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
}

/**
 * Puts all lines that arrive while a batch is on its way into the next one: one write and one sync for many appends. A failed
 * batch takes everything queued behind it along, because that was planned on lines which are not there.
 */
export class GroupCommit {
  readonly #log: WritableLog
  readonly #host: CommitHost
  readonly #durability: Durability
  #queue: Waiting[] = []
  #working: Promise<void> | undefined
  #isInside = false

  constructor(log: WritableLog, host: CommitHost, durability: Durability) {
    this.#log = log
    this.#host = host
    this.#durability = durability
  }

  append(pending: Pending): Promise<Committed> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ pending, resolve, reject })
      if (this.#working || this.#isInside) return
      if (this.#durability === 'accepted') this.#work()
      // Let the appends of this tick come together before the first batch leaves.
      else this.#working = Promise.resolve().then(() => this.#work())
    })
  }

  /** Resolves when nothing is on its way any more. */
  async idle(): Promise<void> {
    while (this.#working) await this.#working
  }

  /** Sends batches until none is left. A store that answers at once is not waited for. */
  #work(): void {
    this.#working = undefined
    this.#isInside = true
    while (this.#queue.length > 0) {
      const batch = this.#makeBatch()
      const result = batch && this.#send(batch)
      if (result instanceof Promise) {
        this.#working = result.then(() => this.#work())
        break
      }
    }
    this.#isInside = false
  }

  #makeBatch(): Batch | undefined {
    const waiting = this.#takeBatch()
    try {
      const { term, head } = this.#host.expectation()
      const lines = this.#host.preamble().map((line): Pending => ({ line, body: JSON.stringify(line) }))
      for (const { pending } of waiting) lines.push(pending)
      const sealed = lines.map(({ body }, index) => sealBody(body, head + 1 + index))
      return { waiting, lines, sealed, term, head }
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
        throw new FinalError('fenced', `Another writer has this session: ${result.reason}`)
      case 'failed':
        if (result.final) throw new FinalError('storage-failed', failureText(result.cause), { cause: result.cause })
        throw new SessionError('storage-failed', failureText(result.cause), { cause: result.cause })
      case 'unknown':
        return this.#settleUnknown(batch, result.cause)
      default:
        result satisfies never
    }
  }

  async #settleUnknown(batch: Batch, cause: unknown): Promise<void> {
    const positions = await this.#host.settleUnknown(batch.sealed)
    if (!positions) throw new SessionError('storage-failed', failureText(cause), { cause })
    this.#succeed(batch, positions)
  }

  #takeBatch(): Waiting[] {
    if (this.#queue.length === 1) return this.#queue.splice(0)
    let size = 0
    const end = this.#queue.findIndex(({ pending }) => (size += pending.body.length) > maxBatchLength)
    return this.#queue.splice(0, end === -1 ? maxBatchLines : Math.min(Math.max(end, 1), maxBatchLines))
  }

  #succeed({ waiting, lines, sealed }: Batch, positions: readonly Position[]): void {
    const committed = lines.map(({ line }, index) => ({
      line,
      sealed: sealed[index] as SealedLine,
      position: positions[index] as Position,
    }))
    this.#host.committed(committed)
    let index = committed.length - waiting.length
    for (const { resolve } of waiting) resolve(committed[index++] as Committed)
  }

  #fail(batch: readonly Waiting[], cause: unknown): void {
    const error =
      cause instanceof SessionError ? cause : new SessionError('storage-failed', failureText(cause), { cause })
    const behind = this.#queue
    this.#queue = []
    this.#host.rejected(error, { isFinal: error instanceof FinalError })
    for (const { reject } of [...batch, ...behind]) reject(error)
  }
}

/** After this error the session does not write any more. */
class FinalError extends SessionError {}

/** A bound on what one write carries; more waits for the next batch. */
const maxBatchLines = 256
const maxBatchLength = 4 * 1024 * 1024

function failureText(cause: unknown): string {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return `The session could not be stored (${reason}). Nothing that was acknowledged is lost; free the cause and try again.`
}

/** A line that just became durable. */
export interface CommittedLine {
  seq: number
  crc: string
  /** The line as it stands in the log, without its newline. */
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
