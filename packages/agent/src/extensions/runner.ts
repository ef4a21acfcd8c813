import type { Question } from '../tools/tool.ts'
import type {
  AddedProvider,
  ExtensionCommand,
  ExtensionTool,
  HookName,
  OwnModelRequest,
  OwnProvider,
} from './extension.ts'
import type { TrustedModules } from './trusted-modules.ts'

/** Where the code of one extension runs: in a thread of its own, in this one, or in processes. */
export interface Runner {
  readonly name: string
  /** Runs its code as far as it takes to know what it offers. Also after `stop`: then it begins anew. */
  start(): Promise<Offer>
  /** Answers with what the code answered, not checked. Rejects with `ExtensionFailure`. */
  invoke(invocation: Invocation, call: InvocationCall): Promise<unknown>
  /** Stops all that it does; whatever was invoked rejects with this failure. */
  stop(failure: Error): Promise<void>
}

/** What an extension has registered, as far as it is no code. */
export interface Offer {
  handlers: readonly OfferedHandler[]
  commands: readonly Omit<ExtensionCommand, 'run'>[]
  tools: readonly Omit<ExtensionTool, 'run'>[]
  providers: readonly (AddedProvider | Omit<OwnProvider, 'stream'>)[]
  skills: readonly string[]
  templates: readonly string[]
}

export interface OfferedHandler {
  hook: HookName
  /** Its place among all handlers of the extension. */
  index: number
  /** Where it has a time limit of its own. */
  limitMs?: number
}

export type Invocation =
  | { type: 'handler'; index: number; event: unknown }
  | { type: 'command'; name: string; args: string }
  | { type: 'tool'; name: string; input: Record<string, unknown>; runId: string; callId: string }
  | { type: 'model'; provider: string; request: OwnModelRequest }

export interface InvocationCall {
  id: string
  sessionId: string
  cwd: string
  signal: AbortSignal
}

/** What the code of an extension wants of us, during an invocation or at any other time. */
export type ExtensionRequest =
  | { type: 'ask'; question: Question }
  | { type: 'append_entry'; customType: string; data: Record<string, unknown> }
  | { type: 'append_message'; text: string }
  | { type: 'observe'; text: string }
  /** What a model says next; the answer comes when it was taken. */
  | { type: 'model_part'; part: unknown }

export type AnswerRequest = (request: ExtensionRequest, invocationId: string | undefined) => Promise<unknown>

/** What the thread of an extension is started with. */
export interface WorkerStart {
  /** Absolute. */
  path: string
  name: string
  /** Absent: modules are loaded from the disk. */
  modules?: TrustedModules
}

export type ToWorker =
  | { type: 'invoke'; invocation: Invocation; call: Omit<InvocationCall, 'signal'> }
  | { type: 'abort'; id: string }
  | { type: 'answer'; requestId: number; value?: unknown; problem?: string }

export type FromWorker =
  | { type: 'loaded'; offer: Offer }
  | { type: 'not_loaded'; problem: string }
  /** The result is JSON, absent where there is none. */
  | { type: 'result'; id: string; json?: string }
  | { type: 'threw'; id: string; problem: string; errorKind?: string }
  | { type: 'request'; requestId: number; request: ExtensionRequest; invocationId?: string }
