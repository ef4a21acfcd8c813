import { announce } from '../log/group-commit.ts'
import { SessionError } from '../errors.ts'
import { isId, requireId } from '../line/ids.ts'
import {
  localScope,
  type AbandonedLog,
  type AbandonedOptions,
  type ClaimOptions,
  type Durability,
  type LogStore,
  type Owner,
  type Place,
  type ReadableLog,
  type Scope,
  type WritableLog,
} from '../log/log-store.ts'
import { OpenSessions, type ClaimedSession, type HeldSession } from './open-sessions.ts'
import { packSession } from './pack.ts'
import { Queue } from './queue.ts'
import { RestrictedLogs, type IsVisible } from '../log/restricted-logs.ts'
import { Session, type Erased, type SessionParts } from './session.ts'
import type { SearchHit, SearchQuery, SessionInfo, SessionPage, SessionQuery } from '../state/session-info.ts'
import { SessionMaker, type HeaderOptions } from './session-maker.ts'
import { SessionReader } from '../log/session-reader.ts'
import { SessionWriter } from '../log/session-writer.ts'
import { Listeners } from '../util/listeners.ts'
import { verifyLog, type VerifyReport } from '../log/verify.ts'

export interface CreateOptions extends HeaderOptions {
  name?: string
}

export interface OpenOptions extends ClaimOptions {
  readOnly?: boolean
  /** Where the session is. Archived and deleted sessions are read-only. Default: `active`. */
  place?: Place
  /** Creates the session if it does not exist. */
  create?: boolean | Omit<CreateOptions, 'id'>
}

export interface SessionStoreOptions {
  scope?: Scope
  /** When an append resolves: when it is on disk (default), or when it survives the process. */
  durability?: Durability
  now?: () => Date
  /** Opens a log outside the store, by path. */
  openPath?: (path: string, options: OpenOptions) => Promise<OpenedLog>
  pathOf?: (scope: Scope, sessionId: string) => string
  /**
   * Called before a session is erased. The function that it returns is called afterwards, to delete what belongs to
   * the session elsewhere.
   */
  erasing?: (sessionId: string) => Promise<() => Promise<void>>
}

export type OpenedLog =
  | { type: 'writable'; id: string; log: WritableLog }
  | { type: 'readable'; id: string; log: ReadableLog; owner?: Owner }

/** All sessions of one scope, in any kind of storage. */
export class SessionStore {
  readonly scope: Scope
  readonly #port: LogStore
  readonly #options: SessionStoreOptions
  readonly #maker: SessionMaker
  /** Sessions that this process has open for writing; openers share one instance. */
  readonly #open: OpenSessions

  constructor(port: LogStore, options?: SessionStoreOptions)
  /** @internal Shares the open sessions of another store. */
  constructor(port: LogStore, options: SessionStoreOptions, open: OpenSessions)
  constructor(port: LogStore, options: SessionStoreOptions = {}, open: OpenSessions = new OpenSessions()) {
    this.scope = options.scope ?? localScope
    this.#port = port
    this.#options = options
    this.#open = open
    const hold = (log: WritableLog): Promise<HeldSession> => this.#hold(log)
    this.#maker = new SessionMaker({ port, scope: this.scope, now: () => this.#now(), hold })
  }

