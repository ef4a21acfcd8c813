import {
  memoryStore,
  type Cause,
  type ModelReference,
  type Session,
  type SessionStore,
  type WaitingMessage,
} from '@tapetree/session'
import type { PromptImage } from '../prompt/compose-message.ts'
import { foreignApi, type ForeignAgent } from '../run/foreign-agent.ts'
import type { RunDeps } from '../run/run-deps.ts'
import type { Run } from '../run/run-slot.ts'
import type { Clock } from '@tapetree/session/util/wait'
import type { Hooks } from '../run/hooks.ts'
import { ModelError, type Model, type ThinkingLevel } from '../models/model.ts'
import type { GatePolicy } from '../permissions/gate.ts'
import type { PermissionMode } from '../permissions/modes.ts'
import type { Requests } from '../permissions/requests.ts'
import type { Rule } from '../permissions/rules.ts'
import type { RedactionPolicy, Redactor } from '@tapetree/redact'
import type { Gate, Tool } from '../tools/tool.ts'
import type { CommandSandbox } from '../tools/commands/command.ts'
import type { Jobs } from '../tools/commands/jobs.ts'
import type { Expansion } from '../prompt/expand.ts'
import { onlyModel, type ModelSource } from './model-choice.ts'
import type { RunSettings } from '../run/run-settings.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { RemoteWorkspace } from '../tool-host/remote-workspace.ts'
import type { WorkspaceSnapshots } from '../workspace/workspace-snapshots.ts'

/** A value, or a function that is called each time the value is needed. */
export type OrFunction<T> = T | (() => T)

/** Options of `AgentSession.open`. Only a model is required. */
export interface AgentSessionOptions {
  /** Default: a new store in memory. */
  store?: SessionStore
  /** The session to open. Default: a new session. */
  sessionId?: string
  /** Creates the session `sessionId` if it does not exist. */
  create?: boolean
  /** The kind of its host, such as `server` or `terminal`. Automatic recovery resumes only runs of its own kind. */
  owner?: string
  /** Base of relative paths, absolute. Default: the current folder of the process. */
  cwd?: string
  /**
   * The model of a session that has not used one yet: a model, or the name of one in `models`. Default: the first
   * choice of `models`.
   */
  model?: Model | ModelReference
  /** All models the session may use. Default: only `model`. */
  models?: ModelSource
  thinkingLevel?: ThinkingLevel
  /** Makes titles. Without it the title is the beginning of the first prompt. */
  smallModel?: { provider: string; modelId: string }
  /** Replaces a provider that is overloaded, or whose quota is exhausted. */
  fallbackModel?: { provider: string; modelId: string }
  /** Default: the tools of a coding agent. A function is called before each run. */
  tools?: readonly Tool[] | ((context: ToolsContext) => readonly Tool[])
  /** False: omits the tool `task`. */
  hasSubagents?: boolean
  /** A function is called before each run. */
  systemPrompt?: OrFunction<string>
  /** The permission policy. Default: mode `ask`, without rules. */
  policy?: OrFunction<Partial<Omit<GatePolicy, 'mode'>>>
  /** Explicitly chosen: recorded in the log, and wins over the mode recorded there when `open` opens the session. */
  mode?: PermissionMode
  /** For a session whose log has no mode. Default: `ask`. */
  defaultMode?: PermissionMode
  /** A recorded mode that is wider is narrowed to this one when the session is opened. */
  maxMode?: PermissionMode
  /**
   * The sandbox for commands in mode `sandboxed`. It is opened when the mode is first used. Without it, or if it does not work, that mode
   * is like `ask`.
   */
  sandbox?: () => Promise<Sandbox>
  /** The tools that need files work in a folder of another machine. `cwd` is that folder. */
  remote?: RemoteWorkspace
  /** Replaces the permission gate. */
  gate?: Gate | ((requests: Requests) => Gate)
  /** `deny`: nobody can answer, so permission requests are refused, and questions of tools stay without an answer. Default: both stay pending. */
  whenUnanswered?: 'wait' | 'deny'
  /** Stores rules for later sessions of this project. Without it, the user can allow something for the session only. */
  keepRules?: (rules: readonly Rule[]) => Promise<void>
  /** A function is called before each run. */
  settings?: OrFunction<Partial<RunSettings>>
  /** Expands the typed text: skills, templates, commands of extensions. */
  expand?: (typed: string) => Promise<Expansion>
  hooks?: Hooks
  /** Changes in the environment since the model was last told. */
  environmentChanges?: () => Promise<string | undefined>
  /** Errors of language servers in files that calls change. */
  diagnostics?: RunDeps['diagnostics']
  /** Works instead of a model, which is then not needed. */
  foreign?: ForeignAgent
  /** Prepended to the commands that the user runs. */
  shellPrefix?: string
  /** Redacts the log, the screens and the requests. Default: keys of known formats, and secrets of the environment. */
  redactor?: Redactor
  clock?: Clock
  /** Records the files of `cwd` around the calls that may change them, in this folder, so that they can be put back. */
  snapshotsFolder?: string
}

