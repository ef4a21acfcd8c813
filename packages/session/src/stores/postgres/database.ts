import { Client, Pool, type QueryResultRow } from 'pg'
import { SessionError } from '../../errors.ts'
import { settledWithin } from '../../util/deadline.ts'
import { wait } from '../../util/wait.ts'
import { migrate, newerSchema, schemaVersion, versionOf } from './migrate.ts'

export interface DatabaseOptions {
  /** For example `postgres://user@host/database`. */
  url: string
  /**
   * How many connections the process opens at most, and at least 4. A third of them is for appends, and two are for signs of
   * life. Default: 12.
   */
  connections?: number
  /** How long a call is repeated while the database cannot be reached. Default: a minute. */
  patienceMs?: number
  /**
   * How long a statement may take. A connection that has not answered by then is given up, and the other idle ones with
   * it: a network or a server that fell silent does not close them. Default: 20 seconds.
   */
  answerMs?: number
}

/** How a statement ended. `unsent`: it never ran. `unknown`: it may have been committed. */
export type Sent<Row> =
  | { type: 'done'; rows: Row[] }
  | { type: 'rejected'; cause: Error }
  | { type: 'unsent'; cause: Error }
  | { type: 'unknown'; cause: Error }

/** What is used of a pool of `pg`. */
export interface ConnectionPool {
  connect(): Promise<Connection>
  end(): Promise<void>
}

export interface Connection {
  query(text: string, values?: unknown[]): Promise<{ rows: QueryResultRow[] }>
  /** Returns it to its pool, or closes it. */
  release(isBroken?: boolean): void
  /** Closes it at once. A statement that runs on it rejects. */
  end(): Promise<void>
}

/** Opens a pool of at most so many connections. */
export type OpenPool = (url: string, max: number) => ConnectionPool

const beatConnections = 2
const kinds = ['reads', 'appends', 'beats'] as const
type Kind = (typeof kinds)[number]

export interface CallOptions {
  /** Called when an attempt may have been committed and the statement is repeated. */
  onDoubt?: () => void
  /** For a sign of life: after this time it is given on a second connection, too. */
  beatMs?: number
}

/** The connections of one process. Appends and signs of life have their own, so that long reads never delay them. */
export class Database {
  readonly #openPool: (kind: Kind) => ConnectionPool
  readonly #pools: Record<Kind, ConnectionPool>
  readonly #patienceMs: number
  readonly #answerMs: number
  readonly appendConnections: number
  #isChecked: Promise<void> | undefined
  readonly #closed = new AbortController()

  constructor(
    { url, connections = 12, patienceMs = 60_000, answerMs = 20_000 }: DatabaseOptions,
    openPool: OpenPool = poolOf,
  ) {
    this.appendConnections = Math.max(1, Math.min(8, Math.floor(connections / 3)))
    const sizes = {
      reads: Math.max(1, connections - this.appendConnections - beatConnections),
      appends: this.appendConnections,
      beats: beatConnections,
    }
    this.#openPool = (kind) => openPool(url, sizes[kind])
    this.#pools = { reads: this.#openPool('reads'), appends: this.#openPool('appends'), beats: this.#openPool('beats') }
    this.#patienceMs = patienceMs
    this.#answerMs = answerMs
  }

