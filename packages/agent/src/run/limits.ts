import type { Usage, ToolUse, Session } from '@tapetree/session'
import type { ToolOutput } from '../tools/tool.ts'
import type { Clock } from '@tapetree/session/util/wait'

/** How much a run, or the whole session, may use. A missing member means no limit. */
export interface Limits {
  turns?: number
  toolCalls?: number
  /** Input and output tokens, as the provider counts them. */
  tokens?: number
  /** In US dollars. */
  cost?: number
  wallMs?: number
  /** Bytes that one turn may add to the log. */
  logBytesPerTurn?: number
}

export type LimitName = keyof Limits

export type Spent = Required<Limits>

export const nothingSpent: Spent = { turns: 0, toolCalls: 0, tokens: 0, cost: 0, wallMs: 0, logBytesPerTurn: 0 }

const names: readonly LimitName[] = ['turns', 'toolCalls', 'tokens', 'cost', 'wallMs', 'logBytesPerTurn']

/** The tokens that count towards a limit. */
export function tokensOf({ totalTokens, inputTokens = 0, outputTokens = 0 }: Usage): number {
  return totalTokens ?? inputTokens + outputTokens
}

/**
 * Thrown before a request or call that exceeds a limit. The run ends with this reason, and can be continued from there.
 */
export class RunStopped extends Error {
  override readonly name = 'RunStopped'
  /** `limit:turns` and the like, or `repeating-calls`. */
  readonly reason: string

  constructor(reason: string, message: string) {
    super(message)
    this.reason = reason
  }
}

function limitReached(limit: LimitName, value: number, scope: 'run' | 'session'): RunStopped {
  return new RunStopped(`limit:${limit}`, `The ${scope} has reached its limit of ${value} ${unitOf[limit]}.`)
}

const unitOf: Record<LimitName, string> = {
  turns: 'turns',
  toolCalls: 'tool calls',
  tokens: 'tokens',
  cost: 'US dollars',
  wallMs: 'milliseconds',
  logBytesPerTurn: 'bytes written in one turn',
}

/** The first limit that leaves no room for another request or call. */
function reachedLimit(limits: Limits, spent: Spent, next: 'request' | 'call'): LimitName | undefined {
  return names.find((name) => {
    const limit = limits[name]
    if (limit === undefined || spent[name] < limit) return false
    // A run at its turn limit may still run the calls of that turn. A run at its call limit may still make a request.
    return next === 'request' ? name !== 'toolCalls' : name !== 'turns'
  })
}

const allowedRepeats = 3
const allowedRefusals = 3

/** Detects a model that repeats the same call with the same result. The count is lost when the process ends. */
export class Repetition {
  #last = ''
  #lastResult = ''
  #count = 0
  #refusals = 0

  /** Why this call is not run again: it ran several times in a row with the same result. */
  refusal(call: ToolUse): string | undefined {
    if (keyOf(call) !== this.#last || this.#count < allowedRepeats) return undefined
    this.#refusals++
    return (
      `Not run: the same call was made ${this.#count} times in a row, with the same result each time. ` +
      `Do something else, or say what prevents you from continuing.`
    )
  }

  /** Records the result of a call. */
  answered(call: ToolUse, output: ToolOutput): void {
    if (this.#refusals > 0 && keyOf(call) === this.#last) return
    const result = JSON.stringify(output.content)
    const isRepeat = keyOf(call) === this.#last && result === this.#lastResult
    this.#count = isRepeat ? this.#count + 1 : 1
    if (!isRepeat) this.#refusals = 0
    this.#last = keyOf(call)
    this.#lastResult = result
  }

  /** Throws if refusals have not stopped the repetition. */
  check(): void {
    if (this.#refusals < allowedRefusals) return
    throw new RunStopped(
      'repeating-calls',
      `The model makes the same call again and again: ${this.#last.slice(0, 200)}`,
    )
  }
}

function keyOf({ name, input }: ToolUse): string {
  return `${name} ${JSON.stringify(input)}`
}

interface SpendingOptions {
  session: Session
  clock: Clock
  limits: { run: Limits; session: Limits }
  /** What the run used before its process died. */
  spent?: Spent | undefined
  /** Calls that are in the log and have not run yet. */
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

  /** Counts a request or a call. Throws `RunStopped` if a limit leaves no room for it. */
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
    // The calls of an answer are in the log before they run, so the calls of this run are counted here.
    const toolCalls = this.#callsBefore + this.#run.toolCalls
    return { turns, toolCalls, tokens, cost, wallMs: runMs + wallMs, logBytesPerTurn }
  }
}
