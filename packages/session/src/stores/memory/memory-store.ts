import { SessionError } from '../../errors.ts'
import type { Position } from '../../line/line.ts'
import type {
  AppendOptions,
  AppendResult,
  Claim,
  ClaimOptions,
  DerivedData,
  LinePosition,
  LogStore,
  Owner,
  Place,
  ReadableLog,
  Scope,
  StoredLine,
  WritableLog,
} from '../../log/log-store.ts'
import type { BlobReference } from '../../line/message.ts'
import type { SealedLine } from '../../line/seal-line.ts'
import type { SearchHit, SearchQuery, SessionInfo, SessionPage, SessionQuery } from '../../state/session-info.ts'
import { SessionStore, type SessionStoreOptions } from '../../store/session-store.ts'
import { settledWithin } from '../../util/deadline.ts'
import { Listeners } from '../../util/listeners.ts'
import { pageOf } from '../list-page.ts'
import { readSessionInfo } from '../log-info.ts'
import { NewestHits } from '../search-hits.ts'
import { searchLog } from '../search-log.ts'

/** Sessions that live as long as the process, with the same lines and fencing as any other store. */
export function memoryStore(options: Omit<SessionStoreOptions, 'openPath' | 'pathOf'> = {}): SessionStore {
  return new SessionStore(new MemoryLogStore(), options)
}

export class MemoryLogStore implements LogStore {
  readonly #tenants = new Map<string, Map<string, StoredSession>>()

  async create(scope: Scope, sessionId: string, header: SealedLine): Promise<void> {
    const sessions = this.#sessionsOf(scope)
    if (sessions.has(sessionId)) throw new SessionError('session-exists', `Session ${sessionId} exists already.`)
    const session = new StoredSession()
    session.push(header.text)
    sessions.set(sessionId, session)
  }

  async discard(scope: Scope, sessionId: string): Promise<void> {
    if (this.#sessionsOf(scope).get(sessionId)?.owner !== undefined)
      throw new SessionError('session-owned', `Session ${sessionId} is open. Close it first.`)
    this.#sessionsOf(scope).delete(sessionId)
  }

  async open(scope: Scope, sessionId: string, place?: Place): Promise<ReadableLog> {
    return new MemoryLog(this.#find(scope, sessionId, place))
  }

  async claim(scope: Scope, sessionId: string, options?: ClaimOptions): Promise<Claim> {
    const session = this.#find(scope, sessionId)
    if (session.owner !== undefined && !options?.insist) {
      return {
        type: 'owned',
        owner: { reason: 'Another part of this process is writing this session.', process: String(session.owner) },
      }
    }
    return { type: 'claimed', log: new MemoryLog(session, session.takeOver()) }
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    const rows: SessionInfo[] = []
    for (const [id, session] of this.#sessionsOf(scope)) {
      if (session.place !== (query.place ?? 'active')) continue
      rows.push(await readSessionInfo(new MemoryLog(session), id))
    }
    return pageOf(rows, query)
  }

  async search(scope: Scope, query: SearchQuery): Promise<SearchHit[]> {
    const hits = new NewestHits(query)
    for (const [sessionId, session] of this.#sessionsOf(scope)) {
      if (session.place !== (query.place ?? 'active') || query.among?.has(sessionId) === false) continue
      await searchLog(new MemoryLog(session), { text: query.text, sessionId, hits })
    }
    return hits.list()
  }

  async placeOf(scope: Scope, sessionId: string): Promise<Place | undefined> {
    return this.#sessionsOf(scope).get(sessionId)?.place
  }

  async storedBytes(scope: Scope, { isVisible }: Pick<SessionQuery, 'isVisible'> = {}): Promise<number> {
    let total = 0
    for (const [id, session] of this.#sessionsOf(scope)) {
      if (isVisible && !isVisible((await readSessionInfo(new MemoryLog(session), id)).cwd)) continue
      for (const { bytes } of session.lines) total += bytes.length + 1
      for (const bytes of session.blobs.values()) total += bytes.length
    }
    return total
  }

  async move(scope: Scope, sessionId: string, place: Place): Promise<void> {
    const session = this.#sessionsOf(scope).get(sessionId)
    if (!session) throw notFound(sessionId)
    if (session.owner !== undefined)
      throw new SessionError('session-owned', `Session ${sessionId} is open. Close it first.`)
    session.place = place
  }

  async erase(scope: Scope, sessionId: string): Promise<void> {
    const session = this.#sessionsOf(scope).get(sessionId)
    if (!session) throw notFound(sessionId)
    if (session.owner !== undefined)
      throw new SessionError('session-owned', `Session ${sessionId} is open. Close it first.`)
    this.#sessionsOf(scope).delete(sessionId)
  }

  async close(): Promise<void> {}

  #sessionsOf(scope: Scope): Map<string, StoredSession> {
    const known = this.#tenants.get(scope.tenant)
    if (known) return known
    const fresh = new Map<string, StoredSession>()
    this.#tenants.set(scope.tenant, fresh)
    return fresh
  }

  #find(scope: Scope, sessionId: string, place: Place = 'active'): StoredSession {
    const session = this.#sessionsOf(scope).get(sessionId)
    if (!session || session.place !== place) throw notFound(sessionId)
    return session
  }
}

