import type { ListSessionsRequest, ListSessionsResponse, McpServer } from '@agentclientprotocol/sdk/unstable'
import { RestClient, type ServerAddress, type SessionHandle } from '@tapetree/client'
import { relative } from 'node:path'
import { usageFailure } from '../command-line/failure.ts'
import { offeredModel } from '../host/remote-source.ts'
import type { OfferedModel } from '../session-source.ts'
import type { Editor } from './editor.ts'
import { EditorSession, keptEntries } from './editor-session.ts'
import { EditorSessions, requireAbsolute } from './editor-sessions.ts'

export interface ServedSessionsOptions {
  editor: Editor
  editorName: string
  /** Requests have the rights of the editor's token. */
  address: ServerAddress
  openSession: (options: { sessionId: string; clientName: string; window: number }) => Promise<SessionHandle>
}

/** Each has a copy of its last entries in memory. */
const maxOpen = 32
/** A larger file is shown without the text that it replaces. */
const maxFileBytes = 1024 * 1024
const pageSize = 50

/** Sessions of a server, which checks each request and each command against the token of the editor. */
export class ServedSessions extends EditorSessions {
  readonly #options: ServedSessionsOptions
  readonly #rest: RestClient
  /** Sessions that the editor has created; undefined while one is being opened. */
  readonly #made = new Map<string, EditorSession | undefined>()
  /** Sessions that are being opened. */
  #opening = 0

  constructor(options: ServedSessionsOptions) {
    super()
    this.#options = options
    this.#rest = new RestClient(options.address)
  }

  async create({ cwd, mcpServers }: { cwd: string; mcpServers: readonly McpServer[] }): Promise<EditorSession> {
    requireAbsolute(cwd)
    const { id } = await this.#rest.createSession({ cwd })
    this.#made.set(id, undefined)
    try {
      const session = await this.#openSession(id, { cwd, mcpServers })
      this.#made.set(id, session)
      return session
    } catch (error) {
      this.#made.delete(id)
      await this.#discard(id)
      throw error
    }
  }

  async open(sessionId: string, mcpServers: readonly McpServer[] = []): Promise<EditorSession> {
    const { cwd } = await this.#rest.session(sessionId)
    return this.#openSession(sessionId, { cwd, mcpServers })
  }

  async fork(sessionId: string, mcpServers: readonly McpServer[] = []): Promise<EditorSession> {
    const { id, cwd } = await this.#rest.fork(sessionId)
    try {
      return await this.#openSession(id, { cwd, mcpServers })
    } catch (error) {
      // The editor does not know the copy, and cannot delete it.
      await this.#rest.deleteSession(id).catch(() => undefined)
      throw error
    }
  }

  async list({ cwd, cursor, archived }: ListSessionsRequest): Promise<ListSessionsResponse> {
    const isArchived = archived === 'only'
    const page = await this.#rest.sessions({
      limit: pageSize,
      ...(isArchived && { place: 'archive' as const }),
      ...(cwd != null && { cwd }),
      ...(cursor != null && { cursor }),
    })
    const sessions = page.sessions.flatMap(({ id: sessionId, name, firstText, cwd: folder, modified, subagent }) => {
      if (folder === undefined || subagent) return []
      const title = name === '' ? firstText : name
      const put = isArchived ? { archived: true } : {}
      return [{ sessionId, cwd: folder, updatedAt: modified, ...put, ...(title !== undefined && { title }) }]
    })
    return { sessions, ...(page.cursor !== undefined && { nextCursor: page.cursor }) }
  }

  async rename(sessionId: string, name: string): Promise<void> {
    await this.#rest.patchSession(sessionId, { name })
  }

  async putAway(sessionId: string, place: 'archive' | 'trash'): Promise<void> {
    await this.end(sessionId)
    this.#made.delete(sessionId)
    await (place === 'archive' ? this.#rest.archive(sessionId) : this.#rest.deleteSession(sessionId))
  }

  override async closeAll(): Promise<void> {
    const unused = [...this.#made].filter(([, session]) => !session || isUnused(session))
    await super.closeAll()
    for (const [id] of unused) await this.#discard(id)
  }

  /** Unless another client has used it. */
  async #discard(sessionId: string): Promise<void> {
    try {
      const { messageCount, status } = await this.#rest.session(sessionId)
      if (messageCount === 0 && status === 'idle') await this.#rest.deleteSession(sessionId)
    } catch {
      // The server may be shutting down. A session that stays does no harm.
    }
  }

  async #openSession(
    sessionId: string,
    { cwd = '/', mcpServers }: { cwd: string | undefined; mcpServers: readonly McpServer[] },
  ): Promise<EditorSession> {
    const isOther = this.find(sessionId) === undefined
    if (isOther && this.openIds.length + this.#opening >= maxOpen)
      throw usageFailure(`A connection holds at most ${maxOpen} sessions. Close one with session/close first.`)
    this.#opening++
    try {
      const { editor, editorName, openSession } = this.#options
      const models = await this.#models()
      const handle = await openSession({ sessionId, clientName: editorName, window: keptEntries })
      const session = new EditorSession({
        editor,
        opened: { handle, access: { type: 'attached', where: 'the server' }, cwd },
        cwd,
        models,
        notices: mcpServers.length > 0 ? [serversNotice] : [],
        keepImage: async ({ bytes, mediaType }) => {
          const image = new Blob([new Uint8Array(bytes)], { type: mediaType })
          return (await this.#rest.storeImage(sessionId, image)).id
        },
        stored: {
          image: async (sha256) => new Uint8Array(await (await this.#rest.blob(sessionId, sha256)).arrayBuffer()),
          file: (path) => this.#fileText(sessionId, relative(cwd, path)),
        },
      })
      await this.keep(session)
      return session
    } finally {
      this.#opening--
    }
  }

  async #models(): Promise<OfferedModel[]> {
    return (await this.#rest.models()).models.map(offeredModel)
  }

  /** Undefined as well if the token may not read it, or it is outside of the session's folder. */
  async #fileText(sessionId: string, path: string): Promise<string | undefined> {
    const file = await this.#rest.file(sessionId, { path, limit: maxFileBytes }).catch(() => undefined)
    return file?.type === 'text' && file.nextOffset === null ? file.content : undefined
  }
}

function isUnused({ isUsed, handle }: EditorSession): boolean {
  return !isUsed && (handle.state('presence')?.length ?? 0) <= 1
}

const serversNotice =
  'The MCP servers of the editor are not started for sessions of a server. Configure them in the settings of the server.'
