import type { Usage } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'

export interface ModelName {
  provider: string
  model: string
}

/** A model call, as recorded by a line. */
export interface ModelCall extends ModelName {
  /** Absent if the line only records usage. */
  outcome?: 'ok' | 'aborted' | 'failed'
  tokens: Record<string, number>
  /** In US dollars. */
  cost: number
}

/** Undefined if the line records no call. A line without a model means the one in use. */
export function modelCallOf(line: Line, inUse: () => ModelName): ModelCall | undefined {
  switch (line.type) {
    case 'message': {
      const { role, provider, model, stopReason, usage } = line.message
      if (role !== 'assistant') return undefined
      const outcome = stopReason === 'aborted' ? 'aborted' : 'ok'
      return { ...named({ provider, model }, inUse), outcome, ...used(usage) }
    }
    case 'attempt':
      return { ...inUse(), outcome: 'failed', ...used(undefined) }
    case 'usage': {
      const { provider, model, tokens } = line.usage
      return { ...named({ provider, model }, inUse), ...used(tokens) }
    }
    default:
      return undefined
  }
}

/** The model that a driver reports. */
export function modelInUse(config: Record<string, unknown>): ModelName {
  const { provider = 'unknown', model_id: model = 'unknown' } = (config['model'] ?? {}) as Record<
    string,
    string | undefined
  >
  return { provider, model }
}

function named(
  { provider, model }: { [Name in keyof ModelName]: string | undefined },
  inUse: () => ModelName,
): ModelName {
  return provider !== undefined && model !== undefined ? { provider, model } : inUse()
}

function used(usage: Usage | undefined): Pick<ModelCall, 'tokens' | 'cost'> {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, cost = 0 } = usage ?? {}
  const tokens = {
    input: inputTokens,
    output: outputTokens,
    cache_read: cacheReadTokens,
    cache_write: cacheWriteTokens,
    reasoning: reasoningTokens,
  }
  const known = Object.entries(tokens).filter((entry): entry is [string, number] => (entry[1] ?? 0) > 0)
  return { tokens: Object.fromEntries(known), cost }
}
