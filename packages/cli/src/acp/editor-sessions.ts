import type { ListSessionsRequest, ListSessionsResponse, McpServer } from '@agentclientprotocol/sdk/unstable'
import { isAbsolute } from 'node:path'
import { usageFailure } from '../command-line/failure.ts'
import type { EditorSession } from './editor-session.ts'

/** The sessions of one connection to an editor, on this machine or on a server. */
export abstract class EditorSessions {
  readonly #open = new Map<string, EditorSession>()
  #isClosed = false

  abstract create(options: { cwd: string; mcpServers: readonly McpServer[] }): Promise<EditorSession>
  abstract open(sessionId: string, mcpServers?: readonly McpServer[]): Promise<EditorSession>
  /** Copies the session, and opens the copy. */
  abstract fork(sessionId: string, mcpServers?: readonly McpServer[]): Promise<EditorSession>
  abstract list(query: ListSessionsRequest): Promise<ListSessionsResponse>
  abstract rename(sessionId: string, name: string): Promise<void>
  /** Ends the session in this editor and moves it. */
  abstract putAway(sessionId: string, place: 'archive' | 'trash'): Promise<void>

  /** The session, which the editor must have opened. */
  get(sessionId: string): EditorSession {
    const session = this.find(sessionId)
    if (!session) throw usageFailure(`Session ${sessionId} is not open on this connection.`)
    return session
  }

  /** Closes it in this editor. Other screens keep it. */
  async close(sessionId: string): Promise<void> {
    const session = this.find(sessionId)
    this.#open.delete(sessionId)
    await session?.close()
  }

  /** Cancels the prompts of the editor, and closes the session in it. */
  async end(sessionId: string): Promise<void> {
    await this.find(sessionId)?.endPrompts()
    await this.close(sessionId)
  }

  /** Leaves active runs open in the log, to be resumed. */
  async closeAll(): Promise<void> {
    this.#isClosed = true
    for (const id of [...this.#open.keys()]) await this.close(id)
  }

  protected find(sessionId: string): EditorSession | undefined {
    return this.#open.get(sessionId)
  }

  protected get openIds(): readonly string[] {
    return [...this.#open.keys()]
  }

  /** Replaces the one that the editor had open. Closes the session and rejects if the editor has disconnected. */
  protected async keep(session: EditorSession): Promise<void> {
    if (this.#isClosed) {
      await session.close()
      throw new Error('The connection to the editor is closed.')
    }
    const { sessionId } = session.handle
    const replaced = this.find(sessionId)
    this.#open.set(sessionId, session)
    await replaced?.close()
  }
}

export function requireAbsolute(cwd: string): void {
  if (!isAbsolute(cwd)) throw usageFailure(`The folder ${JSON.stringify(cwd)} is not absolute.`)
}
