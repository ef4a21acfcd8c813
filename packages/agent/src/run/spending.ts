import type { Session, Usage } from '@tapetree/session'
import type { Clock } from '../util/clock.ts'
import { limitReached, nothingSpent, reachedLimit, tokensOf, type Limits, type Spent } from './limits.ts'

export interface SpendingOptions {
  session: Session
  clock: Clock
  limits: { run: Limits; session: Limits }
  /** What the run had used before the process that began it died. */
  spent?: Spent | undefined
  /** Calls that are in the log and have yet to be run. */
  callsToRun?: number | undefined
}

/** What a run has used, and whether there is room for more. */
export class Spending {
  readonly #session: Session
  readonly #limits: SpendingOptions['limits']
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #run: Spent
  readonly #callsBefore: number

  constructor({ session, clock, limits, spent = nothingSpent, callsToRun = 0 }: SpendingOptions) {
    this.#session = session
    this.#limits = limits
    this.#clock = clock
    this.#startedAt = clock.now() - spent.wallMs
    this.#run = { ...spent }
    this.#callsBefore = session.totals.toolCalls - spent.toolCalls - callsToRun
  }

  /** Counts a request or a call; throws where there is no room for it. */
  spend(next: 'request' | 'call'): void {
    this.#run.wallMs = this.#clock.now() - this.#startedAt
    this.#check('run', this.#run, next)
    this.#check('session', this.#inSession(), next)
    if (next === 'call') this.#run.toolCalls++
    else this.#beginTurn()
  }

  addUsage(usage: Usage): void {
    this.#run.tokens += tokensOf(usage)
    this.#run.cost += usage.cost ?? 0
  }

  addLogBytes(count: number): void {
    this.#run.logBytesPerTurn += count
  }

  #beginTurn(): void {
    this.#run.turns++
    this.#run.logBytesPerTurn = 0
  }

  #check(scope: 'run' | 'session', spent: Spent, next: 'request' | 'call'): void {
    const limits = this.#limits[scope]
    const limit = reachedLimit(limits, spent, next)
    if (limit) throw limitReached(limit, limits[limit] as number, scope)
  }

  #inSession(): Spent {
    const { turns, runMs, tokens, cost } = this.#session.totals
    const { wallMs, logBytesPerTurn } = this.#run
    // The calls of an answer are in the log before they are run, so those of this run are counted here.
    const toolCalls = this.#callsBefore + this.#run.toolCalls
    return { turns, toolCalls, tokens, cost, wallMs: runMs + wallMs, logBytesPerTurn }
  }
}
