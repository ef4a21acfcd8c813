import type { Session, SessionStore } from '@tapetree/session'
import type { Clock } from '@tapetree/session/util/wait'
import type { Hooks } from '../run/hooks.ts'
import type { ThinkingLevel } from '../models/model.ts'
import type { GatePolicy } from '../permissions/gate.ts'
import type { PermissionMode } from '../permissions/modes.ts'
import type { Requests } from '../permissions/requests.ts'
import type { RedactionPolicy, Redactor } from '@tapetree/redact'
import type { Gate, Tool } from '../tools/tool.ts'
import type { Jobs } from '../tools/commands/jobs.ts'
import type { Expansion } from '../prompt/expand.ts'
import type { ModelSource } from './model-choice.ts'
import type { RunSettings } from '../run/run-settings.ts'

/** What an `AgentSession` is made of. Only a store and models are needed; everything else has a plain default. */
export interface AgentSessionOptions {
  store: SessionStore
  /** Opened where it is given; otherwise a new session is made. */
  sessionId?: string
  /** What hosts it, such as `server` or `terminal`. Whoever takes up runs without being asked takes those of its own kind. */
  owner?: string
  /** Where relative paths begin, absolute. Default: the folder of the process. */
  cwd?: string
  models: ModelSource
  /** For a session that has not used one yet. Default: the first of the choices. */
  model?: { provider: string; modelId: string }
  thinkingLevel?: ThinkingLevel
  /** Gives titles. Without one the first words of the first prompt are the title. */
  smallModel?: { provider: string; modelId: string }
  /** Steps in where the provider is overloaded, or its quota is used up. */
  fallbackModel?: { provider: string; modelId: string }
  /** Read anew before each run. Default: the twelve tools of a coding agent. */
  tools?: (context: ToolsContext) => readonly Tool[]
  /** False: no tool `task`. */
  hasSubagents?: boolean
  /** Read anew before each run. */
  systemPrompt?: () => string
  /** How calls are judged. Default: mode `ask`, and no rules. */
  policy?: () => Partial<Omit<GatePolicy, 'mode'>>
  /** Explicitly chosen: recorded in the log, and wins over the mode recorded there when `open` opens the session. */
  mode?: PermissionMode
  /** For a session whose log has no mode. Default: `ask`. */
  defaultMode?: PermissionMode
  /** A recorded mode that is wider is narrowed to this one when the session is opened. */
  maxMode?: PermissionMode
  /** In the place of the permission gate. */
  gate?: (requests: Requests) => Gate
  /** What is done about a question where nobody is there to answer it. Default: it waits. */
  whenNobodyAnswers?: 'wait' | 'deny'
  /** Read anew before each run. */
  settings?: () => Partial<RunSettings>
  /** Turns what was typed into what is sent: skills, templates, commands of extensions. */
  expand?: (typed: string) => Promise<Expansion>
  hooks?: Hooks
  /** What has changed around the session since it was last told. */
  news?: () => Promise<string | undefined>
  /** Put before the commands that the user runs. */
  shellPrefix?: string
  /** What is kept from the log, the screens and the model. Default: keys as they are known by their shape, and secrets of the environment. */
  redactor?: Redactor
  clock?: Clock
}

export interface ToolsContext {
  session: Session
  jobs: Jobs
  /** That of the session, for tools that write on the disk by themselves. */
  redaction: RedactionPolicy
}