function notFound(sessionId: string): SessionError {
  return new SessionError('session-not-found', `There is no session ${sessionId}.`)
}

class StoredSession {
  readonly lines: StoredLine[] = []
  readonly blobs = new Map<string, Uint8Array>()
  checkpoint: string[] = []
  place: Place = 'active'
  term = 0
  owner: number | undefined
  /** Tells the current writer that another one has taken over. */
  #writer = new AbortController()
  readonly #changes = new Listeners<void>()

  /** The line count equals the head: seq has no gaps here. */
  get head(): number {
    return this.lines.length
  }

  /** The next term, and the signal that its writer has lost the session again. */
  takeOver(): { term: number; lost: AbortSignal } {
    this.#writer.abort(new SessionError('fenced', 'Another writer has taken over this session.'))
    this.#writer = new AbortController()
    this.term++
    this.owner = this.term
    return { term: this.term, lost: this.#writer.signal }
  }

  /** A writer that claims its own session again stays its writer. */
  renew(): number {
    this.term++
    this.owner = this.term
    return this.term
  }

  push(text: string): LinePosition {
    const bytes = encoder.encode(text)
    const at = this.lines.length
    const position = { at, size: bytes.length, next: at + 1 }
    this.lines.push({ ...position, bytes })
    this.#changes.notify()
    return position
  }

  async changed(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const stop = this.#changes.add(resolve)
    await settledWithin(promise, { signal })
    stop()
  }
}

class MemoryLog implements WritableLog {
  readonly #session: StoredSession
  #term: number | undefined
  readonly lost?: AbortSignal
  readonly writer = { host: 'memory', process: 'memory' }
  readonly mended = { tornBytes: 0, keptAs: undefined }
  readonly localFolder = undefined

  constructor(session: StoredSession, held?: { term: number; lost: AbortSignal }) {
    this.#session = session
    this.#term = held?.term
    if (held) this.lost = held.lost
  }

  get term(): number | undefined {
    return this.#term
  }

  async *lines(from: number): AsyncIterable<StoredLine[]> {
    for (let index = from; index < this.#session.lines.length; index += batchLines) {
      yield this.#session.lines.slice(index, index + batchLines)
    }
  }

  async seek(seq: number): Promise<number | undefined> {
    return this.#session.lines[seq - 1]?.at
  }

  async readAt(positions: readonly Position[]): Promise<Uint8Array[]> {
    return positions.map(({ at }) => this.#session.lines[at]?.bytes ?? new Uint8Array())
  }

  async unfinishedBytes(): Promise<number> {
    return 0
  }

  async changed(signal: AbortSignal): Promise<void> {
    await this.#session.changed(signal)
  }

  async owner(): Promise<Owner | undefined> {
    return this.#session.owner === undefined ? undefined : { reason: 'Another writer has this session.' }
  }

  async loadCheckpoint(): Promise<string[]> {
    return [...this.#session.checkpoint]
  }

  async getBlob(sha256: string): Promise<Uint8Array | undefined> {
    return this.#session.blobs.get(sha256)
  }

  append(lines: readonly SealedLine[], options: AppendOptions): AppendResult {
    const session = this.#session
    if (session.term !== options.term) return { type: 'fenced', reason: `its term is now ${session.term}` }
    if (session.head !== options.head) return { type: 'fenced', reason: `its last line is now ${session.head}` }
    return { type: 'appended', positions: lines.map(({ text }) => session.push(text)) }
  }

  async reclaim(): Promise<Claim> {
    if (this.#term !== this.#session.term) return { type: 'owned', owner: { reason: 'Another writer took over.' } }
    this.#term = this.#session.renew()
    return { type: 'claimed', log: this }
  }

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(bytes)))
    const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
    this.#session.blobs.set(sha256, bytes.slice())
    return { sha256, size: bytes.length }
  }

  async saveDerived({ checkpoint }: DerivedData): Promise<void> {
    if (!checkpoint) return
    const pieces = this.#session.checkpoint
    for (const [number, content] of checkpoint.changed) pieces[number] = content
    pieces.length = checkpoint.count
  }

  async close(): Promise<void> {
    if (this.#term !== undefined && this.#session.owner === this.#term) this.#session.owner = undefined
  }
}

const encoder = new TextEncoder()
const batchLines = 1024
