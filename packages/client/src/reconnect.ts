import { closeCodes } from './protocol/frames.ts'
import type { ClosedReason } from './session-handle.ts'

/** How a connection ended. */
export interface ConnectionEnd {
  /** Close code of the socket; 0 if this client ended it. */
  code: number
  reason: string
  /** How long it was attached; 0 if it never was. */
  attachedMs: number
  /** The delay that the server requested in its `bye`. */
  retryAfterMs?: number
}

export type AfterEnd = { type: 'give-up'; reason: ClosedReason } | { type: 'again'; delayMs: number; failures: number }

/** Decides whether and when to reconnect: 0.5 s doubling to 30 s, with full jitter. */
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
/** A connection that lasted this long is not a failure: the delay starts over. */
const steadyMs = 5_000
