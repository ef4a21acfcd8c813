import type { Question, ReadingModel } from '../tools/tool.ts'
import type {
  AddedProvider,
  ExtensionCommand,
  ExtensionTool,
  HookName,
  OwnModelRequest,
  OwnProvider,
} from './extension.ts'
import type { TrustedModules } from './trusted-modules.ts'

/** Where the code of one extension runs: on its own thread, on this one, or in processes. */
export interface Runner {
  readonly name: string
  /** Runs its code until its offer is known. After `stop`, starts over. */
  start(): Promise<Offer>
  /** Returns the unvalidated result. Rejects with `ExtensionFailure`. */
  invoke(invocation: Invocation, call: InvocationCall): Promise<unknown>
  /** Stops all its work; pending invocations reject with this failure. */
  stop(failure: Error): Promise<void>
}

/** The registrations of an extension, without code. */
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
  /** Its index among all handlers of the extension. */
  index: number
  /** Its own time limit, if it has one. */
  limitMs?: number
}

export type Invocation =
  | { type: 'handler'; index: number; event: unknown }
  | { type: 'command'; name: string; args: string }
  | {
      type: 'tool'
      name: string
      input: Record<string, unknown>
      runId: string
      callId: string
      model?: ReadingModel
    }
  | { type: 'model'; provider: string; request: OwnModelRequest }

export interface InvocationCall {
  id: string
  sessionId: string
  cwd: string
  signal: AbortSignal
}

/** A request of an extension's code, during an invocation or at any other time. */
export type ExtensionRequest =
  | { type: 'ask'; question: Question }
  | { type: 'append_entry'; customType: string; data: Record<string, unknown> }
  | { type: 'append_message'; text: string }
  | { type: 'leaf_id' }
  | { type: 'set_label'; entryId: string; label: string }
  | { type: 'labels' }
  | { type: 'set_name'; name: string }
  | { type: 'send'; delivery: 'steer' | 'follow-up'; text: string }
  | { type: 'observe'; text: string }
  /** The next part of a model's output; answered when it was consumed. */
  | { type: 'model_part'; part: unknown }

export type AnswerRequest = (request: ExtensionRequest, invocationId: string | undefined) => Promise<unknown>

/** Start data of an extension's thread. */
export interface WorkerStart {
  /** Absolute. */
  path: string
  name: string
  /** Absent: modules are loaded from disk. */
  modules?: TrustedModules
}

export type ToWorker =
  | { type: 'invoke'; invocation: Invocation; call: Omit<InvocationCall, 'signal'> }
  | { type: 'abort'; id: string }
  | { type: 'answer'; requestId: number; value?: unknown; problem?: string }

export type FromWorker =
  | { type: 'loaded'; offer: Offer }
  | { type: 'not_loaded'; problem: string }
  /** The result is JSON; absent if there is none. */
  | { type: 'result'; id: string; json?: string }
  | { type: 'threw'; id: string; problem: string; errorKind?: string }
  | { type: 'request'; requestId: number; request: ExtensionRequest; invocationId?: string }