  /** The same store for another tenant. */
  withScope(scope: Scope): SessionStore {
    return new SessionStore(this.#port, { ...this.#options, scope }, this.#open)
  }

  /**
   * A view of this store that contains only the sessions in visible folders; all others do not exist for it. It
   * loads nothing by path, and shares no open session with the full store.
   */
  restrictedTo(isVisible: IsVisible): SessionStore {
    const { openPath: _, ...options } = this.#options
    return new SessionStore(new RestrictedLogs(this.#port, isVisible), options)
  }

  async create(options: CreateOptions = {}): Promise<Session> {
    this.#refuseIfClosed()
    const { name, ...header } = options
    return this.#openNew(await this.#maker.create(header), name)
  }

  /** Opens for writing. If another process writes the session, it is read-only and `owner` tells which. */
  async open(sessionId: string, { create, place: where = 'active', ...options }: OpenOptions = {}): Promise<Session> {
    if (create) await this.#createIfMissing(sessionId, create === true ? {} : create)
    this.#refuseIfClosed()
    const id = requireId(sessionId, 'session id')
    if (where !== 'active') return this.#openReadable({ id }, await this.#port.open(this.scope, id, where))
    const path = this.#options.pathOf?.(this.scope, id)
    const place = { id, ...(path !== undefined && { path }) }
    if (options.readOnly) return this.#openReadable(place, await this.#port.open(this.scope, id))
    const key = this.#keyOf(id)
    const claimed = await this.#open.join(key, () => this.#claim(id, options))
    if (claimed.type === 'held') return this.#sessionOn(place, claimed, (how) => this.#open.leave(key, claimed, how))
    return this.#openReadable({ ...place, owner: claimed.owner }, await this.#port.open(this.scope, id))
  }

  /**
   * Opens sessions whose writer has died without closing them, so that their runs can go on here. One that cannot be opened
   * is left to a later call; rejects if that is all of them. Undefined if the store cannot tell, as with files and memory.
   */
  async openAbandoned({ limit = 500, ...options }: Partial<AbandonedOptions> = {}): Promise<Session[] | undefined> {
    this.#refuseIfClosed()
    const claimed = await this.#port.claimAbandoned?.(this.scope, { limit, ...options })
    if (!claimed) return undefined
    const opened = await Promise.allSettled(claimed.map((each) => this.#openClaimed(each)))
    const sessions = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const failure = opened.find((each) => each.status === 'rejected')
    // If there are others, their runs matter more. What could not be opened was handed over, so a later call finds it.
    if (failure && sessions.length === 0) throw failure.reason
    return sessions
  }

  async #openClaimed({ sessionId: id, log }: AbandonedLog): Promise<Session> {
    const key = this.#keyOf(id)
    // This process may have lost it to the one that died, with lines that it could not store any more.
    await this.#open.end(key).catch(() => undefined)
    const held = await this.#open.join(key, () => this.#hold(log, () => leaveToOthers(log)))
    if (held.type === 'held') return this.#sessionOn({ id }, held, (how) => this.#open.leave(key, held, how))
    await leaveToOthers(log)
    throw new SessionError('session-owned', held.owner.reason)
  }

  async #createIfMissing(id: string, options: Omit<CreateOptions, 'id'>): Promise<void> {
    try {
      await (await this.create({ ...options, id })).close()
    } catch (error) {
      const isThere = error instanceof SessionError && ['session-exists', 'session-owned'].includes(error.code)
      if (!isThere) throw error
    }
  }

  /** Opens a session by its folder or by the path of any `.jsonl` file. */
  async load(path: string, options: OpenOptions = {}): Promise<Session> {
    this.#refuseIfClosed()
    if (!this.#options.openPath) return this.open(path, options)
    const opened = await this.#options.openPath(path, options)
    if (opened.type === 'readable') {
      const owner = opened.owner === undefined ? {} : { owner: opened.owner }
      return this.#openReadable({ id: opened.id, path, isLoose: true, ...owner }, opened.log)
    }
    const held = await this.#hold(opened.log)
    return this.#sessionOn({ id: opened.id, path, isLoose: true }, held, async () => {
      await held.writer.close()
      await held.log.close()
    })
  }

  /** Opens the session with the newest message. Rejects with `session-not-found` if there is none. */
  async continueRecent(query: SessionQuery = {}): Promise<Session> {
    const { sessions } = await this.list({ ...query, limit: 1 })
    const [newest] = sessions
    if (!newest) throw new SessionError('session-not-found', 'There is no session to continue.')
    return this.open(newest.id)
  }

  /** Creates a session with all entries of another one, given by id or path. */
  async forkFrom(source: string, options: CreateOptions = {}): Promise<Session> {
    const { name, ...header } = options
    await using from = await (isId(source)
      ? this.open(source, { readOnly: true })
      : this.load(source, { readOnly: true }))
    return await this.#openNew(await from.copyAll(header), name)
  }

  /** A session whose run was interrupted is `idle` with `stopped`, and excluded by `status: 'running'`. */
  async list(query: SessionQuery = {}): Promise<SessionPage> {
    const page = await this.#port.list(this.scope, query)
    const rows = await Promise.all(page.sessions.map((row) => this.#withStopped(row, query)))
    const isWanted = (row: SessionInfo): boolean => query.status !== 'running' || row.status === 'running'
    return { ...page, sessions: rows.filter(isWanted) }
  }

  /** Rejects with `storage-failed` if nothing can be stored, for example on a full disk. */
  async checkStorage(): Promise<void> {
    await this.#port.check?.(this.scope)
  }

  /** The size of the sessions in all places: their lines and blobs, and with files whatever else is in their folders. */
  async storedBytes(): Promise<number> {
    return this.#port.storedBytes(this.scope)
  }

  async search(query: SearchQuery): Promise<SearchHit[]> {
    return this.#port.search(this.scope, query)
  }

  async archive(sessionId: string): Promise<void> {
    await this.#port.move(this.scope, requireId(sessionId, 'session id'), 'archive')
  }

  /** Moves to the trash; nothing is deleted automatically. */
  async delete(sessionId: string): Promise<void> {
    await this.#port.move(this.scope, requireId(sessionId, 'session id'), 'trash')
  }

  /** Moves back from the archive or the trash. */
  async restore(sessionId: string): Promise<void> {
    await this.#port.move(this.scope, requireId(sessionId, 'session id'), 'active')
  }

  /**
   * Deletes a session for good, from any place: its log and blobs, and everything derived from them. Handles of
   * this process are closed first; rejects with `session-owned` if another process writes the session. Copies are
   * kept and returned. If the process dies, the next erase, or the next use of the store, finishes the deletion.
   */
  async erase(sessionId: string): Promise<Erased> {
    this.#refuseIfClosed()
    const id = requireId(sessionId, 'session id')
    const forks = await this.#copiesOf(id)
    await this.#open.end(this.#keyOf(id))
    const finish = await this.#options.erasing?.(id)
    await this.#port.erase(this.scope, id)
    await finish?.()
    return { forks }
  }

  /** A session with its blobs as one stream of bytes. */
  async *pack(sessionId: string): AsyncIterable<Uint8Array> {
    const log = await this.#port.open(this.scope, requireId(sessionId, 'session id'))
    try {
      yield* packSession(sessionId, log)
    } finally {
      await log.close()
    }
  }

  /** Creates a session from a pack: data only, with new ids, no grants and nothing to resume. */
  async unpack(bytes: AsyncIterable<Uint8Array>): Promise<Session> {
    this.#refuseIfClosed()
    return this.open(await this.#maker.unpack(bytes))
  }

  /** The queue of a session; all instances share one inbox. */
  queue(sessionId: string): Queue {
    return new Queue(this, requireId(sessionId, 'session id'))
  }

  /** Reads every line and reports damage. Changes nothing. */
  async verify(sessionId: string): Promise<VerifyReport> {
    const log = await this.#port.open(this.scope, requireId(sessionId, 'session id'))
    try {
      return await verifyLog(log)
    } finally {
      await log.close()
    }
  }

  async close(): Promise<void> {
    await this.#open.closeAll()
    await this.#port.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #refuseIfClosed(): void {
    if (this.#open.isClosed) throw new SessionError('session-closed', 'The session store is closed.')
  }

  #keyOf(sessionId: string): string {
    return `${this.scope.tenant}/${sessionId}`
  }

  /** The sessions that were made from one, directly or through another copy, in all places. */
  async #copiesOf(sessionId: string): Promise<string[]> {
    const rows: SessionInfo[] = []
    for (const place of ['active', 'archive', 'trash'] as const) {
      rows.push(...(await this.#port.list(this.scope, { place, limit: Infinity })).sessions)
    }
    const children = Map.groupBy(rows, (row) => row.parentSession)
    const copies = new Set<string>()
    const collect = (parent: string): void => {
      for (const { id } of children.get(parent) ?? []) {
        if (id === sessionId || copies.has(id)) continue
        copies.add(id)
        collect(id)
      }
    }
    collect(sessionId)
    return [...copies]
  }

  async #withStopped(row: SessionInfo, { place = 'active' }: SessionQuery): Promise<SessionInfo> {
    if (row.status !== 'running' || place !== 'active') return row
    const log = await this.#port.open(this.scope, row.id).catch(() => undefined)
    if (!log) return row
    try {
      if (!log.owner) return row
      const owner = await log.owner()
      // Whether a process on another machine is alive is unknown.
      const isStale = Date.parse(row.modified) < this.#now().getTime() - staleRunMs
      const isElsewhere = owner?.host !== undefined && owner.host !== log.host
      if (owner && !(isElsewhere && isStale)) return row
      return { ...row, status: 'idle', stopped: { type: 'interrupted', reason: 'The process of the run has ended.' } }
    } finally {
      await log.close()
    }
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date()
  }

  /** Rejects with `session-owned` if another process opened the new session first, which then keeps it. */
  async #openNew(id: string, name: string | undefined): Promise<Session> {
    return this.#maker.orDiscard(id, async () => {
      const session = await this.open(id)
      try {
        if (session.owner && !session.owner.cannotLock) throw new SessionError('session-owned', session.owner.reason)
        if (name !== undefined) await session.appendSessionInfo(name)
        return session
      } catch (error) {
        await session.close()
        throw error
      }
    })
  }

  async #claim(id: string, options: OpenOptions): Promise<ClaimedSession> {
    const claim = await this.#port.claim(this.scope, id, options)
    return claim.type === 'claimed' ? this.#hold(claim.log) : claim
  }

  /** `giveUp` closes a log that cannot be read. */
  async #hold(log: WritableLog, giveUp = (): Promise<void> => log.close()): Promise<HeldSession> {
    const reader = await openReader(log, { giveUp })
    const listeners: HeldSession['listeners'] = new Listeners()
    const planned: HeldSession['planned'] = new Map()
    const writer = new SessionWriter({
      log,
      reader,
      durability: this.#options.durability ?? 'durable',
      now: () => this.#now(),
      onCommit: (lines) => {
        for (const { line } of lines) planned.delete(line.id)
        announce(lines, listeners)
      },
    })
    return { type: 'held', reader, writer, log, listeners, taken: new Map(), planned }
  }

