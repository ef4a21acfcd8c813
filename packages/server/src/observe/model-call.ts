import type { Line, Usage } from '@tapetree/session'

export interface ModelName {
  provider: string
  model: string
}

/** What a line says of a model that was called. */
export interface ModelCall extends ModelName {
  /** Absent where the line tells only what a call used. */
  outcome?: 'ok' | 'aborted' | 'failed'
  tokens: Record<string, number>
  /** In US dollars. */
  cost: number
}

/** Undefined where it says nothing of one. A line that does not name the model is taken to mean the one in use. */
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

/** The model that a driver says it uses. */
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
