/**
 * When a lease ends at the latest, as this process knows it. It ends here before it ends in the database: it counts from
 * the time at which a sign of life was sent, and the clocks of two machines differ a little in their pace.
 */
export class LeaseEnd {
  readonly #steady: number
  readonly #wall: number

  /** Of a lease that a sign of life renews that is sent now. */
  constructor(leaseMs: number) {
    this.#steady = performance.now() + share * leaseMs
    this.#wall = Date.now() + share * leaseMs
  }

  /** Both clocks count: one may stand still while a machine sleeps, and the other one can be set. */
  get isPast(): boolean {
    return performance.now() >= this.#steady || Date.now() >= this.#wall
  }
}

const share = 0.95
