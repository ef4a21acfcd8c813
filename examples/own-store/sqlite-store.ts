import { SessionError, type Place, type Scope, type SearchQuery, type SessionQuery } from '@tapetree/session'
import type {
  AppendOptions,
  AppendResult,
  Claim,
  ClaimOptions,
  DerivedData,
  LogStore,
} from '@tapetree/session/log-store'
import {
  NewestHits,
  pageOf,
  readSessionInfo,
  searchLog,
  type StoredLine,
  type WritableLog,
} from '@tapetree/session/log-store'
import type { Position, SealedLine } from '@tapetree/session/format'
import { createHash } from 'node:crypto'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const tables = `
  pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000;
  create table if not exists sessions (key integer primary key autoincrement, tenant, id, place default 'active', term default 0, owner, unique (tenant, id));
  create table if not exists lines (session, seq, bytes, primary key (session, seq)) without rowid;
  create table if not exists files (session, name, bytes, primary key (session, name)) without rowid;`
type Row = { key: number; id: string; place: Place; term: number; owner: number | null }

/** Sessions in one SQLite file, for the processes of one machine. */
export class SqliteStore implements LogStore {
  readonly #db: DatabaseSync

  constructor(file: string) {
    this.#db = new DatabaseSync(file)
    this.#db.exec(tables)
  }

