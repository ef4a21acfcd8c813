import { copyEntries } from './copy-session.ts'
import { fromDisk, toDisk } from './codec.ts'
import { SessionError } from './errors.ts'
import type { Committed } from './group-commit.ts'
import { isId, newId, requireId } from './ids.ts'
import { headerVersion } from './line.ts'
import {
  localScope,
  type ClaimOptions,
  type Durability,
  type LogStore,
  type Owner,
  type ReadableLog,
  type Scope,
  type WritableLog,
} from './log-store.ts'
import { OpenSessions, type ClaimedSession, type HeldSession } from './open-sessions.ts'
import { packSession } from './pack.ts'
import { Queue } from './queue.ts'
import { sealLine } from './seal-line.ts'
import { Session } from './session.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from './session-list.ts'
import { SessionReader } from './session-reader.ts'
import { SessionWriter } from './session-writer.ts'
import { SessionSink } from './session-sink.ts'
import { openPack, unpackInto } from './unpack.ts'
import { verifyLog, type VerifyReport } from './verify.ts'

export interface CreateOptions {
  id?: string
  name?: string
  cwd?: string
  parentSession?: string
  parentEntry?: string
}

export interface OpenOptions extends ClaimOptions {
  readOnly?: boolean
}

export interface SessionStoreOptions {
  scope?: Scope
  /** When an append resolves: on disk (default), or as soon as the process could die without losing it. */
  durability?: Durability
  now?: () => Date
  /** Opens a log that lies outside the store, by its path. */
  openPath?: (path: string, options: OpenOptions) => Promise<OpenedLog>
  pathOf?: (scope: Scope, sessionId: string) => string
}

export type OpenedLog =
  | { type: 'writable'; id: string; log: WritableLog }
  | { type: 'readable'; id: string; log: ReadableLog; owner?: Owner }

/** All sessions of one scope, whatever they are stored in. */
export class SessionStore {
  readonly #port: LogStore
  readonly #options: SessionStoreOptions
  readonly scope: Scope
  /** Sessions that this store holds open for writing: a second opener in the same process gets the same one. */
  readonly #open: OpenSessions
  readonly #popping = new Set<string>()

  constructor(port: LogStore, options: SessionStoreOptions = {}, open: OpenSessions = new OpenSessions()) {
    this.#port = port
    this.#open = open
    this.#options = options
    this.scope = options.scope ?? localScope
  }

