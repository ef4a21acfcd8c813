import type { TrustedModules } from './trusted-modules.ts'
import type { ExtensionRequest, Invocation, InvocationCall, Offer } from './runner.ts'

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