  async create(scope: Scope, id: string, header: SealedLine) {
    if (this.#find(scope, id)) throw new SessionError('session-exists', `Session ${id} exists already.`)
    inTransaction(this.#db, () => {
      const { lastInsertRowid } = run(this.#db, 'insert into sessions (tenant, id) values (?, ?)', scope.tenant, id)
      new SqliteLog(this.#db, Number(lastInsertRowid), undefined).insert(header)
    })
  }

  async discard(scope: Scope, id: string) {
    if (!this.#find(scope, id)) return
    const { key } = this.#unowned(scope, id)
    for (const table of ['lines', 'files']) run(this.#db, `delete from ${table} where session = ?`, key)
    run(this.#db, 'delete from sessions where key = ?', key)
  }

  async open(scope: Scope, id: string, place: Place = 'active') {
    return new SqliteLog(this.#db, this.#in(place, scope, id).key, undefined)
  }

  async claim(scope: Scope, id: string, options?: ClaimOptions): Promise<Claim> {
    const { key, owner, term } = this.#in('active', scope, id)
    if (owner !== null && isAlive(owner) && !options?.insist)
      return { type: 'owned', owner: { reason: `Process ${owner} writes this session.`, process: String(owner) } }
    const took = run(
      this.#db,
      'update sessions set term = term + 1, owner = ? where key = ? and term = ?',
      process.pid,
      key,
      term,
    )
    return took.changes === 1
      ? { type: 'claimed', log: new SqliteLog(this.#db, key, term + 1) }
      : this.claim(scope, id, options)
  }

  async list(scope: Scope, query: SessionQuery) {
    const rows = this.#all(scope, query.place ?? 'active')
    return pageOf(await Promise.all(rows.map(({ id, log }) => readSessionInfo(log, id))), query)
  }

  async search(scope: Scope, query: SearchQuery) {
    const hits = new NewestHits(query)
    for (const { id, log } of this.#all(scope, query.place ?? 'active'))
      if (query.among?.has(id) !== false) await searchLog(log, { text: query.text, sessionId: id, hits })
    return hits.list()
  }

  async placeOf(scope: Scope, id: string) {
    return this.#find(scope, id)?.place
  }

  async storedBytes(scope: Scope, { isVisible }: Pick<SessionQuery, 'isVisible'> = {}) {
    let bytes = 0
    for (const { id, log } of (['active', 'archive', 'trash'] as const).flatMap((place) => this.#all(scope, place)))
      if (isVisible?.((await readSessionInfo(log, id)).cwd) !== false) bytes += log.size
    return bytes
  }

  async move(scope: Scope, id: string, place: Place) {
    run(this.#db, 'update sessions set place = ? where key = ?', place, this.#unowned(scope, id).key)
  }

  async erase(scope: Scope, id: string) {
    this.#unowned(scope, id)
    await this.discard(scope, id)
    this.#db.exec('vacuum; pragma wal_checkpoint(truncate)')
  }

  async close() {
    if (this.#db.isOpen) this.#db.close()
  }

  #all({ tenant }: Scope, place: Place) {
    const rows = all<Row>(this.#db, 'select * from sessions where tenant = ? and place = ?', tenant, place)
    return rows.map(({ id, key }) => ({ id, log: new SqliteLog(this.#db, key, undefined) }))
  }

  #find({ tenant }: Scope, id: string) {
    return all<Row>(this.#db, 'select * from sessions where tenant = ? and id = ?', tenant, id)[0]
  }

  #in(place: Place, scope: Scope, id: string) {
    const row = this.#find(scope, id)
    if (row?.place !== place) throw new SessionError('session-not-found', `There is no session ${id}.`)
    return row
  }

  #unowned(scope: Scope, id: string) {
    const row = this.#find(scope, id)
    if (!row) throw new SessionError('session-not-found', `There is no session ${id}.`)
    if (row.owner !== null && isAlive(row.owner))
      throw new SessionError('session-owned', `Session ${id} is open. Close it first.`)
    return row
  }
}

class SqliteLog implements WritableLog {
  readonly writer = { host: 'local', process: String(process.pid) }
  readonly mended = { tornBytes: 0, keptAs: undefined }
  readonly localFolder = undefined
  readonly #db: DatabaseSync
  readonly #key: number
  #term: number | undefined

  constructor(db: DatabaseSync, key: number, term: number | undefined) {
    this.#db = db
    this.#key = key
    this.#term = term
  }

  get term() {
    return this.#term
  }

  get size() {
    const sum = (table: string) => `(select coalesce(sum(octet_length(bytes)), 0) from ${table} where session = $key)`
    const query = `select ${sum('lines')} + ${sum('files')} as bytes`
    return (this.#db.prepare(query).get({ key: this.#key }) as { bytes: number }).bytes
  }

  async *lines(from: number) {
    for (let next: number | undefined = from; ;) {
      const lines = this.#lines('seq > ? order by seq limit 500', next)
      next = lines.at(-1)?.next
      if (next === undefined) return
      yield lines
    }
  }

  async seek(seq: number) {
    return this.#lines('seq >= ? order by seq limit 1', seq)[0]?.at
  }

  async readAt(positions: readonly Position[]) {
    return positions.map(({ at }) => this.#lines('seq = ?', at + 1)[0]?.bytes ?? new Uint8Array())
  }

  async unfinishedBytes() {
    return 0
  }

  async changed(signal: AbortSignal) {
    const head = this.#head()
    while (!signal.aborted && this.#head().seq === head.seq) await sleep(50, null, { signal }).catch(() => undefined)
  }

  async owner() {
    const { owner } = this.#session()
    return owner === null || !isAlive(owner)
      ? undefined
      : { reason: `Process ${owner} writes it.`, process: String(owner) }
  }

  append(lines: readonly SealedLine[], { term, head }: AppendOptions): AppendResult {
    try {
      return inTransaction(this.#db, () => {
        const last = this.#head().seq
        if (this.#session().term !== term) return { type: 'fenced', reason: 'another writer took over' }
        if (last !== head) return { type: 'fenced', reason: `its last line is now ${last}` }
        return { type: 'appended', positions: lines.map((line) => this.insert(line)) }
      })
    } catch (cause) {
      return { type: 'failed', cause, final: false }
    }
  }

  insert({ text }: SealedLine) {
    const seq = this.#head().seq + 1
    const bytes = Buffer.from(text)
    run(this.#db, 'insert into lines values (?, ?, ?)', this.#key, seq, bytes)
    return { at: seq - 1, size: bytes.length, next: seq }
  }

  async reclaim(): Promise<Claim> {
    if (this.#session().term !== this.#term) return { type: 'owned', owner: { reason: 'Another writer took over.' } }
    run(this.#db, 'update sessions set term = term + 1 where key = ?', this.#key)
    this.#term = this.#session().term
    return { type: 'claimed', log: this }
  }

  async putBlob(bytes: Uint8Array) {
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    this.#save(sha256, bytes)
    return { sha256, size: bytes.length }
  }

  async getBlob(sha256: string) {
    return this.#file(sha256)
  }

  async saveDerived({ checkpoint }: DerivedData) {
    if (!checkpoint) return
    for (const [number, content] of checkpoint.changed) this.#save(`checkpoint ${number}`, Buffer.from(content))
    for (let number = checkpoint.count; this.#file(`checkpoint ${number}`); number++) this.#drop(`checkpoint ${number}`)
  }

  async loadCheckpoint() {
    const pieces: string[] = []
    for (let bytes; (bytes = this.#file(`checkpoint ${pieces.length}`));) pieces.push(Buffer.from(bytes).toString())
    return pieces
  }

  async close() {
    if (this.#term !== undefined)
      run(this.#db, 'update sessions set owner = null where key = ? and term = ?', this.#key, this.#term)
  }

  #session(): Row {
    const [row] = all<Row>(this.#db, 'select * from sessions where key = ?', this.#key)
    return row ?? { key: 0, id: '', place: 'trash', term: -1, owner: null }
  }

  #head() {
    const [last] = this.#lines('true order by seq desc limit 1')
    return last ?? { seq: 0 }
  }

  #lines(where: string, ...values: SQLInputValue[]) {
    const query = `select seq, seq - 1 as at, length(bytes) as size, seq as next, bytes from lines where session = ? and ${where}`
    return all<StoredLine & { seq: number }>(this.#db, query, this.#key, ...values)
  }

  #drop(name: string) {
    run(this.#db, 'delete from files where session = ? and name = ?', this.#key, name)
  }

  #save(name: string, bytes: Uint8Array) {
    run(this.#db, 'insert or replace into files values (?, ?, ?)', this.#key, name, bytes)
  }

  #file(name: string) {
    const query = 'select bytes from files where session = ? and name = ?'
    return all<{ bytes: Uint8Array }>(this.#db, query, this.#key, name)[0]?.bytes
  }
}

/** All of it, or nothing. */
function inTransaction<Result>(db: DatabaseSync, work: () => Result): Result {
  db.exec('begin immediate')
  try {
    const result = work()
    db.exec('commit')
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('rollback')
    throw error
  }
}

function run(db: DatabaseSync, query: string, ...values: SQLInputValue[]) {
  return db.prepare(query).run(...values)
}

function all<R>(db: DatabaseSync, query: string, ...values: SQLInputValue[]) {
  return db.prepare(query).all(...values) as R[]
}

/** A process that died owns nothing any more. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
