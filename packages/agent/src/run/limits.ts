import type { Usage } from '@tapetree/session'

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

export function limitReached(limit: LimitName, value: number, scope: 'run' | 'session'): RunStopped {
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
export function reachedLimit(limits: Limits, spent: Spent, next: 'request' | 'call'): LimitName | undefined {
  return names.find((name) => {
    const limit = limits[name]
    if (limit === undefined || spent[name] < limit) return false
    // A run at its last turn may still carry out what that turn asked for, and the other way round.
    return next === 'request' ? name !== 'toolCalls' : name !== 'turns'
  })
}
