import { closeCodes } from './protocol/frames.ts'
import type { ClosedReason } from './session-handle.ts'

/** How a connection ended. */
export interface ConnectionEnd {
  /** Of the socket; 0 where we ended it ourselves. */
  code: number
  reason: string
  /** How long it was attached; 0 where it never was. */
  attachedMs: number
  /** What the server asked for in its `bye`. */
  retryAfterMs?: number
}

export type AfterEnd = { type: 'give-up'; reason: ClosedReason } | { type: 'again'; delayMs: number; failures: number }

/** Whether to connect again after an end, and when: 0.5 s doubling to 30 s, with full jitter. */
export function afterEnd(end: ConnectionEnd, failures: number, random: () => number): AfterEnd {
  const reason = finalReason(end.code)
  if (reason) return { type: 'give-up', reason }
  const before = end.attachedMs >= steadyMs ? 0 : failures
  const delayMs = (end.retryAfterMs ?? 0) + random() * Math.min(maxDelayMs, firstDelayMs * 2 ** before)
  return { type: 'again', delayMs, failures: before + 1 }
}

function finalReason(code: number): ClosedReason | undefined {
  switch (code) {
    case closeCodes.auth:
      return 'unauthorized'
    case closeCodes.origin:
      return 'forbidden'
    case closeCodes.gone:
      return 'gone'
    case closeCodes.replaced:
      return 'replaced'
    default:
      return undefined
  }
}

const firstDelayMs = 500
const maxDelayMs = 30_000
/** One that held for this long is no failure: what cuts it is met with the first delay again. */
const steadyMs = 5_000
