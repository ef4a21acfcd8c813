import type { ListSessionsRequest, ListSessionsResponse, McpServer } from '@agentclientprotocol/sdk/unstable'
import type { SettingsInput } from '@tapetree/agent/settings'
import type { SessionStore } from '@tapetree/session'
import { stat } from 'node:fs/promises'
import { usageFailure } from '../command-line/failure.ts'
import type { Io } from '../command-line/io.ts'
import { changeSession } from '../host/claim-or-attach.ts'
import { offeredModels } from '../host/local-source.ts'
import { openStore } from '../host/open-store.ts'
import { placesOf } from '../host/places.ts'
import { SessionHost } from '../host/session-host.ts'
import { surroundingsOf, type Surroundings } from '../host/surroundings.ts'
import type { OfferedModel, OpenedSession } from '../session-source.ts'
import { readRegularFile } from '../util/read-regular-file.ts'
import type { Editor } from './editor.ts'
import { EditorSession, keptEntries } from './editor-session.ts'
import { EditorSessions, requireAbsolute } from './editor-sessions.ts'

export interface LocalSessionsOptions {
  io: Pick<Io, 'env' | 'home' | 'stderr'>
  editor: Editor
  editorName: string
  /** Choices from the command line. */
  flags: SettingsInput
  /** The model of new sessions, as typed. */
  model: string | undefined
  /** Moves a session that was never used to the trash. */
  discardUnused: (store: SessionStore, sessionId: string) => Promise<boolean>
}

/** A larger file is shown without the text that it replaces. */
const maxFileBytes = 1024 * 1024
const pageSize = 50

/** Sessions that belong to this process, or to others of the user that it attaches to. */
export class LocalSessions extends EditorSessions {
  readonly #options: LocalSessionsOptions
  readonly #store: SessionStore
  readonly #host: SessionHost
  readonly #made = new Set<string>()
  readonly #servers: Map<string, SettingsInput>

  private constructor(
    options: LocalSessionsOptions,
    parts: { store: SessionStore; host: SessionHost; servers: Map<string, SettingsInput> },
  ) {
    super()
    this.#options = options
    this.#store = parts.store
    this.#host = parts.host
    this.#servers = parts.servers
  }

  static async start(options: LocalSessionsOptions): Promise<LocalSessions> {
    const { io, editorName, flags } = options
    const store = await openStore(placesOf(io))
    const servers = new Map<string, SettingsInput>()
    const host = await SessionHost.open({
      io,
      store,
      owner: 'terminal',
      flags,
      flagsOf: (sessionId) => servers.get(sessionId),
      window: keptEntries,
      clientName: editorName,
      retainsSnapshots: true,
      // Editors keep what an agent writes to stderr in a log.
      onProblem: ({ source, message }) => void io.stderr.write(`${source}: ${message}\n`),
    })
    return new LocalSessions(options, { store, host, servers })
  }

  async create({ cwd, mcpServers }: { cwd: string; mcpServers: readonly McpServer[] }): Promise<EditorSession> {
    requireAbsolute(cwd)
    if (!(await stat(cwd).catch(() => undefined))?.isDirectory())
      throw usageFailure(`The folder ${JSON.stringify(cwd)} does not exist.`)
    const around = await this.#surroundings(cwd)
    const { model: typed } = this.#options
    const found = typed === undefined ? undefined : await around.registry.find(typed)
    const model = found && { provider: found.provider, modelId: found.id }
    const sessionId = await this.#host.create({ cwd, ...(model && { model }) })
    this.#made.add(sessionId)
    try {
      return await this.#openSession(sessionId, { mcpServers, models: offeredModels(around.registry) })
    } catch (error) {
      await this.#discard(sessionId)
      throw error
    }
  }

  async open(sessionId: string, mcpServers: readonly McpServer[] = []): Promise<EditorSession> {
    return this.#openSession(sessionId, { mcpServers })
  }

  async fork(sessionId: string, mcpServers: readonly McpServer[] = []): Promise<EditorSession> {
    await using session = await this.#store.open(sessionId, { readOnly: true })
    return await this.#openSession(await session.copyAll(), { mcpServers })
  }

