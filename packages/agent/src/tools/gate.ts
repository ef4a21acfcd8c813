import type { Access } from './tool.ts'

/** Decides whether a call may run. It may have to ask, and then waits for the answer. */
export interface Gate {
  admit(call: GateCall, signal: AbortSignal): Promise<Verdict>
}

export interface GateCall {
  runId: string
  callId: string
  tool: string
  readOnly: boolean
  input: Record<string, unknown>
  access: readonly Access[]
  /** Why the call cannot work, if it cannot: see `CheckedCall`. */
  preflight?: () => Promise<string | undefined>
}

/** The reason is a sentence for the model. */
export type Verdict = { type: 'allowed' } | { type: 'denied'; reason: string }

export const openGate: Gate = { admit: () => Promise.resolve({ type: 'allowed' }) }
