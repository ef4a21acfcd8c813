/** The next step for a connection that may be dead: clients are not told when their network is gone. */
export type LivenessStep = { type: 'wait'; ms: number } | { type: 'ping' } | { type: 'dead' }

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
