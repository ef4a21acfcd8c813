import type { SessionHandle, Choice } from '@tapetree/client'
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

export type PermissionMode = NonNullable<Choice['mode']>
type ThinkingLevel = NonNullable<Choice['thinkingLevel']>

/** What the agent may do without asking. The protocol has no others: one that is missing here does not compile. */
export const modeMeanings: Readonly<Record<PermissionMode, string>> = {
  ask: 'what only reads passes, the rest is asked',
  'accept-edits': 'writing files in the folder passes too',
  plan: 'only reads, until you accept a plan',
  auto: 'everything passes that no rule forbids',
}

export const permissionModes = Object.keys(modeMeanings) as readonly PermissionMode[]

const levels: Readonly<Record<ThinkingLevel, true>> = {
  off: true,
  minimal: true,
  low: true,
  medium: true,
  high: true,
  xhigh: true,
  max: true,
}

/** How long a model thinks before it answers; each model has some of them. */
export const thinkingLevels = Object.keys(levels) as readonly ThinkingLevel[]
