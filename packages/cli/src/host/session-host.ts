import type { AgentProblem, CodingAgentOptions } from '@tapetree/agent'
import { compareSession } from '@tapetree/agent/workspace'
import type { Keyring, SettingsInput } from '@tapetree/agent/settings'
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
import type { WorkspaceSource } from '@tapetree/server/tool-hosts'
import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import type { Comparison } from '@tapetree/session/screen'
import { settledWithin } from '@tapetree/session/util/deadline'
import { systemClock } from '@tapetree/session/util/wait'
import type { Io } from '../command-line/io.ts'
import { placesOf, sandboxPlaceOf } from './places.ts'
import type { OpenedSession } from '../session-source.ts'
import { keyringFor } from './surroundings.ts'
import { claimOrAttach } from './claim-or-attach.ts'
import { followOwner } from './follow-owner.ts'
import type { Traces } from './otlp.ts'
import { socketPathIn } from './runtime-folder.ts'

export interface SessionHostOptions {
  io: Pick<Io, 'env' | 'home'>
  store: SessionStore
  /** The kind of host: only a host of the same kind resumes its interrupted runs. */
  owner: 'terminal' | 'server'
  /** Choices from the command line. */
  flags?: SettingsInput
  /** Choices for one session, beside the flags. Asked when this process opens the session for writing. */
  flagsOf?: (sessionId: string) => SettingsInput | undefined
  /** Options of `tapetree run` only: its own system prompt and the list of tools. */
  agent?: Pick<CodingAgentOptions, 'systemPrompt' | 'toolNames'>
  whenUnanswered?: 'wait' | 'deny'
  /** Defaults to the system clock. */
  keyring?: Keyring
  /** Problems outside the conversation, a sentence each. */
  onProblem?: (problem: { source: string; message: string }) => void
  /** Rejects if a session must not work in a folder. */
  checkFolder?: (cwd: string) => Promise<unknown>
  /** The tool hosts that sessions may use. */
  workspaces?: WorkspaceSource
  observers?: LiveSessionsOptions['observers']
  /** Where the traces of the sessions of this process are sent. */
  traceUrl?: string | undefined
  /** How many entries a screen loads first. */
  window?: number
  clientName?: string
  /** File snapshots of the sessions. Default: those of the user. */
  snapshotsFolder?: string
  /** `listen` also deletes old file snapshots in the background. */
  retainsSnapshots?: boolean
}

/** How long closing waits for the deletion of old file snapshots. */
const retainingMs = 1000
/** How long closing waits for a collector of traces. */
const tracesMs = 2000

/** The sessions that this process owns, and access to those of others. Announces its socket with every session; `listen` opens it. */
export class SessionHost implements AsyncDisposable {
  readonly sessions: LiveSessions
  readonly socketPath: string | undefined
  readonly #options: SessionHostOptions
  readonly #attached = new Map<string, ServerAddress>()
  readonly #traces: Traces | undefined
  readonly #closing = new AbortController()
  /** Sessions that this process has opened for writing before. */
  readonly #openedBefore = new Set<string>()
  /** Sessions of others that are followed until they are closed. */
  readonly #followed = new Set<Promise<void>>()
  #server: Promise<SocketServer> | undefined
  #retaining: Promise<void> | undefined

