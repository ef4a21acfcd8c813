/** What is to be done about a connection that may be dead: nobody tells a client that its network has gone. */
export type LivenessStep = { type: 'wait'; ms: number } | { type: 'ping' } | { type: 'dead' }

export const liveness = {
  /** Until the socket is open. */
  openMs: 10_000,
  /** Until it is attached: the first frame may be long, and the network slow. */
  attachMs: 30_000,
  pingEveryMs: 15_000,
  /** After so much silence, who sends something asks first. */
  silenceMs: 20_000,
  /** No frame within this long after a ping: a new socket. */
  answerMs: 5_000,
} as const

/** Keeps the times; asks nobody what time it is. */
export class Liveness {
  #heardAt: number
  #pingedAt: number
  /** By when a frame must have come. */
  #deadline: number | undefined

  constructor(now: number) {
    this.#heardAt = now
    this.#pingedAt = now
    this.#deadline = now + liveness.openMs
  }

  opened(now: number): void {
    this.#deadline = now + liveness.attachMs
  }

  /** Any frame is a sign of life. */
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
