import {
  systemKeyring,
  type AgentProblem,
  type CodingAgentOptions,
  type Keyring,
  type SettingsInput,
} from '@tapetree/agent'
import { ProblemError, RestClient, type ServerAddress } from '@tapetree/client'
import {
  createCodingSession,
  LiveSessions,
  LocalSession,
  openCodingDriver,
  RequestProblem as ServerProblem,
  ReadOnlySession,
  type LiveSessionsOptions,
  type NewSession,
  type SocketServer,
} from '@tapetree/server'
import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import type { Io } from '../command-line/io.ts'
import { placesOf } from './places.ts'
import type { OpenedSession } from '../session-source.ts'
import { claimOrAttach } from './claim-or-attach.ts'
import { followOwner } from './follow-owner.ts'
import { socketPathIn } from './runtime-folder.ts'

export interface SessionHostOptions {
  io: Pick<Io, 'env' | 'home'>
  store: SessionStore
  /** What hosts the sessions: runs that it leaves in the middle are taken up by the same kind. */
  owner: 'terminal' | 'server'
  /** What was said on the command line. */
  flags?: SettingsInput
  /** What only a run says: a system prompt of its own, and which tools there are. */
  agent?: Pick<CodingAgentOptions, 'systemPrompt' | 'toolNames'>
  whenNobodyAnswers?: 'wait' | 'deny'
  /** That of the system, unless it is said otherwise. */
  keyring?: Keyring
  /** What went wrong beside the conversation, a sentence each. */
  onProblem?: (problem: { source: string; message: string }) => void
  /** Rejects where a session must not work in a folder. */
  checkFolder?: (cwd: string) => Promise<unknown>
  observers?: LiveSessionsOptions['observers']
  /** How many entries a screen begins with. */
  window?: number
  clientName?: string
}

/**
 * The sessions that this process owns, and the way to those that others own. Its socket is announced with every session, and opened
 * by `listen`.
 */
export class SessionHost implements AsyncDisposable {
  readonly sessions: LiveSessions
  readonly socketPath: string | undefined
  readonly #options: SessionHostOptions
  readonly #attached = new Map<string, ServerAddress>()
  readonly #closing = new AbortController()
  /** Sessions that this process has opened for writing before. */
  readonly #openedBefore = new Set<string>()
  /** Sessions of others that are looked after until they are closed. */
  readonly #followed = new Set<Promise<void>>()
  #server: Promise<SocketServer> | undefined

