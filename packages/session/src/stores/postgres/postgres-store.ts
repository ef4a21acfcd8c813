import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { SessionError } from '../../errors.ts'
import { requireId } from '../../line/ids.ts'
import type { SealedLine } from '../../line/seal-line.ts'
import type {
  AbandonedLog,
  AbandonedOptions,
  Claim,
  ClaimOptions,
  LogStore,
  Place,
  ReadableLog,
  Scope,
} from '../../log/log-store.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../../state/session-info.ts'
import { SessionStore, type SessionStoreOptions } from '../../store/session-store.ts'
import { AppendQueue } from './append-queue.ts'
import { Database, type DatabaseOptions } from './database.ts'
import { DerivedQueue } from './derived-queue.ts'
import { LeaseEnd } from './lease.ts'
import { LineWatch } from './line-watch.ts'
import { ownerOf, PostgresLog, type ClaimedKey, type LogParts } from './postgres-log.ts'
import { listRows, storedBytes, type StoredSession } from './session-rows.ts'
import { searchTexts } from './session-texts.ts'

export interface PostgresStoreOptions extends DatabaseOptions, Omit<SessionStoreOptions, 'openPath' | 'pathOf'> {
  /**
   * How long the sessions of this process stay claimed after its last sign of life. It gives one three times as often,
   * and at least once a second. Default: 3 seconds.
   */
  leaseMs?: number
  /** The name of this process for others; no two processes have the same at the same time. Default: the name of the machine. */
  node?: string
  /** Where this process answers others: the URL of a server. */
  address?: string
}

/** A small text that the processes of a tenant share, such as the tokens of its servers. */
export interface StoredDocument {
  /** Undefined if it was never written. */
  read(): Promise<{ version: number; content: string } | undefined>
  /** Returns false, and writes nothing, if it has another version. Version 0: it was never written. */
  write(content: string, version: number): Promise<boolean>
}

/** Stores sessions in a PostgreSQL database, for the processes of any number of machines. See `migratePostgres`. */
export function openPostgresStore(options: PostgresStoreOptions): SessionStore {
  return new SessionStore(new PostgresLogStore(options), options)
}

export class PostgresLogStore implements LogStore {
  readonly #database: Database
  readonly #parts: LogParts
  readonly #leaseMs: number
  /** Started by a claim. */
  #heart: ReturnType<typeof setInterval> | undefined
  /** The claims that are under way, and their tenants. */
  readonly #underWay = new Set<string>()
  readonly #tenants = new Set<string>()
  #address: string | undefined