  private constructor(
    options: SessionHostOptions,
    { socketPath, traces }: { socketPath: string | undefined; traces: Traces | undefined },
  ) {
    const { store } = options
    const observers = [...(options.observers ?? []), ...(traces ? [traces.observe] : [])]
    this.#options = options
    this.#traces = traces
    this.socketPath = socketPath
    this.sessions = new LiveSessions({
      store,
      openDriver: async (sessionId) => {
        // The first to open a session in this process sets its address; the driver shares open sessions.
        await using _announced = await this.#claim(sessionId)
        return await openCodingDriver(sessionId, this.#driverOptions(sessionId))
      },
      create: (newSession) => createCodingSession(store, newSession),
      observers,
      onProblem: ({ sessionId, error }) =>
        options.onProblem?.({ source: `session ${sessionId}`, message: messageOf(error) }),
    })
  }

  static async open(options: SessionHostOptions): Promise<SessionHost> {
    const { runtime } = placesOf(options.io)
    // Without a socket, other screens cannot attach, but everything else works.
    const socketPath = await socketPathIn(runtime).catch((error: unknown) => {
      options.onProblem?.({ source: 'socket', message: messageOf(error) })
      return undefined
    })
    return new SessionHost(options, { socketPath, traces: await tracesOf(options) })
  }

  /** Creates a session and returns its id. */
  async create(newSession: NewSession): Promise<string> {
    return this.sessions.create(newSession)
  }

  /** Creates a session and opens it. If opening fails, for example without a key, moves it to the trash. */
  async openNew(newSession: NewSession): Promise<OpenedSession> {
    const sessionId = await this.create(newSession)
    try {
      return await this.open(sessionId)
    } catch (error) {
      await this.#options.store.delete(sessionId).catch(() => undefined)
      throw error
    }
  }

  /** Opens a session: here, through the process that owns it, or read-only if that process does not answer. */
  async open(sessionId: string): Promise<OpenedSession> {
    const place = await this.#openWhereItIs(sessionId)
    if (place.access.type === 'owner') return place
    const reopen = (): Promise<OpenedSession> => this.#openWhereItIs(sessionId, { patienceMs: 0 })
    const { opened, done } = followOwner(place, { reopen, signal: this.#closing.signal })
    const followed = done.finally(() => this.#followed.delete(followed))
    this.#followed.add(followed)
    return opened
  }

  /** Deletes old file snapshots in the background, at most once a day. */
  retainSnapshots(): void {
    const { io, onProblem } = this.#options
    const { signal } = this.#closing
    this.#retaining ??= import('./retain-snapshots.ts')
      .then(({ retainInBackground }) => retainInBackground(io, signal))
      .catch((error: unknown) => {
        if (!signal.aborted) onProblem?.({ source: 'file snapshots', message: messageOf(error) })
      })
  }

  /** Lets other processes attach. Call it after the first frame. */
  async listen(): Promise<void> {
    if (this.#options.retainsSnapshots) this.retainSnapshots()
    const { socketPath: path, sessions } = this
    if (path === undefined || this.#closing.signal.aborted) return
    this.#server ??= import('./socket-server.ts').then(({ serveSocket }) => serveSocket(sessions, path))
    await this.#server.catch((error: unknown) =>
      this.#options.onProblem?.({ source: 'socket', message: messageOf(error) }),
    )
  }

  /** Compares two entries of a session, with the files at each. Any process of the user may do it. */
  async compare(session: Session, entries: { left: string; right: string }): Promise<Comparison> {
    const folder = session.header?.cwd
    const storesFolder = this.#options.snapshotsFolder ?? placesOf(this.#options.io).workspaces
    return compareSession(session, {
      ...entries,
      ...(folder !== undefined && { files: { folder, storesFolder, diff: {} } }),
    })
  }

  /** Whether a session of this process is running or open on another screen. */
  async isInUse(sessionId: string): Promise<boolean> {
    const live = await this.sessions.peek(sessionId)
    return live !== undefined && !live.isIdle
  }

  /** Moves a session to the archive or the trash, unless it is in use. */
  async putAway(sessionId: string, place: 'archive' | 'trash'): Promise<void> {
    if (await this.isInUse(sessionId)) {
      throw new SessionError('session-busy', `Session ${sessionId} is open. Close it first.`)
    }
    await this.sessions.release(sessionId)
    await (place === 'archive' ? this.#options.store.archive(sessionId) : this.#options.store.delete(sessionId))
    this.sessions.changed(sessionId)
  }

  /** Stores an image where the session is. */
  async keepImage(sessionId: string, image: { bytes: Uint8Array; mediaType: string }): Promise<string> {
    const address = this.#attached.get(sessionId)
    if (address) {
      const blob = new Blob([new Uint8Array(image.bytes)], { type: image.mediaType })
      return (await new RestClient(address).storeImage(sessionId, blob)).id
    }
    const live = await this.sessions.get(sessionId)
    return (await live.session.putBlob(image.bytes)).sha256
  }

  /** Leaves active runs open in the log, to be resumed. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#followed)
    const server = await this.#server?.catch(() => undefined)
    if (server) await server.close()
    else await this.sessions.close()
    await this.#traces?.close(tracesMs)
    // A git command that packs a large store may take longer. The process can exit meanwhile: nothing is lost.
    if (this.#retaining) await settledWithin(this.#retaining, { ms: retainingMs, clock: systemClock })
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
    // Held until the driver has it too, so that no other process can claim it in between.
    await using held = session
    const { id: sessionId } = held
    const handle = await LocalSession.open({ sessions: this.sessions, sessionId, ...this.#screen() }).catch(asProblem)
    this.#attached.delete(sessionId)
    return { handle, access: { type: 'owner' }, cwd: held.header?.cwd }
  }

  async #claim(sessionId: string): Promise<Session> {
    const { socketPath: path } = this
    return this.#options.store.open(sessionId, path === undefined ? {} : { address: `unix:${path}` })
  }

  /** Applies the mode from the command line only once: the user may change it later. */
  #flagsFor(sessionId: string): SettingsInput | undefined {
    const { flags: general, flagsOf } = this.#options
    const own = flagsOf?.(sessionId)
    const flags = own ? { ...general, ...own } : general
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
    const { io, store, owner, agent, whenUnanswered, keyring, onProblem, checkFolder } = this.#options
    const { workspaces } = this.#options
    const flags = this.#flagsFor(sessionId)
    const places = placesOf(io)
    return {
      store,
      owner,
      home: io.home,
      env: io.env,
      ...(flags && { flags }),
      ...agent,
      ...(whenUnanswered && { whenUnanswered }),
      ...(keyring ? { keyring } : keyringFor(io.env)),
      snapshotsFolder: this.#options.snapshotsFolder ?? places.workspaces,
      sandbox: sandboxPlaceOf(places),
      ...(onProblem && { onProblem: (problem) => onProblem(withCommand(problem)) }),
      ...(checkFolder && { checkFolder }),
      ...(workspaces && { workspaces }),
    }
  }
}

/** A collector that is away fails with every batch, which is worth one remark. */
async function tracesOf({ traceUrl, onProblem }: SessionHostOptions): Promise<Traces | undefined> {
  if (traceUrl === undefined) return undefined
  const { openTraces } = await import('./otlp.ts')
  let isSaid = false
  return openTraces(traceUrl, (message) => {
    if (!isSaid) onProblem?.({ source: 'traces', message })
    isSaid = true
  })
}

async function readOnly(
  session: Session,
  screen: { window?: number; onProblem?: (error: unknown) => void },
): Promise<OpenedSession> {
  const reason = session.readOnlyReason ?? 'Another process is writing this session.'
  const handle = await ReadOnlySession.open({ session, reason, ...screen })
  return { handle, access: { type: 'read-only', reason }, cwd: session.header?.cwd }
}

/** Problems of live sessions, as every handle reports them. */
function asProblem(error: unknown): never {
  throw error instanceof ServerProblem ? new ProblemError(error.problem, { cause: error }) : error
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Adds the command that helps. */
function withCommand({ source, message, changedServer }: AgentProblem): { source: string; message: string } {
  if (changedServer === undefined) return { source, message }
  return { source, message: `${message} To review and accept the change: tapetree mcp accept ${changedServer}` }
}
