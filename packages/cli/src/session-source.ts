import type { SessionHandle, Choice } from '@tapetree/client'
import type { SearchHit, SessionInfo, SessionQuery } from '@tapetree/session'
import type { Comparison } from '@tapetree/session/screen'
import type { TreeNode } from '@tapetree/session/view'
import { harmlessLine } from './text/harmless.ts'

/**
 * What the chat needs beyond the session it shows: other sessions, models, files. Local sessions and servers each have an implementation,
 * so the screen is the same for both.
 */
export interface SessionSource {
  /** Opens an existing session. The caller closes the handle of the previous one. */
  open(sessionId: string): Promise<OpenedSession>
  /** Creates a session in the folder of this source. */
  create(): Promise<OpenedSession>
  /** Creates a session with the path to this entry; without an entry, with everything. */
  fork(sessionId: string, entryId?: string): Promise<OpenedSession>
  list(query: SessionQuery): Promise<SessionInfo[]>
  rename(sessionId: string, name: string): Promise<void>
  /** Renames a session. Fails if it is open on a screen or running. */
  archive(sessionId: string): Promise<void>
  /** Moves a session to the trash, from which it can be restored. Fails in the same cases. */
  delete(sessionId: string): Promise<void>
  search(text: string): Promise<SearchHit[]>
  models(): Promise<OfferedModel[]>
  /** The whole tree, from its roots. */
  tree(sessionId: string): Promise<TreeNode[]>
  /** Two entries with the files at each, and their diffs. */
  compare(sessionId: string, entries: { left: string; right: string }): Promise<Comparison>
  /** Paths below the working folder that match the text after `@`; folders end with `/`. */
  files(query: string): Promise<string[]>
  /** Stores an image and returns its id, for `imageIds` of a message. */
  keepImage(sessionId: string, image: { bytes: Uint8Array; mediaType: string }): Promise<string>
  readonly jobs: BackgroundJobs
  close(): Promise<void>
}

/** The commands of sessions that run in the background. */
export interface BackgroundJobs {
  /** Each call is a request to a server, which may limit their number. */
  readonly isRemote?: true
  list(sessionId: string): Promise<BackgroundJob[]>
  /** The newest output; undefined if there is no such job. */
  read(sessionId: string, jobId: string): Promise<JobOutput | undefined>
  stop(sessionId: string, jobId: string): Promise<void>
}

export interface BackgroundJob {
  id: string
  command: string
  startedAt: string
  /** `exit code 1`, `stopped`; `running` while it runs. Harmless. */
  state: string
  isRunning: boolean
}

export interface JobOutput {
  job: BackgroundJob
  /** Not yet harmless. */
  text: string
  /** Whether older output was left out. */
  isCut: boolean
}

/** No more of the newest output of a job is read: a screen shows some lines of it, and reads it again and again. */
export const jobOutputBytes = 16 * 1024

export interface OpenedSession {
  readonly handle: SessionHandle
  readonly access: SessionAccess
  /** The working folder of the session, if it has one. */
  readonly cwd: string | undefined
}

export type SessionAccess =
  /** This process writes the session. */
  | { type: 'owner' }
  /**
   * Another process writes the session and this is one of its screens. `where` is text for people: a process, or the address of a server.
   */
  | { type: 'attached'; where: string }
  /** Another process writes the session and does not answer: commands are refused, and `reason` names the process. */
  | { type: 'read-only'; reason: string }

export interface OfferedModel {
  /** `provider/id` */
  reference: string
  provider: string
  modelId: string
  name: string
  contextTokens?: number
  thinkingLevels: readonly string[]
  /** False if there is no key for it. */
  isUsable: boolean
}

export type PermissionMode = NonNullable<Choice['mode']>
type ThinkingLevel = NonNullable<Choice['thinkingLevel']>

/** What the agent may do without asking. A mode of the protocol that is missing here does not compile. */
export const modeMeanings: Readonly<Record<PermissionMode, string>> = {
  ask: 'reads are allowed, everything else asks',
  'accept-edits': 'writing files in the folder is allowed too',
  sandboxed: 'edits too, and commands in a sandbox; leaving it asks',
  plan: 'only reads, until you accept a plan',
  auto: 'everything is allowed unless a rule denies it',
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

/** How long a model thinks before it answers; each model supports some of these levels. */
export const thinkingLevels = Object.keys(levels) as readonly ThinkingLevel[]

interface KnownJob extends Pick<BackgroundJob, 'id' | 'command' | 'startedAt'> {
  status: string
  exit?: { cause: string; code: number | null; signal: string | null } | undefined
}

/** A job of this machine or of a server, as the chat shows it. */
export function backgroundJob({ id, command, startedAt, status, exit }: KnownJob): BackgroundJob {
  const state = status === 'ended' && exit ? exitText(exit) : status
  return { id, command, startedAt, state: harmlessLine(state), isRunning: status === 'running' }
}

function exitText({ cause, code, signal }: NonNullable<KnownJob['exit']>): string {
  if (cause !== 'exited') return cause.replace('-', ' ')
  return signal === null ? `exit code ${code}` : `ended by ${signal}`
}