  private constructor(options: SessionHostOptions, socketPath: string | undefined) {
    const { store, observers } = options
    this.#options = options
    this.socketPath = socketPath
    this.sessions = new LiveSessions({
      store,
      openDriver: async (sessionId) => {
        // The first to open a session in this process says where it answers; the driver shares what was opened.
        await using _announced = await this.#claim(sessionId)
        return await openCodingDriver(sessionId, this.#driverOptions(sessionId))
      },
      create: (newSession) => createCodingSession(store, newSession),
      ...(observers && { observers }),
      onProblem: ({ sessionId, error }) =>
        options.onProblem?.({ source: `session ${sessionId}`, message: messageOf(error) }),
    })
  }

  static async open(options: SessionHostOptions): Promise<SessionHost> {
    const { runtime } = placesOf(options.io)
    // Without a socket nobody else can attach; that is no reason not to work.
    const socketPath = await socketPathIn(runtime).catch((error: unknown) => {
      options.onProblem?.({ source: 'socket', message: messageOf(error) })
      return undefined
    })
    return new SessionHost(options, socketPath)
  }

  /** Makes a session and gives its id. */
  async create(newSession: NewSession): Promise<string> {
    return this.sessions.create(newSession)
  }

  /** Makes a session and opens it. If it cannot be opened, as for want of a key, it goes to the trash. */
  async openNew(newSession: NewSession): Promise<OpenedSession> {
    const sessionId = await this.create(newSession)
    try {
      return await this.open(sessionId)
    } catch (error) {
      await this.#options.store.delete(sessionId).catch(() => undefined)
      throw error
    }
  }

  /** Opens a session: here, at the process that owns it, or to be read where that one does not answer. */
  async open(sessionId: string): Promise<OpenedSession> {
    const place = await this.#openWhereItIs(sessionId)
    if (place.access.type === 'owner') return place
    const reopen = (): Promise<OpenedSession> => this.#openWhereItIs(sessionId, { patienceMs: 0 })
    const { opened, done } = followOwner(place, { reopen, signal: this.#closing.signal })
    const followed = done.finally(() => this.#followed.delete(followed))
    this.#followed.add(followed)
    return opened
  }

  /** Lets other processes attach. Costs nothing to a screen that is painted before. */
  async listen(): Promise<void> {
    const { socketPath: path, sessions } = this
    if (path === undefined || this.#closing.signal.aborted) return
    this.#server ??= import('./socket-server.ts').then(({ serveSocket }) => serveSocket(sessions, path))
    await this.#server.catch((error: unknown) =>
      this.#options.onProblem?.({ source: 'socket', message: messageOf(error) }),
    )
  }

  /** Whether a session of this process is at work, or somebody else looks at it. */
  async isInUse(sessionId: string): Promise<boolean> {
    const live = await this.sessions.peek(sessionId)
    return live !== undefined && !live.isIdle
  }

  /** Into the archive or the trash, where nobody is at it. */
  async putAway(sessionId: string, place: 'archive' | 'trash'): Promise<void> {
    if (await this.isInUse(sessionId)) {
      throw new SessionError('session-busy', `Session ${sessionId} is open, and is put away when it is closed.`)
    }
    await this.sessions.release(sessionId)
    await (place === 'archive' ? this.#options.store.archive(sessionId) : this.#options.store.delete(sessionId))
    this.sessions.changed(sessionId)
  }

  /** Keeps an image where the session is. */
  async keepImage(sessionId: string, image: { bytes: Uint8Array; mediaType: string }): Promise<string> {
    const address = this.#attached.get(sessionId)
    if (address) {
      const blob = new Blob([new Uint8Array(image.bytes)], { type: image.mediaType })
      return (await new RestClient(address).storeImage(sessionId, blob)).id
    }
    const live = await this.sessions.get(sessionId)
    return (await live.session.putBlob(image.bytes)).sha256
  }

  /** Runs that go on are left open in the log, to be resumed. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#followed)
    const server = await this.#server?.catch(() => undefined)
    if (server) await server.close()
    else await this.sessions.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #openWhereItIs(sessionId: string, patience: { patienceMs?: number } = {}): Promise<OpenedSession> {
    const claim = (): Promise<Session> => this.#claim(sessionId)
    const found = await claimOrAttach({ claim, ...patience, ...this.#screen() })
    switch (found.type) {
      case 'here':
        return this.#openHere(found.session)
      case 'there': {
        const { handle, owner, address, cwd } = found
        this.#attached.set(sessionId, address)
        return { handle, access: { type: 'attached', where: `process ${owner.process ?? 'unknown'}` }, cwd }
      }
      case 'read-only':
        return readOnly(found.session, this.#screen())
      default:
        return found satisfies never
    }
  }

  async #openHere(session: Session): Promise<OpenedSession> {
    // Held until the driver has it too: nobody can take it in between.
    await using held = session
    const { id: sessionId } = held
    const handle = await LocalSession.open({ sessions: this.sessions, sessionId, ...this.#screen() }).catch(asProblem)
    this.#attached.delete(sessionId)
    return { handle, access: { type: 'owner' }, cwd: held.header?.cwd }
  }

  async #claim(sessionId: string): Promise<Session> {
    const { socketPath: socket } = this
    return this.#options.store.open(sessionId, socket === undefined ? {} : { socket })
  }

  /** The mode of the command line is for the first time only: after that the user may have chosen another one. */
  #flagsFor(sessionId: string): SettingsInput | undefined {
    const { flags } = this.#options
    const isFirst = !this.#openedBefore.has(sessionId)
    this.#openedBefore.add(sessionId)
    if (!flags?.permissions || isFirst) return flags
    const { mode: _mode, ...permissions } = flags.permissions
    return { ...flags, permissions }
  }

  #screen(): { client: { kind: string; name?: string }; window?: number; onProblem?: (error: unknown) => void } {
    const { window, owner, clientName, onProblem } = this.#options
    return {
      client: { kind: owner, ...(clientName !== undefined && { name: clientName }) },
      ...(window !== undefined && { window }),
      ...(onProblem && { onProblem: (error) => onProblem({ source: 'screen', message: messageOf(error) }) }),
    }
  }

  #driverOptions(sessionId: string): Parameters<typeof openCodingDriver>[1] {
    const {
      io,
      store,
      owner,
      agent,
      whenNobodyAnswers,
      keyring = systemKeyring(),
      onProblem,
      checkFolder,
    } = this.#options
    const flags = this.#flagsFor(sessionId)
    return {
      store,
      owner,
      home: io.home,
      env: io.env,
      ...(flags && { flags }),
      ...agent,
      ...(whenNobodyAnswers && { whenNobodyAnswers }),
      keyring,
      ...(onProblem && { onProblem: (problem) => onProblem(withCommand(problem)) }),
      ...(checkFolder && { checkFolder }),
    }
  }
}

async function readOnly(
  session: Session,
  screen: { window?: number; onProblem?: (error: unknown) => void },
): Promise<OpenedSession> {
  const reason = session.readOnlyReason ?? 'Another process is writing this session.'
  const handle = await ReadOnlySession.open({ session, reason, ...screen })
  return { handle, access: { type: 'read-only', reason }, cwd: session.header?.cwd }
}

/** Problems of live sessions, as every handle tells them. */
function asProblem(error: unknown): never {
  throw error instanceof ServerProblem ? new ProblemError(error.problem, { cause: error }) : error
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Names the command that helps. */
function withCommand({ source, message, changedServer }: AgentProblem): { source: string; message: string } {
  if (changedServer === undefined) return { source, message }
  return { source, message: `${message} To see the change and accept it: tapetree mcp accept ${changedServer}` }
}
