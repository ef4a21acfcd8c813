import type { Message, ToolUse } from '@tapetree/session'
import type { ModelLimits, ModelPart, ModelRequest } from '../models/model.ts'
import type { ProviderAddition } from '../models/registry/provider-additions.ts'
import type { Answer, Question, ReadingModel, ToolOutput } from '../tools/tool.ts'
import type { AgentStart, BeforeCompact, TurnEvent } from '../run/hooks.ts'

/** The default export of a module that extends the agent. It registers everything before it returns. */
export type Extension = (api: ExtensionApi) => void | Promise<void>

export interface ExtensionApi {
  /** The name in problem reports. */
  readonly name: string
  registerCommand(command: ExtensionCommand): void
  registerTool(tool: ExtensionTool): void
  registerProvider(provider: ExtensionProvider): void
  /** A folder that contains skill folders. Relative to the working folder. */
  registerSkills(folder: string): void
  /** A folder whose Markdown files are templates. */
  registerTemplates(folder: string): void
  /** Handlers of one hook run in registration order; each receives the result of the previous one. */
  on<Name extends HookName>(hook: Name, handler: Handler<Name>): void
  /** Stores data in the session that the model does not see. Resolves when it is durable. */
  appendEntry(customType: string, data: Record<string, unknown>): Promise<void>
  /** Adds a message that the model sees from its next request on. */
  appendMessage(text: string): Promise<void>
  /** The last entry of the conversation, such as one just appended; null if it has none. In a `toolResult` handler, that is before the result. */
  leafId(): Promise<string | null>
  /** Labels an entry of the session, such as `needs_review`. An empty label removes it. */
  setLabel(entryId: string, label: string): Promise<void>
  /** All labeled entries, on every branch. */
  labels(): Promise<{ entryId: string; label: string }[]>
  /** Names the session. */
  setSessionName(name: string): Promise<void>
  /** Sends a message before the next request. Calls that have not started are skipped. If nothing runs, it starts a run. */
  steer(text: string): Promise<void>
  /** Sends a message after the run. If nothing runs, it starts a run. */
  followUp(text: string): Promise<void>
  /** Asks the user. The waiting time does not count towards limits. */
  ask(question: Question): Promise<Answer>
}

/** The events of handlers. All values are copies. */
export interface HookEvents {
  sessionStart: { sessionId: string }
  sessionEnd: { sessionId: string }
  beforeAgentStart: AgentStart
  turnStart: TurnEvent
  turnEnd: TurnEvent
  toolCall: { call: ToolUse }
  toolResult: { call: ToolUse; output: ToolOutput }
  context: { messages: Message[] }
  beforeCompact: BeforeCompact
}

/** The results of handlers; void for no change. */
export interface HookResults {
  sessionStart: void
  sessionEnd: void
  /** The complete text in place of that of the user; the complete system prompt; a message that the model sees beside that of the user. */
  beforeAgentStart: { prompt?: string; systemPrompt?: string; message?: string } | void
  /** The complete system prompt for the rest of the run; a message that the model sees from its next request on. */
  turnStart: { systemPrompt?: string; message?: string } | void
  turnEnd: { systemPrompt?: string; message?: string } | void
  /** `block` is a sentence for the model; `input` replaces the complete input. */
  toolCall: { block: string } | { input: Record<string, unknown> } | void
  toolResult: Partial<ToolOutput> | void
  context: { messages: Message[] } | void
  beforeCompact: { cancel: true } | { instructions: string } | void
}

export type HookName = keyof HookEvents

export type Handler<Name extends HookName> = (
  event: HookEvents[Name],
  context: HandlerContext,
) => HookResults[Name] | Promise<HookResults[Name]>

export interface HandlerContext {
  /** Empty if no session is open. */
  readonly sessionId: string
  readonly cwd: string
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal
}

/** `/name arguments` */
export interface ExtensionCommand {
  name: string
  description: string
  /** `args` is the text after the name. */
  run: (args: string, context: HandlerContext) => CommandResult | Promise<CommandResult>
}

/** `say` is shown to the user; `prompt` is sent to the agent instead of the command. */
export type CommandResult = { say?: string; prompt?: string } | void

export interface ExtensionTool {
  name: string
  description: string
  /** JSON Schema of an object. Invalid inputs never reach `run`. */
  inputSchema: Record<string, unknown>
  /** It changes nothing: it may run concurrently with others, and in mode `plan`. */
  readOnly?: boolean
  /** Whether it may run again if its process died. Default: `never`. */
  replay?: 'safe' | 'never'
  /** Default: ten minutes. */
  deadlineMs?: number
  /** Members of the input that name what is touched. Without them the user is asked. */
  access?: readonly ToolAccess[]
  run: (
    input: Record<string, unknown>,
    context: ExtensionToolContext,
  ) => string | ToolOutput | Promise<string | ToolOutput>
}

/** `input` is the member that holds a path, an address or a command. A missing member touches nothing. */
export interface ToolAccess {
  type: 'read' | 'write' | 'fetch' | 'command'
  input: string
}

export interface ExtensionToolContext extends HandlerContext {
  readonly runId: string
  readonly callId: string
  /** The model that reads the result. */
  readonly model?: ReadingModel
  /** Live output, for observers. */
  observe: (text: string) => void
  /** Asks the user and waits for the answer, across a restart if necessary. */
  ask: (question: Question) => Promise<Answer>
}

export type ExtensionProvider = AddedProvider | OwnProvider

/** A server with a known wire format, as the settings could describe it. */
export interface AddedProvider extends ProviderAddition {
  id: string
}

/** A provider that the extension calls itself. */
export interface OwnProvider {
  id: string
  models: readonly { id: string; limits: ModelLimits }[]
  /** One call. An error with a `kind` of `ModelError` is handled as that kind. */
  stream: (request: OwnModelRequest, context: HandlerContext) => AsyncIterable<ModelPart>
}

export interface OwnModelRequest extends ModelRequest {
  modelId: string
}
