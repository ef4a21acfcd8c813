import type { Message, ToolUse } from '@tapetree/session'
import type { ModelLimits, ModelPart, ModelRequest } from '../models/model.ts'
import type { ProviderAddition } from '../models/registry/provider-additions.ts'
import type { Answer, Question, ToolOutput } from '../tools/tool.ts'
import type { AgentStart, BeforeCompact, TurnEvent } from '../run/hooks.ts'

/** The default export of a module that extends the agent. It registers all that it has before it returns. */
export type Extension = (api: ExtensionApi) => void | Promise<void>

export interface ExtensionApi {
  /** As problems name it. */
  readonly name: string
  registerCommand(command: ExtensionCommand): void
  registerTool(tool: ExtensionTool): void
  registerProvider(provider: ExtensionProvider): void
  /** A folder whose folders are skills. A relative path begins at the working folder. */
  registerSkills(folder: string): void
  /** A folder whose Markdown files are templates. */
  registerTemplates(folder: string): void
  /** Handlers of one hook run in the order in which they were added; each sees what the one before it has made. */
  on<Name extends HookName>(hook: Name, handler: Handler<Name>): void
  /** Keeps something in the session that the model does not see. Resolves when it is durable. */
  appendEntry(customType: string, data: Record<string, unknown>): Promise<void>
  /** Says something that the model sees from its next request on. */
  appendMessage(text: string): Promise<void>
  /** Asks the user. The time that takes is not counted. */
  ask(question: Question): Promise<Answer>
}

/** What a handler is told. All of it is a copy. */
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

/** What a handler may answer; nothing where it has nothing to say. */
export interface HookResults {
  sessionStart: void
  sessionEnd: void
  /** The whole system prompt; a message that the model sees beside that of the user. */
  beforeAgentStart: { systemPrompt?: string; message?: string } | void
  turnStart: void
  turnEnd: void
  /** `block` is a sentence for the model; `input` takes the place of the whole input. */
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
  /** Empty where no session is open. */
  readonly sessionId: string
  readonly cwd: string
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal
}

/** `/name arguments` */
export interface ExtensionCommand {
  name: string
  description: string
  /** `args` is what was typed behind the name. */
  run: (args: string, context: HandlerContext) => CommandResult | Promise<CommandResult>
}

/** `say` is shown to the user; `prompt` is sent to the agent in the place of the command. */
export type CommandResult = { say?: string; prompt?: string } | void

export interface ExtensionTool {
  name: string
  description: string
  /** JSON Schema of an object. Inputs that do not fit never reach `run`. */
  inputSchema: Record<string, unknown>
  /** It changes nothing: it may run beside others, and in mode `plan`. */
  readOnly?: boolean
  /** Whether it may be run again when it was running in a process that died. Default: `never`. */
  replay?: 'safe' | 'never'
  /** Default: ten minutes. */
  deadlineMs?: number
  /** Members of the input that name what is touched. Without them nothing is known of the tool, and the user is asked. */
  access?: readonly ToolAccess[]
  run: (
    input: Record<string, unknown>,
    context: ExtensionToolContext,
  ) => string | ToolOutput | Promise<string | ToolOutput>
}

/** `input` is the name of the member that holds a path, an address or a command. One that the input lacks touches nothing. */
export interface ToolAccess {
  type: 'read' | 'write' | 'fetch' | 'command'
  input: string
}

export interface ExtensionToolContext extends HandlerContext {
  readonly runId: string
  readonly callId: string
  /** Live output, for whoever watches. */
  observe: (text: string) => void
  /** Asks the user and waits for the answer, through a restart if need be. */
  ask: (question: Question) => Promise<Answer>
}

export type ExtensionProvider = AddedProvider | OwnProvider

/** A server that speaks one of the known formats: what the settings could say of it. */
export interface AddedProvider extends ProviderAddition {
  id: string
}

/** A provider that the extension speaks to itself. */
export interface OwnProvider {
  id: string
  models: readonly { id: string; limits: ModelLimits }[]
  /** One call. An error with a `kind` of `ModelError` is handled as that kind. */
  stream: (request: OwnModelRequest, context: HandlerContext) => AsyncIterable<ModelPart>
}

export interface OwnModelRequest extends ModelRequest {
  modelId: string
}