  async list({ cwd, cursor, archived }: ListSessionsRequest): Promise<ListSessionsResponse> {
    const place = archived === 'only' ? 'archive' : 'active'
    const page = await this.#store.list({
      place,
      limit: pageSize,
      ...(cwd != null && { cwd }),
      ...(cursor != null && { cursor }),
    })
    const sessions = page.sessions.flatMap(({ id: sessionId, name, firstText, cwd: folder, modified, subagent }) => {
      if (folder === undefined || subagent) return []
      const title = name === '' ? firstText : name
      const isArchived = place === 'archive' ? { archived: true } : {}
      return [{ sessionId, cwd: folder, updatedAt: modified, ...isArchived, ...(title !== undefined && { title }) }]
    })
    return { sessions, ...(page.cursor !== undefined && { nextCursor: page.cursor }) }
  }

  async rename(sessionId: string, name: string): Promise<void> {
    const open = this.find(sessionId)
    if (open) await open.handle.run('rename', { name })
    else
      await changeSession<unknown>(this.#store, sessionId, {
        here: (session) => session.appendSessionInfo(name),
        there: (handle) => handle.run('rename', { name }),
      })
  }

  async putAway(sessionId: string, place: 'archive' | 'trash'): Promise<void> {
    await this.end(sessionId)
    await this.#host.putAway(sessionId, place)
  }

  /** Leaves active runs open in the log, to be resumed. */
  override async closeAll(): Promise<void> {
    await super.closeAll()
    const inUse = new Set<string>()
    for (const id of this.#made) if (await this.#host.isInUse(id)) inUse.add(id)
    await this.#host.close()
    for (const id of this.#made.difference(inUse)) await this.#discard(id)
    await this.#store.close()
  }

  /** A session that cannot be discarded stays, which does no harm. */
  async #discard(sessionId: string): Promise<void> {
    await this.#options.discardUnused(this.#store, sessionId).catch(() => undefined)
  }

  async #openSession(
    sessionId: string,
    given: { mcpServers: readonly McpServer[]; models?: Promise<OfferedModel[]> },
  ): Promise<EditorSession> {
    const servers = serversOf(given.mcpServers)
    if (servers) this.#servers.set(sessionId, servers)
    const opened = await this.#host.open(sessionId)
    try {
      const cwd = opened.cwd ?? this.#options.io.home
      const models = await (given.models ?? this.#modelsIn(cwd))
      const session = this.#editorSession(opened, { cwd, models })
      await this.keep(session)
      void this.#host.listen()
      return session
    } catch (error) {
      await opened.handle.close()
      throw error
    }
  }

  #editorSession(opened: OpenedSession, place: { cwd: string; models: OfferedModel[] }): EditorSession {
    const { sessionId } = opened.handle
    return new EditorSession({
      editor: this.#options.editor,
      opened,
      ...place,
      keepImage: (image) => this.#host.keepImage(sessionId, image),
      stored: {
        image: async (sha256) => {
          await using session = await this.#store.open(sessionId, { readOnly: true })
          return await session.getBlob(sha256)
        },
        file: readText,
      },
    })
  }

  async #surroundings(cwd: string): Promise<Surroundings> {
    const { io, flags } = this.#options
    return surroundingsOf(io, { cwd, flags })
  }

  async #modelsIn(cwd: string): Promise<OfferedModel[]> {
    return offeredModels((await this.#surroundings(cwd)).registry)
  }
}

async function readText(path: string): Promise<string | undefined> {
  const read = await readRegularFile(path, { maxBytes: maxFileBytes })
  return read.type === 'read' ? read.bytes.toString() : undefined
}

/** The MCP servers that the editor brings, under names that our settings allow. */
function serversOf(servers: readonly McpServer[]): SettingsInput | undefined {
  if (servers.length === 0) return undefined
  return { mcpServers: Object.fromEntries(servers.map((server) => [nameOf(server.name), settingsOf(server)])) }
}

function nameOf(name: string): string {
  const allowed = name
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .slice(0, 32)
    .replaceAll(/^-+|-+$/g, '')
  return allowed === '' ? 'editor' : allowed
}

function settingsOf(server: McpServer): NonNullable<SettingsInput['mcpServers']>[string] {
  if (!('type' in server)) {
    const { command, args, env } = server
    return {
      type: 'stdio',
      command,
      args,
      env: { set: Object.fromEntries(env.map(({ name, value }) => [name, value])) },
    }
  }
  if (server.type === 'http') {
    const { url, headers } = server
    return { type: 'http', url, headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])) }
  }
  throw usageFailure(`The MCP server ${server.name} uses the transport ${server.type}, which is not supported.`)
}
