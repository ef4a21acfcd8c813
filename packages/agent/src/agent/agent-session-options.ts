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

/** The options of an `AgentSession`. Only a store and models are required. */
export interface AgentSessionOptions {
  store: SessionStore
  /** The session to open. Default: a new session. */
  sessionId?: string
  /**
   * The host of the session, such as `server` or `terminal`. A host that resumes runs automatically resumes only those
   * of its own kind.
   */
  owner?: string
  /** The base of relative paths, absolute. Default: the working directory of the process. */
  cwd?: string
  models: ModelSource
  /** For a session that has not used a model yet. Default: the first of the choices. */
  model?: { provider: string; modelId: string }
  thinkingLevel?: ThinkingLevel
  /** Makes titles. Without it the title is the beginning of the first prompt. */
  smallModel?: { provider: string; modelId: string }
  /** Replaces a provider that is overloaded, or whose quota is exhausted. */
  fallbackModel?: { provider: string; modelId: string }
  /** Called before each run. Default: the built-in tools of a coding agent. */
  tools?: (context: ToolsContext) => readonly Tool[]
  /** False: omits the tool `task`. */
  hasSubagents?: boolean
  /** Called before each run. */
  systemPrompt?: () => string
  /** The permission policy. Default: mode `ask`, without rules. */
  policy?: () => Partial<Omit<GatePolicy, 'mode'>>
  /** Explicitly chosen: recorded in the log, and wins over the mode recorded there when `open` opens the session. */
  mode?: PermissionMode
  /** For a session whose log has no mode. Default: `ask`. */
  defaultMode?: PermissionMode
  /** A recorded mode that is wider is narrowed to this one when the session is opened. */
  maxMode?: PermissionMode
  /** Replaces the permission gate. */
  gate?: (requests: Requests) => Gate
  /** What happens to a permission request if no person can answer it. Default: it stays pending. */
  whenUnanswered?: 'wait' | 'deny'
  /** Called before each run. */
  settings?: () => Partial<RunSettings>
  /** Expands the typed text: skills, templates, commands of extensions. */
  expand?: (typed: string) => Promise<Expansion>
  hooks?: Hooks
  /** Changes in the environment since the model was last told. */
  environmentChanges?: () => Promise<string | undefined>
  /** Prepended to the commands that the user runs. */
  shellPrefix?: string
  /** Redacts the log, the screens and the requests. Default: keys of known formats, and secrets of the environment. */
  redactor?: Redactor
  clock?: Clock
}

export interface ToolsContext {
  session: Session
  jobs: Jobs
  /** The redaction policy of the session, for tools that write to disk themselves. */
  redaction: RedactionPolicy
}