  constructor(options: PostgresStoreOptions)
  /** @internal On connections of another kind. */
  constructor(options: PostgresStoreOptions, database: Database)
  constructor(options: PostgresStoreOptions, database: Database = new Database(options)) {
    this.#database = database
    this.#leaseMs = options.leaseMs ?? 3000
    this.#address = options.address
    this.#parts = {
      database,
      queue: new AppendQueue(database),
      derived: new DerivedQueue(database),
      watch: new LineWatch(database),
      node: randomUUID(),
      writer: { host: options.node ?? hostname(), process: String(process.pid) },
      held: new Set(),
      renew: () => this.#renew(),
    }
  }

  async create({ tenant }: Scope, sessionId: string, header: SealedLine): Promise<void> {
    const { rows } = await this.#callOnce<{ isNew: boolean }>(
      'select tapetree.create_session($1, $2, $3, $4) as "isNew"',
      [requireId(tenant, 'tenant'), requireId(sessionId, 'session id'), randomUUID(), header.text],
    )
    if (!rows[0]?.isNew) throw new SessionError('session-exists', `Session ${sessionId} exists already.`)
  }

  async discard({ tenant }: Scope, sessionId: string): Promise<void> {
    await this.#remove(tenant, sessionId)
  }

  async open({ tenant }: Scope, sessionId: string, place: Place = 'active'): Promise<ReadableLog> {
    const session = await this.#find(tenant, sessionId)
    if (session?.place !== place) throw notFound(sessionId)
    return new PostgresLog(this.#parts, session)
  }

  async claim({ tenant }: Scope, sessionId: string, options: ClaimOptions = {}): Promise<Claim> {
    this.#address ??= options.address
    return this.#claimAs(tenant, async (claim, end) => {
      const [row] = await this.#database.call<ClaimRow>(
        'select outcome, key, term, head, lines, owner from tapetree.claim_session($1, $2, $3, $4, $5)',
        [tenant, sessionId, this.#parts.node, claim, options.insist ?? false],
      )
      if (row?.outcome === 'owned') {
        const owner = row.owner === null ? { reason: 'Another process owns it.' } : ownerOf(row.owner)
        return { type: 'owned', owner }
      }
      if (row?.outcome !== 'claimed') throw notFound(sessionId)
      return { type: 'claimed', log: this.#hold({ ...row, tenant, id: sessionId }, { claim, end }) }
    })
  }

  async claimAbandoned({ tenant }: Scope, options: AbandonedOptions): Promise<AbandonedLog[]> {
    const { limit, address, isWanted = () => true } = options
    const { node } = this.#parts
    const found = await this.#database.call<{ key: string; header: string }>(
      'select key, header from tapetree.abandoned_sessions($1, $2)',
      [tenant, node],
    )
    const wanted = found.filter(({ header }) => isWanted(Buffer.from(header))).slice(0, limit)
    if (wanted.length === 0) return []
    this.#address ??= address
    // One id for all of them, so that a call that lost its answer finds them when it is repeated.
    return this.#claimAs(tenant, async (claim, end) => {
      const { rows } = await this.#callOnce<{ id: string; key: string; term: number; head: number; lines: number }>(
        'select id, key, term, head, lines from tapetree.claim_abandoned($1, $2, $3, $4)',
        [tenant, node, claim, wanted.map(({ key }) => key)],
      )
      return rows.map((row) => ({ sessionId: row.id, log: this.#hold({ ...row, tenant }, { claim, end }) }))
    })
  }

  async list({ tenant }: Scope, query: SessionQuery): Promise<SessionPage> {
    return listRows(this.#database, tenant, query, (session) => new PostgresLog(this.#parts, session))
  }

  async search({ tenant }: Scope, query: SearchQuery): Promise<SearchHit[]> {
    return searchTexts(this.#database, tenant, query, (session) => new PostgresLog(this.#parts, session))
  }

  async placeOf({ tenant }: Scope, sessionId: string): Promise<Place | undefined> {
    return (await this.#find(tenant, sessionId))?.place
  }

  async storedBytes({ tenant }: Scope, { isVisible }: Pick<SessionQuery, 'isVisible'> = {}): Promise<number> {
    return storedBytes(this.#database, { tenant, isVisible }, (session) => new PostgresLog(this.#parts, session))
  }

  async move({ tenant }: Scope, sessionId: string, place: Place): Promise<void> {
    const [row] = await this.#database.call<{ outcome: string }>(
      'select tapetree.move_session($1, $2, $3) as outcome',
      [tenant, sessionId, place],
    )
    if (row?.outcome === 'missing') throw notFound(sessionId)
    if (row?.outcome === 'owned') throw owned(sessionId)
  }

  /** The rows are deleted in one transaction. Their pages are overwritten when the database vacuums the tables. */
  async erase({ tenant }: Scope, sessionId: string): Promise<void> {
    const { outcome, isRepeated } = await this.#remove(tenant, sessionId)
    // If it was repeated, an earlier attempt has erased it.
    if (outcome === 'missing' && !isRepeated) throw notFound(sessionId)
  }

  document({ tenant }: Scope, name: string): StoredDocument {
    return {
      read: async () => {
        const [row] = await this.#database.call<{ version: number; content: string }>(
          'select version, content from tapetree.read_document($1, $2)',
          [tenant, name],
        )
        return row
      },
      write: async (content, version) => {
        const { rows } = await this.#callOnce<{ isWritten: boolean }>(
          'select tapetree.write_document($1, $2, $3, $4, $5) as "isWritten"',
          [tenant, name, version, randomUUID(), content],
        )
        return rows[0]?.isWritten ?? false
      },
    }
  }

  /** The processes that are alive and have an address, this one included. */
  async nodes(): Promise<{ name: string; address: string }[]> {
    if (!this.#heart) await this.#beat()
    return this.#database.call('select name, address from tapetree.living_nodes()', [])
  }

  async check(): Promise<void> {
    await this.#beat()
  }

  /** Ends the lease of this process, so that its sessions can be claimed. */
  async close(): Promise<void> {
    const isLiving = this.#heart !== undefined
    this.#stopHeart()
    // If the database does not answer, the lease ends by itself.
    if (isLiving) await this.#database.append('select tapetree.end_node($1)', [this.#parts.node])
    this.#parts.watch.close()
    await this.#database.close()
  }

  /**
   * Makes a call that finds nothing left to do if it is repeated. Then it does not wait for the standbys, though they may not
   * have what it saw. A beat is a write, so it waits for them. So does a call that locks its session, even if it changes
   * nothing.
   */
  async #callOnce<Row extends object>(text: string, values: readonly unknown[]): Promise<CalledOnce<Row>> {
    let isRepeated = false
    const rows = await this.#database.call<Row>(text, values, { onDoubt: () => (isRepeated = true) })
    if (isRepeated) await this.#beat()
    return { rows, isRepeated }
  }

  /** Gives a sign of life, and more of them for as long as somebody asks for the lease of this process. Returns its end. */
  async #beat(): Promise<LeaseEnd> {
    this.#heart ??= this.#startHeart()
    return (await this.#sign([])).end
  }

  /** If a beat fails, the next one follows; the lease may end meanwhile, and then another process may claim. */
  #startHeart(): ReturnType<typeof setInterval> {
    const renew = oneAtATime(() => this.#renew())
    const leaveUnheld = oneAtATime(() => this.#leaveUnheld())
    let beats = 0
    const beat = (): void => {
      // Nobody asks for its lease: it owns no session, and other processes cannot reach it.
      if (this.#parts.held.size + this.#underWay.size === 0 && this.#address === undefined) return this.#stopHeart()
      renew()
      if (++beats % beatsUntilUnheld === 0) leaveUnheld()
    }
    return setInterval(beat, Math.min(this.#leaseMs / 3, 1000)).unref()
  }

  #stopHeart(): void {
    clearInterval(this.#heart)
    this.#heart = undefined
  }

  /**
   * Hands over the sessions that this process owns in the database and does not hold. A claim can run long after its
   * connection broke, when the session has been closed again, and a release may never run. For as long as this process
   * lives, no other one could write such a session.
   */
  async #leaveUnheld(): Promise<void> {
    const { node, held } = this.#parts
    const ownClaims = (): string[] => [...this.#underWay, ...[...held].flatMap(({ claims }) => claims)]
    for (const tenant of this.#tenants) {
      const found = await this.#database.call<ClaimedKey>(
        'select key, claim from tapetree.unheld_sessions($1, $2, $3)',
        [tenant, node, ownClaims()],
      )
      // What was claimed meanwhile is not among those claims.
      const own = new Set(ownClaims())
      for (const { key, claim } of found.filter((each) => !own.has(each.claim))) {
        await this.#database.call('select tapetree.hand_over_session($1, $2, $3)', [tenant, key, claim])
      }
    }
  }

  /** Makes a claim under a lease that ends then, and counts it as one of this process from its beginning. */
  async #claimAs<T>(tenant: string, work: (claim: string, end: LeaseEnd) => Promise<T>): Promise<T> {
    const claim = randomUUID()
    this.#tenants.add(tenant)
    this.#underWay.add(claim)
    try {
      return await work(claim, await this.#beat())
    } finally {
      this.#underWay.delete(claim)
    }
  }

  /** Renews the lease, and tells the logs that this process writes whether they are still its own. */
  async #renew(): Promise<void> {
    const claims = [...this.#parts.held].flatMap((log) => (log.claimed ? [{ ...log.claimed, log }] : []))
    const { end, lost } = await this.#sign(claims)
    for (const { log, claim } of claims) log.renew(claim, end)
    for (const each of lost) for (const { log } of claims) log.lose(each)
  }

  /** Gives a sign of life. Returns the end of the lease, and those of the claims that no longer hold. */
  async #sign(claims: readonly ClaimedKey[]): Promise<{ end: LeaseEnd; lost: ClaimedKey[] }> {
    const { node, writer } = this.#parts
    const end = new LeaseEnd(this.#leaseMs)
    const lost = await this.#database.call<{ key: string; claim: string }>(
      'select key, claim from tapetree.beat($1, $2, $3, $4, $5, $6, $7)',
      [
        node,
        this.#address ?? null,
        writer.host,
        writer.process,
        this.#leaseMs,
        claims.map(({ key }) => key),
        claims.map(({ claim }) => claim),
      ],
      { beatMs: this.#leaseMs / 3 },
    )
    return { end, lost }
  }

  #hold({ term, ...session }: StoredSession & { term: number }, held: { claim: string; end: LeaseEnd }): PostgresLog {
    const log = new PostgresLog(this.#parts, session, { term, ...held })
    this.#parts.held.add(log)
    return log
  }

  /** Rejects with `session-owned` while it has a writer. */
  async #remove(tenant: string, sessionId: string): Promise<{ outcome: string | undefined; isRepeated: boolean }> {
    const { rows, isRepeated } = await this.#callOnce<{ outcome: string }>(
      'select tapetree.erase_session($1, $2) as outcome',
      [tenant, sessionId],
    )
    const outcome = rows[0]?.outcome
    if (outcome === 'owned') throw owned(sessionId)
    return { outcome, isRepeated }
  }

  async #find(tenant: string, sessionId: string): Promise<(StoredSession & { place: Place }) | undefined> {
    const [row] = await this.#database.call<{ key: string; place: Place; head: number; lines: number }>(
      'select key, place, head, lines from tapetree.find_session($1, $2)',
      [tenant, sessionId],
    )
    return row && { ...row, tenant, id: sessionId }
  }
}

type ClaimRow =
  | { outcome: 'claimed'; key: string; term: number; head: number; lines: number }
  | { outcome: 'owned'; owner: string | null }
  | { outcome: 'missing' }

interface CalledOnce<Row> {
  rows: Row[]
  /** An earlier attempt may have been committed. */
  isRepeated: boolean
}

/** A process looks for sessions that it owns and does not hold after so many beats. */
const beatsUntilUnheld = 10

/** Calls that piled up while the database does not answer would take all connections. Nobody hears of one that fails. */
function oneAtATime(work: () => Promise<void>): () => void {
  let isAtWork = false
  return () => {
    if (isAtWork) return
    isAtWork = true
    void work()
      .catch(() => undefined)
      .finally(() => (isAtWork = false))
  }
}

function owned(sessionId: string): SessionError {
  return new SessionError('session-owned', `Session ${sessionId} is open in another process. Close it first.`)
}

function notFound(sessionId: string): SessionError {
  return new SessionError('session-not-found', `There is no session ${sessionId}.`)
}
