import { createHash, randomUUID } from 'node:crypto'
import { SessionError } from '../../errors.ts'
import type { Position } from '../../line/line.ts'
import type { BlobReference } from '../../line/message.ts'
import type { SealedLine } from '../../line/seal-line.ts'
import type {
  AppendOptions,
  AppendResult,
  Claim,
  DerivedData,
  Owner,
  StoredLine,
  WritableLog,
} from '../../log/log-store.ts'
import type { SessionInfo } from '../../state/session-info.ts'
import type { AppendQueue } from './append-queue.ts'
import type { Database } from './database.ts'
import type { DerivedQueue } from './derived-queue.ts'
import type { LeaseEnd } from './lease.ts'
import type { LineWatch } from './line-watch.ts'
import { numberAt, positionOf } from './positions.ts'
import type { StoredSession } from './session-rows.ts'

/** What all logs of a store share. */
export interface LogParts {
  database: Database
  queue: AppendQueue
  derived: DerivedQueue
  watch: LineWatch
  /** The process, as the database knows it. */
  node: string
  writer: { host: string; process: string }
  /** The logs that this process writes. */
  held: Set<PostgresLog>
  /** Renews the lease of the process, and tells these logs whether they are still its own. */
  renew: () => Promise<void>
}

/** A claim of a session, by the key of the session. */
export interface ClaimedKey {
  key: string
  claim: string
}

export class PostgresLog implements WritableLog {
  readonly #parts: LogParts
  readonly #session: StoredSession
  readonly mended = { tornBytes: 0, keptAs: undefined }
  readonly localFolder = undefined
  #held: Held | undefined
  readonly #lost = new AbortController()
  #isReclaiming = false
  /** The id of the next claim. It stays until the database has confirmed the claim. */
  #nextClaim: string = randomUUID()
  /** How many lines this log knows of. */
  #known: number

  constructor(parts: LogParts, session: StoredSession, held?: Held) {
    this.#parts = parts
    this.#session = session
    this.#held = held
    this.#known = session.lines
  }

