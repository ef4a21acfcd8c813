import { SessionError, type SessionStore } from '@tapetree/session'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'
import type { LiveSession } from './live-session.ts'
import type { LiveSessions, NewSession } from './live-sessions.ts'

/** The sessions that a caller can reach: all of its tenant, or those inside of its folder. */
export type ReachableSessions = Pick<
  LiveSessions,
  'store' | 'clientIds' | 'opened' | 'reserve' | 'create' | 'get' | 'peek' | 'changed' | 'onChange' | 'release'
>

export interface SessionsInsideOptions {
  /** The view of the store that has only the visible sessions. */
  store: SessionStore
  /** Decides by the folder of a session. */
  isVisible: (cwd: string | undefined) => boolean
  /** Opens a visible session, unless a limit forbids it. */
  open: (sessionId: string) => Promise<LiveSession>
  /** Rejects if a limit forbids another live session. */
  reserve: () => Promise<Disposable>
}

/** A view of live sessions that has only the visible ones. All others behave like unknown ids. */
export class SessionsInside implements ReachableSessions {
  readonly store: SessionStore
  readonly #all: LiveSessions
  readonly #isVisible: SessionsInsideOptions['isVisible']
  readonly #open: SessionsInsideOptions['open']
  readonly reserve: SessionsInsideOptions['reserve']

  constructor(all: LiveSessions, { store, isVisible, open, reserve }: SessionsInsideOptions) {
    this.#all = all
    this.store = store
    this.#isVisible = isVisible
    this.#open = open
    this.reserve = reserve
  }

  get clientIds(): LiveSessions['clientIds'] {
    return this.#all.clientIds
  }

  get opened(): LiveSession[] {
    return this.#all.opened.filter((live) => this.#shows(live))
  }

  create(options: NewSession): Promise<string> {
    if (this.#isVisible(options.cwd)) return this.#all.create(options)
    const detail = 'The folder of the new session is outside of the folder of the token.'
    return Promise.reject(new RequestProblem(403, 'outside-roots', detail))
  }

  async get(sessionId: string): Promise<LiveSession> {
    if (!(await this.#has(sessionId))) throw new SessionError('session-not-found', `There is no session ${sessionId}.`)
    return this.#open(sessionId)
  }

  async peek(sessionId: string): Promise<LiveSession | undefined> {
    const live = await this.#all.peek(sessionId)
    return live && this.#shows(live) ? live : undefined
  }

  changed(sessionId: string): void {
    this.#all.changed(sessionId)
  }

  /** Remembers the visible ids, so that it also reports sessions that are gone by now. */
  onChange(listener: (sessionId: string) => void): () => void {
    const known = this.#visibleIds()
    known.catch(emitWarning)
    const tell = async (sessionId: string): Promise<void> => {
      const ids = await known
      if (!ids.has(sessionId) && !(await this.#has(sessionId))) return
      ids.add(sessionId)
      listener(sessionId)
    }
    return this.#all.onChange((sessionId) => void tell(sessionId).catch(emitWarning))
  }

  async release(sessionId: string): Promise<void> {
    if (await this.#has(sessionId)) await this.#all.release(sessionId)
  }

  #shows({ session }: LiveSession): boolean {
    return this.#isVisible(session.header?.cwd)
  }

  async #has(sessionId: string): Promise<boolean> {
    const live = await this.#all.peek(sessionId)
    if (live) return this.#shows(live)
    try {
      await (await this.store.open(sessionId, { readOnly: true })).close()
      return true
    } catch (error) {
      if (error instanceof SessionError && error.code === 'session-not-found') return false
      throw error
    }
  }

  async #visibleIds(): Promise<Set<string>> {
    const places = ['active', 'archive', 'trash'] as const
    const pages = await Promise.all(places.map((place) => this.store.list({ place, limit: Infinity })))
    return new Set(pages.flatMap(({ sessions }) => sessions.map(({ id }) => id)))
  }
}