export interface ToolsContext {
  session: Session
  jobs: Jobs
  /** The redaction policy of the session, for tools that write to disk themselves. */
  redaction: RedactionPolicy
  /** For `bash`: the sandbox of the session, if it has one. */
  sandbox?: CommandSandbox
}

export interface PromptOptions extends Partial<Pick<RunSettings, 'temperature' | 'maxOutputTokens'>> {
  /** False: the typed text is sent unchanged. */
  expandTemplates?: boolean
  images?: readonly PromptImage[]
  /** Hashes of images that are already blobs of the session. */
  imageIds?: readonly string[]
  /** What to do during a run. Default: `queue`. */
  whenBusy?: 'queue' | 'steer' | 'reject'
  /**
   * The origin of the prompt, such as `interactive` or the name of an extension. It is the client of the cause if none
   * is given.
   */
  source?: string
  cause?: Cause
}

/** The outcome of a prompt. `runId` is the run that it started, or the one it waits for. */
export type PromptOutcome =
  | { type: 'started'; runId: string; run: Run }
  | { type: 'steered' | 'queued'; runId: string | null; message: WaitingMessage }
  /** It was a command of an extension: nothing was sent to the model. */
  | { type: 'handled'; runId: null; say: string | undefined }

/** The options with every value as a function, and a store. */
export interface ResolvedOptions extends Omit<AgentSessionOptions, 'model'> {
  /** Of the parent of a subagent: the log of the parent has the changes of both. */
  parentFiles?: WorkspaceSnapshots
  store: SessionStore
  models: ModelSource
  model?: ModelReference
  tools?: (context: ToolsContext) => readonly Tool[]
  systemPrompt?: () => string
  policy?: () => Partial<Omit<GatePolicy, 'mode'>>
  gate?: (requests: Requests) => Gate
  settings?: () => Partial<RunSettings>
}

export function resolveOptions(options: AgentSessionOptions): ResolvedOptions {
  const { model, tools, systemPrompt, policy, gate, settings, ...rest } = options
  return {
    ...rest,
    store: options.store ?? memoryStore(),
    models: modelsOf(options),
    ...(model && { model: 'modelId' in model ? model : { provider: model.provider, modelId: model.id } }),
    ...(tools && { tools: toFunction(tools) }),
    ...(systemPrompt !== undefined && { systemPrompt: toFunction(systemPrompt) }),
    ...(policy && { policy: toFunction(policy) }),
    ...(gate && { gate: toFunction(gate) }),
    ...(settings && { settings: toFunction(settings) }),
  }
}

function toFunction<T extends object | string, Context = void>(
  option: T | ((context: Context) => T),
): (context: Context) => T {
  return typeof option === 'function' ? (option as (context: Context) => T) : () => option
}

function modelsOf({ model, models, foreign }: AgentSessionOptions): ModelSource {
  if (foreign) return onlyModel(foreignModel(foreign.name))
  if (!model || 'modelId' in model) {
    if (!models) throw new TypeError('A session needs a model. Pass `model`, or `models` to choose from.')
    return models
  }
  const own = onlyModel(model)
  if (!models) return own
  const isOwn = (provider: string, modelId: string): boolean => provider === model.provider && modelId === model.id
  return {
    open: (provider, modelId) => (isOwn(provider, modelId) ? own : models).open(provider, modelId),
    choices: async () => {
      const others = (await models.choices()).filter(({ provider, modelId }) => !isOwn(provider, modelId))
      return [...(await own.choices()), ...others]
    },
  }
}

/** Stands for a foreign agent in lists, and in the log. */
function foreignModel(name: string): Model {
  return {
    provider: foreignApi,
    id: name,
    api: foreignApi,
    limits: { contextTokens: Number.MAX_SAFE_INTEGER, outputTokens: Number.MAX_SAFE_INTEGER },
    prepare: () => {
      throw new ModelError('invalid-request', `The agent ${name} has its own context, which cannot be summarized here.`)
    },
  }
}
