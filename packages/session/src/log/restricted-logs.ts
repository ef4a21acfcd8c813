import { SessionError } from '../errors.ts'
import type { Claim, ClaimOptions, LogStore, Place, ReadableLog, Scope } from './log-store.ts'
import { parseLine } from '../line/parse-line.ts'
import { textOf } from './replay.ts'
import type { SealedLine } from '../line/seal-line.ts'
import type { SearchHit, SearchQuery, SessionPage, SessionQuery } from '../state/session-info.ts'

/** Decides by folder whether a session is visible. A session without a folder passes undefined. */
export type IsVisible = (cwd: string | undefined) => boolean

/** The visible sessions of another store. All others behave like unknown ids. */
export class RestrictedLogs implements LogStore {
  readonly #logs: LogStore
  readonly #isVisible: IsVisible

  constructor(logs: LogStore, isVisible: IsVisible) {
    this.#logs = logs
    this.#isVisible = isVisible
  }

  /** Rejects with `invalid-entry` if the new session would not be visible. */
  async create(scope: Scope, sessionId: string, header: SealedLine): Promise<void> {
    if (!this.#isVisible(folderIn(new TextEncoder().encode(header.text)))) {
      throw new SessionError('invalid-entry', 'The folder of the new session is outside of the folders of this store.')
    }
    await this.#logs.create(scope, sessionId, header)
  }

  discard(scope: Scope, sessionId: string): Promise<void> {
    return this.#logs.discard(scope, sessionId)
  }

  async open(scope: Scope, sessionId: string, place?: Place): Promise<ReadableLog> {
    const log = await this.#logs.open(scope, sessionId, place)
    try {
      const [bytes = new Uint8Array()] = await log.readAt([{ at: 0, size: maxHeaderBytes }])
      if (!this.#isVisible(folderIn(bytes))) throw notFound(sessionId)
      return log
    } catch (error) {
      await log.close()
      throw error
    }
  }

  /** Checks visibility before claiming: a claim repairs the log and reveals its owner. */
  async claim(scope: Scope, sessionId: string, options?: ClaimOptions): Promise<Claim> {
    await (await this.open(scope, sessionId)).close()
    return this.#logs.claim(scope, sessionId, options)
  }

  get claimAbandoned(): LogStore['claimAbandoned'] {
    const logs = this.#logs
    if (!logs.claimAbandoned) return undefined
    return (scope, options) => {
      const { isWanted = () => true } = options
      const isMine = (header: Uint8Array): boolean => this.#isVisible(folderIn(header)) && isWanted(header)
      return logs.claimAbandoned?.(scope, { ...options, isWanted: isMine }) ?? Promise.resolve([])
    }
  }

  list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    return this.#logs.list(scope, { ...query, isVisible: this.#onceForEachFolder(query.isVisible) })
  }

  async search(scope: Scope, query: SearchQuery): Promise<SearchHit[]> {
    const { among, place = 'active' } = query
    const visible = [...(await this.#idsIn(scope, place))]
    return this.#logs.search(scope, { ...query, among: new Set(visible.filter((id) => among?.has(id) ?? true)) })
  }

  async placeOf(scope: Scope, sessionId: string): Promise<Place | undefined> {
    const place = await this.#logs.placeOf(scope, sessionId)
    return place !== undefined && (await this.#hasAt(scope, sessionId, place)) ? place : undefined
  }

  storedBytes(scope: Scope, { isVisible }: Pick<SessionQuery, 'isVisible'> = {}): Promise<number> {
    return this.#logs.storedBytes(scope, { isVisible: this.#onceForEachFolder(isVisible) })
  }

  async move(scope: Scope, sessionId: string, place: Place): Promise<void> {
    if ((await this.placeOf(scope, sessionId)) === undefined) throw notFound(sessionId)
    await this.#logs.move(scope, sessionId, place)
  }

  async erase(scope: Scope, sessionId: string): Promise<void> {
    if ((await this.placeOf(scope, sessionId)) === undefined) throw notFound(sessionId)
    await this.#logs.erase(scope, sessionId)
  }

  async check(scope: Scope): Promise<void> {
    await this.#logs.check?.(scope)
  }

  close(): Promise<void> {
    return this.#logs.close()
  }

  /** Only active sessions can be opened; archived and deleted ones are looked up in the list of their place. */
  async #hasAt(scope: Scope, sessionId: string, place: Place): Promise<boolean> {
    if (place !== 'active') return (await this.#idsIn(scope, place)).has(sessionId)
    const log = await this.open(scope, sessionId).catch(unlessNotFound)
    await log?.close()
    return log !== undefined
  }

  async #idsIn(scope: Scope, place: Place): Promise<ReadonlySet<string>> {
    const { sessions } = await this.list(scope, { place, limit: Infinity })
    return new Set(sessions.map(({ id }) => id))
  }

  /** Caches per folder: a list has many sessions in few folders. A view of this view restricts further. */
  #onceForEachFolder(isAlsoVisible: IsVisible = () => true): IsVisible {
    const known = new Map<string | undefined, boolean>()
    return (cwd) => {
      const isVisible = known.get(cwd) ?? (this.#isVisible(cwd) && isAlsoVisible(cwd))
      known.set(cwd, isVisible)
      return isVisible
    }
  }
}

/** Paths of folders have at most a few thousand characters. A longer header names no visible folder. */
const maxHeaderBytes = 64 * 1024
const newline = 10

/** The folder in the header, which is the first line that is not blank; undefined if the header is damaged. */
function folderIn(bytes: Uint8Array): string | undefined {
  const text = firstLineOf(bytes)
  const header = text && parseLine(text)
  const cwd = header?.type === 'line' && header.line.type === 'session' ? header.line['cwd'] : undefined
  return typeof cwd === 'string' ? cwd : undefined
}

function firstLineOf(bytes: Uint8Array): Uint8Array | undefined {
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(newline, at)
    const line = bytes.subarray(at, end === -1 ? undefined : end)
    const text = textOf({ at, bytes: line })
    if (text || end === -1) return text
    at = end + 1
  }
  return undefined
}

function notFound(sessionId: string): SessionError {
  return new SessionError('session-not-found', `There is no session ${sessionId}.`)
}

function unlessNotFound(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'session-not-found') return undefined
  throw error
}
