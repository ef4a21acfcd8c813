import type { SessionHandle } from '@tapetree/client'
import type { SearchHit, SessionInfo, SessionQuery, TreeNode } from '@tapetree/session'

/**
 * What the chat needs beside the one session it shows: other sessions, models, files. There is one for sessions of this process and one for a
 * server, so that the screen is the same for both.
 */
export interface SessionSource {
  /** Opens a session that exists. The handle of the one before is closed by whoever asked for it. */
  open(sessionId: string): Promise<OpenedSession>
  /** Makes a session in the folder that this source works in. */
  create(): Promise<OpenedSession>
  /** A new session with the path to this entry; without one, with everything. */
  fork(sessionId: string, entryId?: string): Promise<OpenedSession>
  list(query: SessionQuery): Promise<SessionInfo[]>
  rename(sessionId: string, name: string): Promise<void>
  /** Of a session that nobody is at: one that is shown, or that runs, is refused. */
  archive(sessionId: string): Promise<void>
  /** Likewise: into the trash, from where it can be brought back. */
  delete(sessionId: string): Promise<void>
  search(text: string): Promise<SearchHit[]>
  models(): Promise<OfferedModel[]>
  /** The whole tree, from its roots. */
  tree(sessionId: string): Promise<TreeNode[]>
  /** Paths below the working folder that match what was typed behind `@`; folders end with `/`. */
  files(query: string): Promise<string[]>
  /** Keeps an image and gives its id, for `imageIds` of a message. */
  keepImage(sessionId: string, image: { bytes: Uint8Array; mediaType: string }): Promise<string>
  close(): Promise<void>
}

export interface OpenedSession {
  readonly handle: SessionHandle
  readonly access: SessionAccess
  /** The folder it works in, where it has one. */
  readonly cwd: string | undefined
}

export type SessionAccess =
  /** This process writes it. */
  | { type: 'owner' }
  /** Another one writes it, and we are a screen of that one. `where` is for people: a process, or the address of a server. */
  | { type: 'attached'; where: string }
  /** Another one writes it and does not answer: commands are refused, and `reason` says who. */
  | { type: 'read-only'; reason: string }

export interface OfferedModel {
  /** `provider/id` */
  reference: string
  provider: string
  modelId: string
  name: string
  contextTokens?: number
  thinkingLevels: readonly string[]
  /** False: there is no key for it. */
  isUsable: boolean
}