  /** Runs a statement that may be repeated, until the database has answered it or the patience ends. */
  async call<Row extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
    { onDoubt, beatMs }: CallOptions = {},
  ): Promise<Row[]> {
    const endMs = Date.now() + this.#patienceMs
    for (let pauseMs = 50; ; pauseMs = Math.min(2 * pauseMs, 1000)) {
      const sent = await (beatMs === undefined
        ? this.#send<Row>('reads', text, values)
        : this.#sendBeat<Row>(text, values, beatMs))
      if (sent.type === 'done') return sent.rows
      if (sent.cause instanceof SessionError) throw sent.cause
      if (sent.type === 'rejected' || this.#closed.signal.aborted || Date.now() + pauseMs > endMs) {
        const what = sent.type === 'rejected' ? 'rejected a call' : 'did not answer'
        throw new SessionError('storage-failed', `The database ${what} (${sent.cause.message}).`, { cause: sent.cause })
      }
      if (sent.type === 'unknown') onDoubt?.()
      await wait(pauseMs, this.#closed.signal).catch(() => undefined)
    }
  }

  /** Runs a statement once. It is never canceled: a canceled wait for the standbys would look like a success. */
  async append<Row extends QueryResultRow>(text: string, values: readonly unknown[]): Promise<Sent<Row>> {
    return this.#send<Row>('appends', text, values)
  }

  async close(): Promise<void> {
    if (this.#closed.signal.aborted) return
    this.#closed.abort()
    await Promise.all(kinds.map((kind) => this.#pools[kind].end()))
  }

  /** If the answer takes long, the connection may have fallen silent: it is given on another one, too, and the first answer counts. */
  async #sendBeat<Row extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
    beatMs: number,
  ): Promise<Sent<Row>> {
    const first = this.#send<Row>('beats', text, values)
    if ((await settledWithin(first, { ms: beatMs })) === 'settled') return first
    return Promise.race([first, this.#send<Row>('beats', text, values)])
  }

  async #send<Row extends QueryResultRow>(kind: Kind, text: string, values: readonly unknown[]): Promise<Sent<Row>> {
    const pool = this.#pools[kind]
    let client: Connection
    try {
      client = await pool.connect()
    } catch (cause) {
      return { type: outcomeOf(cause) === 'rejected' ? 'rejected' : 'unsent', cause: cause as Error }
    }
    let silence: Error | undefined
    // Closes the connection without canceling the statement, which then rejects as on any lost connection.
    const limit = setTimeout(() => {
      silence = new Error(`no answer in ${this.#answerMs} ms`)
      this.#replace(kind, pool)
      void client.end()
    }, this.#answerMs)
    try {
      await this.#check(client)
      const { rows } = await client.query(text, [...values])
      client.release()
      return { type: 'done', rows: rows as Row[] }
    } catch (cause) {
      const type = silence ? 'unknown' : outcomeOf(cause)
      client.release(type === 'unknown')
      return { type, cause: silence ?? (cause as Error) }
    } finally {
      clearTimeout(limit)
    }
  }

  /** What is idle in the pools may have fallen silent, too. Statements that run there go on. */
  #replace(kind: Kind, silent: ConnectionPool): void {
    if (this.#pools[kind] !== silent || this.#closed.signal.aborted) return
    for (const each of kinds) {
      void this.#pools[each].end()
      this.#pools[each] = this.#openPool(each)
    }
  }

  /** The schema is compared once for each process. */
  async #check(client: Connection): Promise<void> {
    this.#isChecked ??= versionOf(client).then((version) => {
      if (version > schemaVersion) throw newerSchema(version)
      if (version < schemaVersion) {
        throw new SessionError(
          'storage-failed',
          `The database has version ${version} of the schema tapetree, and ${schemaVersion} is needed. Run migratePostgres.`,
        )
      }
    })
    await this.#isChecked.catch((error: unknown) => {
      this.#isChecked = undefined
      throw error
    })
  }
}

/** Creates the schema `tapetree` in a database, or brings it to the version of this build. */
export async function migratePostgres(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await migrate(client)
  } finally {
    await client.end()
  }
}

function poolOf(url: string, max: number): ConnectionPool {
  const pool = new Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 5000,
    keepAlive: true,
    application_name: 'tapetree',
  })
  // A lost connection rejects the statement that runs on it; without one, the next call opens another connection.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/**
 * What an error says about the statement. A server that shuts down may have committed it already, and a connection that
 * broke says nothing. If space or connections ran out, or a standby was asked, the statement had no effect.
 */
function outcomeOf(error: unknown): 'rejected' | 'unsent' | 'unknown' {
  if (error instanceof SessionError) return 'rejected'
  const { code } = error as { code?: unknown }
  if (typeof code !== 'string' || !/^[0-9][0-9A-Z]{4}$/.test(code) || /^(08|57)/.test(code)) return 'unknown'
  return /^(53|40|25006)/.test(code) ? 'unsent' : 'rejected'
}