  get term(): number | undefined {
    return this.#held?.term
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** What it claims in the database, to be compared with what the database knows. */
  get claimed(): ClaimedKey | undefined {
    return this.#held && !this.#isReclaiming ? { key: this.#session.key, claim: this.#held.claim } : undefined
  }

  /** The claims that the database may know of this log: while it claims again, either of two. */
  get claims(): string[] {
    return this.#held ? [this.#held.claim, this.#nextClaim] : []
  }

  /** The database knew this claim, under a lease that ends then. */
  renew(claim: string, end: LeaseEnd): void {
    if (this.#held?.claim === claim) this.#held.end = end
  }

  /** The database no longer knows a claim. It may be an older one, or of another log. */
  lose(lost: ClaimedKey): void {
    const { claimed } = this
    if (claimed?.key !== lost.key || claimed.claim !== lost.claim) return
    this.#lost.abort(new SessionError('fenced', 'Another writer has taken over this session.'))
  }

  get writer(): { host: string; process: string } {
    return this.#parts.writer
  }

  async *lines(from: number): AsyncIterable<StoredLine[]> {
    const { tenant, key } = this.#session
    for (let next = numberAt(from); ;) {
      const rows = await this.#parts.database.call<NumberedLine>(
        'select n, line from tapetree.read_lines($1, $2, $3, $4, $5)',
        [tenant, key, next, maxBatchLines, maxBatchBytes],
      )
      const last = rows.at(-1)
      let size = 0
      const batch = rows.map(({ n, line }) => {
        const bytes = Buffer.from(line)
        size += bytes.length
        return { ...positionOf(n, bytes.length), bytes }
      })
      if (last) {
        this.#known = Math.max(this.#known, last.n)
        next = last.n + 1
        yield batch
      }
      // A batch below both limits has the last line.
      if (rows.length < maxBatchLines && size < maxBatchBytes) {
        if (this.#held) await this.#isOwner()
        return
      }
    }
  }

  async seek(seq: number): Promise<number | undefined> {
    const number = Math.max(1, seq)
    if (number <= this.#known) return positionOf(number, 0).at
    const [line] = await this.#numbered([number])
    return line && positionOf(number, 0).at
  }

  async readAt(positions: readonly Position[]): Promise<Uint8Array[]> {
    if (positions.length === 0) return []
    const numbers = positions.map(({ at }) => numberAt(at))
    const lines = new Map((await this.#numbered([...new Set(numbers)])).map(({ n, line }) => [n, Buffer.from(line)]))
    return numbers.map((number) => lines.get(number) ?? new Uint8Array())
  }

  async unfinishedBytes(): Promise<number> {
    return 0
  }

  async changed(signal: AbortSignal): Promise<void> {
    const { tenant, key } = this.#session
    await this.#parts.watch.changed({ tenant, key, known: this.#known }, signal)
  }

  async owner(): Promise<Owner | undefined> {
    const { tenant, key } = this.#session
    const [row] = await this.#parts.database.call<{ owner: string | null }>(
      'select tapetree.owner_of($1, $2) as owner',
      [tenant, key],
    )
    return row?.owner ? ownerOf(row.owner) : undefined
  }

  async loadCheckpoint({ isBrief = false }: { isBrief?: boolean } = {}): Promise<string[]> {
    const { tenant, key } = this.#session
    const rows = await this.#parts.database.call<{ content: string }>(
      'select content from tapetree.read_derived($1, $2, $3) order by piece',
      [tenant, key, isBrief],
    )
    return rows.map(({ content }) => content)
  }

  async getBlob(sha256: string): Promise<Uint8Array | undefined> {
    const { tenant, key } = this.#session
    const [row] = await this.#parts.database.call<{ bytes: Buffer | null }>(
      'select tapetree.read_blob($1, $2, $3) as bytes',
      [tenant, key, sha256],
    )
    return row?.bytes && hashOf(row.bytes) === sha256 ? new Uint8Array(row.bytes) : undefined
  }

  async append(lines: readonly SealedLine[], { term, head }: AppendOptions): Promise<AppendResult> {
    const { tenant, key } = this.#session
    const result = await this.#parts.queue.append({ tenant, key, term, head, lines })
    if (result.type !== 'appended') return result
    this.#known += lines.length
    this.#parts.watch.wake(key)
    if (this.#isOwnerForSure) return result
    // What follows from these lines, such as a tool that runs, is up to the current owner.
    try {
      if (await this.#isOwner()) return result
    } catch (cause) {
      return { type: 'unknown', cause }
    }
    return { type: 'unknown', cause: this.#lost.signal.reason }
  }

  confirm(): Promise<void> | undefined {
    return this.#isOwnerForSure ? undefined : this.#confirmed()
  }

  async #confirmed(): Promise<void> {
    if (!(await this.#isOwner())) throw this.#lost.signal.reason
    // Callers confirm again until they are sure, which a closed log never is.
    if (!this.#held) throw new SessionError('session-closed', 'The session was closed.')
  }

  get #isOwnerForSure(): boolean {
    return this.#held?.end.isPast === false && !this.#lost.signal.aborted
  }

  /** Whether nobody has taken over. If the lease may have ended since the last sign of life, it gives another one first. */
  async #isOwner(): Promise<boolean> {
    while (this.#held?.end.isPast && !this.#lost.signal.aborted) await this.#parts.renew()
    return !this.#lost.signal.aborted
  }

  /** Waits for an append of the earlier term that is still under way: both lock the row of the session. */
  async reclaim(): Promise<Claim> {
    const { tenant, key } = this.#session
    this.#isReclaiming = true
    const [row] = await this.#parts.database
      .call<{ term: number | null }>('select tapetree.reclaim_session($1, $2, $3, $4, $5) as term', [
        tenant,
        key,
        this.#parts.node,
        this.#held?.claim ?? null,
        this.#nextClaim,
      ])
      .finally(() => (this.#isReclaiming = false))
    if (typeof row?.term !== 'number') return { type: 'owned', owner: { reason: 'Another writer took over.' } }
    if (this.#held) this.#held = { ...this.#held, term: row.term, claim: this.#nextClaim }
    this.#nextClaim = randomUUID()
    if (!(await this.#isOwner())) return { type: 'owned', owner: { reason: 'Another writer took over.' } }
    return { type: 'claimed', log: this }
  }

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    const sha256 = hashOf(bytes)
    const { tenant, key } = this.#session
    const [row] = await this.#parts.database.call<{ isStored: boolean }>(
      'select tapetree.put_blob($1, $2, $3, $4, $5) as "isStored"',
      [tenant, key, this.term ?? null, sha256, Buffer.from(bytes)],
    )
    if (!row?.isStored) throw new SessionError('fenced', 'Another writer has taken over this session.')
    return { sha256, size: bytes.length }
  }

  async saveDerived({ checkpoint, metadata }: DerivedData): Promise<void> {
    const { tenant, key } = this.#session
    await this.#parts.derived.save({
      tenant,
      key,
      term: this.term,
      ...(checkpoint && { checkpoint }),
      ...(metadata !== undefined && { row: this.#rowOf(metadata) }),
    })
  }

  #rowOf(metadata: string): { lines: number; info: SessionInfo } {
    const { head, lines } = this.#session
    const { usage: _, seq, ...info } = JSON.parse(metadata) as SessionInfo & { usage: unknown; seq: number }
    return { lines: seq + lines - head, info }
  }

  async close(): Promise<void> {
    await this.#leave('select tapetree.release_session($1, $2, $3)')
  }

  async handOver(): Promise<void> {
    await this.#leave('select tapetree.hand_over_session($1, $2, $3)')
  }

  async #leave(statement: string): Promise<void> {
    const { tenant, key } = this.#session
    const held = this.#held
    this.#held = undefined
    this.#parts.held.delete(this)
    if (held) await this.#parts.database.call(statement, [tenant, key, held.claim])
  }

  async #numbered(numbers: readonly number[]): Promise<NumberedLine[]> {
    const { tenant, key } = this.#session
    return this.#parts.database.call<NumberedLine>('select n, line from tapetree.read_numbered($1, $2, $3)', [
      tenant,
      key,
      numbers,
    ])
  }
}

interface Held {
  term: number
  claim: string
  /** Until then nobody can have taken over. */
  end: LeaseEnd
}

interface NumberedLine {
  n: number
  line: string
}

const maxBatchLines = 1000
const maxBatchBytes = 4 * 1024 * 1024

/** An owner as the database returns it. */
export function ownerOf(json: string): Owner {
  const { host, process, address } = JSON.parse(json) as { host: string; process: string; address: string | null }
  return {
    reason: `Process ${process} on ${host} is writing this session.`,
    host,
    process,
    ...(address !== null && { address }),
  }
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