  #sessionOn(place: SessionPlace, held: HeldSession, release: SessionParts['release']): Session {
    return this.#session(place, { reader: held.reader, held, release })
  }

  async #openReadable(place: SessionPlace, log: ReadableLog): Promise<Session> {
    return this.#session(place, { reader: await openReader(log, { isBrief: true }), release: () => log.close() })
  }

  #session({ isLoose, ...place }: SessionPlace, parts: Pick<SessionParts, 'reader' | 'held' | 'release'>): Session {
    const id = (isLoose && parts.reader.state.header?.id) || place.id
    const copy: SessionParts['copy'] = (source) => this.#maker.copy(parts.reader, { from: id, ...source })
    const completeCopy: SessionParts['completeCopy'] = (made) => this.#maker.completeCopy(parts.reader, made)
    return new Session({ ...place, id, ...parts, copy, completeCopy, ...(!isLoose && { erase: () => this.erase(id) }) })
  }
}

/** A run on another machine that has written nothing for this long counts as interrupted. */
const staleRunMs = 60 * 60_000

interface SessionPlace {
  id: string
  /** The log lies outside the store, under any name: its header has the id. */
  isLoose?: boolean
  path?: string
  owner?: Owner
}

async function openReader(
  log: ReadableLog,
  { giveUp = () => log.close(), ...options }: { isBrief?: boolean; giveUp?: () => Promise<void> } = {},
): Promise<SessionReader> {
  return SessionReader.open(log, options).catch(async (error: unknown) => {
    await giveUp()
    throw error
  })
}

async function leaveToOthers(log: WritableLog): Promise<void> {
  await (log.handOver?.() ?? log.close())
}
