import { createHash, randomUUID } from 'node:crypto'
import { Client, type QueryResultRow } from 'pg'
import { SessionError } from '../../errors.ts'
import type { BlobReference } from '../../line/message.ts'
import type { Place, Scope } from '../../log/log-store.ts'
import { Reading } from '../../log/replay.ts'
import { SessionState } from '../../state/session-state.ts'
import type { CopyTarget, IncomingSession } from '../copy.ts'
import { positionOf } from './positions.ts'
import { PostgresLogStore } from './postgres-store.ts'

/**
 * Copies into a PostgreSQL database. Each session is one transaction: nothing is left of an interrupted copy, and the next
 * attempt sends the session again.
 */
export function postgresCopyTarget(url: string): CopyTarget {
  const store = new PostgresLogStore({ url, connections: 3, patienceMs: 5000 })
  return {
    store,
    receive: async (scope, sessionId, header) => {
      const transaction = new Transaction(url, sessionId)
      try {
        await transaction.begin()
        return await IncomingRows.create(transaction, { scope, sessionId, header })
      } catch (error) {
        await transaction.end()
        throw error
      }
    },
    close: () => store.close(),
  }
}

/** A connection of its own, which is closed with the transaction. */
class Transaction {
  readonly #client: Client
  readonly #sessionId: string

  constructor(url: string, sessionId: string) {
    this.#client = new Client({
      connectionString: url,
      connectionTimeoutMillis: 5000,
      keepAlive: true,
      application_name: 'tapetree',
    })
    // A lost connection rejects the statement that runs on it, or the next one.
    this.#client.on('error', () => undefined)
    this.#sessionId = sessionId
  }

  async begin(): Promise<void> {
    await this.#client.connect().catch((error: unknown) => this.#fail(error))
    await this.call('begin', [])
  }

  async call<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row[]> {
    try {
      return (await this.#client.query<Row>(text, [...values])).rows
    } catch (error) {
      return this.#fail(error)
    }
  }

  /** Without a commit, the database takes back all of it. */
  async end(): Promise<void> {
    await this.#client.end().catch(() => undefined)
  }

  #fail(cause: unknown): never {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new SessionError(
      'storage-failed',
      `Could not copy session ${this.#sessionId} to the database (${why}). Copy it again.`,
      { cause },
    )
  }
}

interface Incoming {
  tenant: string
  sessionId: string
  key: string
  term: number
  claim: string
}

class IncomingRows implements IncomingSession {
  readonly #transaction: Transaction
  readonly #session: Incoming
  #lines = 0
  /** What a reader of the copy will find. */
  readonly #state = new SessionState({ isWhole: true })
  readonly #reading = new Reading(this.#state)

  private constructor(transaction: Transaction, session: Incoming, header: string) {
    this.#transaction = transaction
    this.#session = session
    this.#count(header)
  }

  /** Waits if another process creates a session with this id, until its transaction has ended. */
  static async create(
    transaction: Transaction,
    { scope: { tenant }, sessionId, header }: { scope: Scope; sessionId: string; header: string },
  ): Promise<IncomingRows> {
    requireSeq(header, { number: 1, sessionId })
    const [created] = await transaction.call<{ isNew: boolean }>(
      'select tapetree.create_session($1, $2, $3, $4) as "isNew"',
      [tenant, sessionId, randomUUID(), header],
    )
    if (!created?.isNew) {
      throw new SessionError('session-exists', `Session ${sessionId} was created in the target meanwhile.`)
    }
    const claim = randomUUID()
    const [claimed] = await transaction.call<{ key: string; term: number }>(
      'select key, term from tapetree.claim_session($1, $2, $3, $4, false)',
      [tenant, sessionId, randomUUID(), claim],
    )
    const { key, term } = claimed as { key: string; term: number }
    return new IncomingRows(transaction, { tenant, sessionId, key, term, claim }, header)
  }

  async *lines(): AsyncIterable<Uint8Array[]> {
    const { tenant, key } = this.#session
    for (let next = 1; ;) {
      const rows = await this.#transaction.call<{ n: number; line: string }>(
        'select n, line from tapetree.read_lines($1, $2, $3, 1000, 4194304)',
        [tenant, key, next],
      )
      const last = rows.at(-1)
      if (!last) return
      next = last.n + 1
      yield rows.map(({ line }) => Buffer.from(line))
    }
  }

  async append(lines: readonly string[]): Promise<void> {
    const { tenant, key, term, sessionId } = this.#session
    for (const [index, text] of lines.entries()) requireSeq(text, { number: this.#lines + index + 1, sessionId })
    const rows = await this.#transaction.call(
      'select place from tapetree.append_lines($1, $2, $3, $4, $5, $6, $7, $8)',
      [
        [tenant],
        [key],
        [term],
        [this.#lines],
        [lines.length],
        lines.map(() => 1),
        lines.map((_, index) => index + 1),
        lines.join('\n'),
      ],
    )
    if (rows.length === 0)
      throw new SessionError('fenced', `Another writer took over the copy of session ${sessionId}.`)
    for (const text of lines) this.#count(text)
  }

  #count(text: string): void {
    const bytes = Buffer.from(text)
    this.#lines++
    this.#reading.take({ ...positionOf(this.#lines, bytes.length), bytes })
  }

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const { tenant, key, term } = this.#session
    await this.#transaction.call('select tapetree.put_blob($1, $2, $3, $4, $5)', [
      tenant,
      key,
      term,
      sha256,
      Buffer.from(bytes),
    ])
    return { sha256, size: bytes.length }
  }

  async publish(place: Place): Promise<void> {
    const { tenant, key, claim, sessionId } = this.#session
    this.#reading.finish()
    // A writer of the copy would be rejected as one that does not know all lines.
    if (this.#state.seq !== this.#lines) {
      throw new SessionError(
        'invalid-entry',
        `Session ${sessionId} is damaged: it has ${this.#lines} lines, and the last one has the number ${this.#state.seq}. A database stores only complete logs.`,
      )
    }
    await this.#transaction.call('select tapetree.release_session($1, $2, $3)', [tenant, key, claim])
    if (place !== 'active')
      await this.#transaction.call('select tapetree.move_session($1, $2, $3)', [tenant, sessionId, place])
    await this.#transaction.call('commit', [])
  }

  async discard(): Promise<void> {
    await this.close()
  }

  async close(): Promise<void> {
    await this.#transaction.end()
  }
}

/** The database numbers lines itself, so a log in which lines were lost would get other numbers. */
function requireSeq(line: string, { number, sessionId }: { number: number; sessionId: string }): void {
  const [, seq] = /^\{"seq":(\d+),/.exec(line) ?? []
  if (seq === undefined || Number(seq) === number) return
  throw new SessionError(
    'invalid-entry',
    `Lines of session ${sessionId} are missing before line ${seq}, and a database stores only complete logs.`,
  )
}