  /** The same store for another tenant. */
  withScope(scope: Scope): SessionStore {
    return new SessionStore(this.#port, { ...this.#options, scope }, this.#open)
  }

  async create(options: CreateOptions = {}): Promise<Session> {
    const { name, ...header } = options
    const id = await this.#createLog(header)
    const session = await this.open(id)
    if (name !== undefined) await session.appendSessionInfo(name)
    return session
  }

  /** Opens for writing. Where somebody else writes, the session is read-only and says who does. */
  async open(sessionId: string, options: OpenOptions = {}): Promise<Session> {
    const id = requireId(sessionId, 'session id')
    if (options.readOnly) {
      return this.#openReadable(id, await this.#port.open(this.scope, id))
    }
    const key = `${this.scope.tenant}/${id}`
    const claimed = await this.#open.join(key, () => this.#claim(id, options))
    if (claimed.type === 'owned') return this.#openReadable(id, await this.#port.open(this.scope, id), claimed.owner)
    return this.#sessionOn(claimed, { id, path: this.#pathOf(id), release: () => this.#open.leave(key) })
  }

  /** Opens a session by its folder or by the path of any `.jsonl` file. */
  async load(path: string, options: OpenOptions = {}): Promise<Session> {
    if (!this.#options.openPath) return this.open(path, options)
    const opened = await this.#options.openPath(path, options)
    if (opened.type === 'readable') return this.#openReadable(opened.id, opened.log, opened.owner)
    const held = await this.#hold(opened.log)
    const release = async (): Promise<void> => {
      await held.writer.close()
      await held.log.close()
    }
    return this.#sessionOn(held, { id: opened.id, path, release })
  }

  /** The session with the newest message. Rejects with `session-not-found` where there is none. */
  async continueRecent(query: SessionQuery = {}): Promise<Session> {
    const { sessions } = await this.list({ ...query, limit: 1 })
    const [newest] = sessions
    if (!newest) throw new SessionError('session-not-found', 'There is no session to continue.')
    return this.open(newest.id)
  }

  /** A new session with all entries of another one, given by id or path. */
  async forkFrom(source: string, options: CreateOptions = {}): Promise<Session> {
    const { id, log } = await this.#openSource(source)
    try {
      return await this.open(await this.#copy(await SessionReader.open(log, { whole: true }), { from: id, options }))
    } finally {
      await log.close()
    }
  }

  async list(query: SessionQuery = {}): Promise<SessionPage> {
    return this.#port.list(this.scope, query)
  }

  async search(query: SearchQuery): Promise<SearchHit[]> {
    return this.#port.search(this.scope, query)
  }

  async archive(sessionId: string): Promise<void> {
    await this.#port.move(this.scope, requireId(sessionId, 'session id'), 'archive')
  }

  /** Moves to the trash; nothing is deleted by itself. */
  async delete(sessionId: string): Promise<void> {
    await this.#port.move(this.scope, requireId(sessionId, 'session id'), 'trash')
  }

  /** Back from the archive or the trash. */
  async restore(sessionId: string): Promise<void> {
    await this.#port.move(this.scope, requireId(sessionId, 'session id'), 'active')
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

  /** Makes a new session from a pack: data only, with new ids, no grants and nothing to resume. */
  async unpack(bytes: AsyncIterable<Uint8Array>): Promise<Session> {
    const { source, sessionId } = await openPack(bytes)
    const id = await this.#createLog({ parentSession: requireId(sessionId, 'session id') })
    const sink = await this.#openSink(id)
    try {
      await sink.finish(await unpackInto(source, sink))
    } catch (error) {
      await sink.close()
      await this.delete(id)
      throw error
    }
    return this.open(id)
  }

  /** The queue of a session: any number of these share the one inbox. */
  queue(sessionId: string): Queue {
    return new Queue(this, requireId(sessionId, 'session id'), this.#popping)
  }

  /** Reads every line and says what is wrong. Changes nothing. */
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

  /** Makes the log with its header and nothing else. */
  async #createLog(options: Omit<CreateOptions, 'name'>): Promise<string> {
    const id = options.id === undefined ? newId() : requireId(options.id, 'session id')
    const { cwd, parentSession, parentEntry } = options
    const header = toDisk(
      { type: 'session', version: headerVersion, cwd, parentSession, parentEntry },
      { id, timestamp: this.#now().toISOString() },
    )
    await this.#port.create(this.scope, id, sealLine(header, 1))
    return id
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date()
  }

  async #openSource(source: string): Promise<{ id: string; log: ReadableLog }> {
    if (isId(source) || !this.#options.openPath) {
      const id = requireId(source, 'session id')
      return { id, log: await this.#port.open(this.scope, id) }
    }
    return this.#options.openPath(source, { readOnly: true })
  }

  async #copy(
    reader: SessionReader,
    { from, leafId, options = {} }: { from: string; leafId?: string; options?: CreateOptions },
  ): Promise<string> {
    const copy = await copyEntries(reader, leafId === undefined ? {} : { leafId })
    const { name, ...header } = options
    const cwd = header.cwd ?? reader.state.header?.['cwd']
    const id = await this.#createLog({
      ...header,
      ...(typeof cwd === 'string' && { cwd }),
      parentSession: from,
      ...(copy.leafId !== null && { parentEntry: copy.leafId }),
    })
    const sink = await this.#openSink(id)
    const blobs = new Set<string>()
    for await (const { line, blobs: named } of copy.lines) {
      for (const sha256 of named) {
        const bytes = blobs.has(sha256) ? undefined : await reader.log.getBlob(sha256)
        if (bytes) await sink.putBlob(bytes)
        blobs.add(sha256)
      }
      await sink.append(line)
    }
    await sink.finish(copy.leafId)
    if (name !== undefined) {
      await using session = await this.open(id)
      await session.appendSessionInfo(name)
    }
    return id
  }

  async #openSink(id: string): Promise<SessionSink> {
    const claimed = await this.#claim(id, {})
    if (claimed.type === 'owned') throw new SessionError('session-owned', claimed.owner.reason)
    return new SessionSink(claimed)
  }

  async #claim(id: string, options: OpenOptions): Promise<ClaimedSession> {
    const claim = await this.#port.claim(this.scope, id, options)
    return claim.type === 'claimed' ? this.#hold(claim.log) : claim
  }

  async #hold(log: WritableLog): Promise<HeldSession> {
    const reader = await SessionReader.open(log).catch(async (error: unknown) => {
      await log.close()
      throw error
    })
    const listeners: HeldSession['listeners'] = new Set()
    const writer = new SessionWriter({
      log,
      reader,
      durability: this.#options.durability ?? 'durable',
      now: () => this.#now(),
      onCommit: (lines) => announce(lines, listeners),
    })
    return { type: 'held', reader, writer, log, listeners }
  }

  #sessionOn(
    held: HeldSession,
    session: { id: string; path: string | undefined; release: () => Promise<void> },
  ): Session {
    const { id, path, release } = session
    return new Session({
      id,
      reader: held.reader,
      held,
      ...(path !== undefined && { path }),
      exportBranch: (leafId) => this.#copy(held.reader, { from: id, leafId }),
      release,
    })
  }

  async #openReadable(id: string, log: ReadableLog, owner?: Owner): Promise<Session> {
    const path = this.#pathOf(id)
    const reader = await SessionReader.open(log)
    return new Session({
      id,
      reader,
      ...(owner && { owner }),
      ...(path !== undefined && { path }),
      exportBranch: (leafId) => this.#copy(reader, { from: id, leafId }),
      release: () => log.close(),
    })
  }

  #pathOf(id: string): string | undefined {
    return this.#options.pathOf?.(this.scope, id)
  }
}

function announce(lines: readonly Committed[], listeners: HeldSession['listeners']): void {
  if (listeners.size === 0) return
  for (const { line, sealed } of lines) {
    const committed = { seq: sealed.seq, crc: sealed.crc, text: sealed.text, line: fromDisk(line, sealed.seq) }
    for (const tell of listeners) tell(committed)
  }
}
