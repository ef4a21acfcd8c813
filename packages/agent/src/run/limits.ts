import type { Usage, ToolUse, Session } from '@tapetree/session'
import type { ToolOutput } from '../tools/tool.ts'
import type { Clock } from '@tapetree/session/util/wait'

/** How much a run, or the whole session, may use. What is absent has no limit. */
export interface Limits {
  turns?: number
  toolCalls?: number
  /** Input and output, as the provider counts them. */
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

/** As a limit counts them. */
export function tokensOf({ totalTokens, inputTokens = 0, outputTokens = 0 }: Usage): number {
  return totalTokens ?? inputTokens + outputTokens
}

/** Thrown before a request or a call that is not to be made. The run ends with that reason, and can be continued from there. */
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
  return new RunStopped(`limit:${limit}`, `The ${scope} has reached its limit of ${value} ${words[limit]}.`)
}

const words: Record<LimitName, string> = {
  turns: 'turns',
  toolCalls: 'tool calls',
  tokens: 'tokens',
  cost: 'US dollars',
  wallMs: 'milliseconds',
  logBytesPerTurn: 'bytes written in one turn',
}

/** The first limit that leaves no room for another request, or another call. */
function reachedLimit(limits: Limits, spent: Spent, next: 'request' | 'call'): LimitName | undefined {
  return names.find((name) => {
    const limit = limits[name]
    if (limit === undefined || spent[name] < limit) return false
    // A run at its last turn may still carry out what that turn asked for, and the other way round.
    return next === 'request' ? name !== 'toolCalls' : name !== 'turns'
  })
}

const allowedRepeats = 3
const allowedRefusals = 3

/** Notices a model that makes the same call over and over and learns nothing from it. Forgotten when the process ends. */
export class Repetition {
  #last = ''
  #lastResult = ''
  #count = 0
  #refusals = 0

  /** Says why this call is not run again: it was, with the same result, several times in a row. */
  refusal(call: ToolUse): string | undefined {
    if (keyOf(call) !== this.#last || this.#count < allowedRepeats) return undefined
    this.#refusals++
    return (
      `Not run: the same call was made ${this.#count} times in a row, with the same result each time. ` +
      `Do something else, or say what keeps you from going on.`
    )
  }

  /** Takes in the result of a call. */
  answered(call: ToolUse, output: ToolOutput): void {
    if (this.#refusals > 0 && keyOf(call) === this.#last) return
    const result = JSON.stringify(output.content)
    const isRepeat = keyOf(call) === this.#last && result === this.#lastResult
    this.#count = isRepeat ? this.#count + 1 : 1
    if (!isRepeat) this.#refusals = 0
    this.#last = keyOf(call)
    this.#lastResult = result
  }

  /** Throws when refusing has not helped. */
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
