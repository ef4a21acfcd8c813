import { ProblemError } from './problem-error.ts'
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

interface GiveUp {
  type: 'give-up'
  reason: ClosedReason
}

export type AfterEnd = GiveUp | { type: 'again'; delayMs: number; failures: number }

/** Decides whether and when to reconnect: 0.5 s doubling to 30 s, with full jitter. */
export function afterEnd(end: ConnectionEnd, failures: number, random: () => number): AfterEnd {
  const reason = finalReason(end.code)
  if (reason) return { type: 'give-up', reason }
  const before = end.attachedMs >= steadyMs ? 0 : failures
  const delayMs = (end.retryAfterMs ?? 0) + random() * Math.min(maxDelayMs, firstDelayMs * 2 ** before)
  return { type: 'again', delayMs, failures: before + 1 }
}

/** Whether the server denies access for good. The answer of a proxy is not a problem of the server and says nothing about it. */
export function afterError(error: unknown): GiveUp | undefined {
  const reason = error instanceof ProblemError && error.type !== 'http' && refusals[error.status]
  return reason ? { type: 'give-up', reason } : undefined
}

const refusals: Record<number, ClosedReason> = { 401: 'unauthorized', 403: 'forbidden', 404: 'gone' }

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

/** The next step for a connection that may be dead: clients are not told when their network is gone. */
type LivenessStep = { type: 'wait'; ms: number } | { type: 'ping' } | { type: 'dead' }

export const liveness = {
  /** Until the socket is open. */
  openMs: 10_000,
  /** Until it is attached: the first frame may be long, and the network slow. */
  attachMs: 30_000,
  pingEveryMs: 15_000,
  /** After this long without a frame, a ping precedes the next command. */
  silenceMs: 20_000,
  /** Without a frame for this long after a ping, the socket is replaced. */
  answerMs: 5_000,
} as const

/** Computes deadlines from times that the caller passes in. */
export class Liveness {
  #heardAt: number
  #pingedAt: number
  /** When a frame must have arrived. */
  #deadline: number | undefined

  constructor(now: number) {
    this.#heardAt = now
    this.#pingedAt = now
    this.#deadline = now + liveness.openMs
  }

  opened(now: number): void {
    this.#deadline = now + liveness.attachMs
  }

  /** Any frame shows that the connection is alive. */
  heard(now: number): void {
    this.#heardAt = now
    this.#deadline = undefined
  }

  pinged(now: number): void {
    this.#pingedAt = now
    this.#deadline ??= now + liveness.answerMs
  }

  isSilent(now: number): boolean {
    return now - this.#heardAt >= liveness.silenceMs
  }

  next(now: number): LivenessStep {
    if (this.#deadline !== undefined) {
      return now >= this.#deadline ? { type: 'dead' } : { type: 'wait', ms: this.#deadline - now }
    }
    const pingAt = this.#pingedAt + liveness.pingEveryMs
    return now >= pingAt ? { type: 'ping' } : { type: 'wait', ms: pingAt - now }
  }
}

/** Calls `wake` when the network changes, or the machine or the page resumes; returns a function that stops it. */
export type WakeUps = (wake: () => void) => () => void

interface Events {
  addEventListener?: (type: string, listener: () => void) => void
  removeEventListener?: (type: string, listener: () => void) => void
}

/** Uses browser events; does nothing elsewhere. */
export const browserWakeUps: WakeUps = (wake) => {
  const page = globalThis as Events & { document?: Events & { visibilityState?: string } }
  const shown = (): void => {
    if (page.document?.visibilityState === 'visible') wake()
  }
  const names = ['online', 'offline', 'pageshow', 'focus']
  for (const name of names) page.addEventListener?.(name, wake)
  page.document?.addEventListener?.('visibilitychange', shown)
  return () => {
    for (const name of names) page.removeEventListener?.(name, wake)
    page.document?.removeEventListener?.('visibilitychange', shown)
  }
}
