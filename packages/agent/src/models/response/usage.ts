import type { LanguageModelV4Usage } from '@ai-sdk/provider'
import type { Usage } from '@tapetree/session'
import type { ReportedCost } from '../hosts.ts'

/** How a host counts, where hosts differ. */
export interface UsageRules {
  reasoningTokens?: 'inside' | 'beside' | undefined
  cost?: ReportedCost | undefined
}

/**
 * `inputTokens` includes tokens read from a cache or written to it, `outputTokens` includes reasoning. `cost` is what the host
 * says that it charges, and is absent if it does not say.
 */
export function usageOf(usage: LanguageModelV4Usage, rules: UsageRules = {}): Usage {
  const { inputTokens: input, outputTokens: output } = usage
  const raw = asRecord(usage.raw)
  const promptDetails = asRecord(raw['prompt_tokens_details'])
  const reasoning = output.reasoning || numberIn(raw['reasoning_tokens']) || output.reasoning
  const outputTotal = outputOf({ total: output.total, reasoning, raw, rules })
  const total =
    input.total === undefined && outputTotal === undefined ? undefined : (input.total ?? 0) + (outputTotal ?? 0)
  return {
    ...count('inputTokens', input.total),
    ...count('outputTokens', outputTotal),
    ...count(
      'cacheReadTokens',
      input.cacheRead || numberIn(raw['prompt_cache_hit_tokens']) || numberIn(raw['cached_tokens']) || input.cacheRead,
    ),
    ...count('cacheWriteTokens', input.cacheWrite ?? numberIn(promptDetails['cache_write_tokens'])),
    ...count('reasoningTokens', reasoning),
    ...count('totalTokens', total),
    ...count('cost', rules.cost && costIn(raw, rules.cost)),
  }
}

/** Chat Completions hosts count reasoning inside completion tokens or beside them; their total tells which. */
function outputOf({
  total,
  reasoning = 0,
  raw,
  rules,
}: {
  total: number | undefined
  reasoning: number | undefined
  raw: Record<string, unknown>
  rules: UsageRules
}): number | undefined {
  const [prompt, completion, sum] = [raw['prompt_tokens'], raw['completion_tokens'], raw['total_tokens']].map(numberIn)
  if (completion === undefined || reasoning === 0) return total
  const isBeside =
    sum === undefined ? rules.reasoningTokens === 'beside' : sum === (prompt ?? 0) + completion + reasoning
  return isBeside ? completion + reasoning : total
}

const ticksPerDollar = 1e10

function costIn(raw: Record<string, unknown>, place: ReportedCost): number | undefined {
  switch (place) {
    case 'usage.cost_in_usd_ticks': {
      const ticks = numberIn(raw['cost_in_usd_ticks'])
      return ticks === undefined ? undefined : ticks / ticksPerDollar
    }
    case 'usage.cost.total_cost':
      return numberIn(asRecord(raw['cost'])['total_cost'])
    case 'usage.cost': {
      const cost = numberIn(raw['cost'])
      // With the user's own key at the upstream provider, `cost` is the fee alone.
      const upstream = raw['is_byok'] === true ? numberIn(asRecord(raw['cost_details'])['upstream_inference_cost']) : 0
      return cost === undefined ? undefined : cost + (upstream ?? 0)
    }
    default:
      place satisfies never
      return undefined
  }
}

function count(name: keyof Usage, value: number | undefined): Usage {
  return value === undefined ? {} : { [name]: value }
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
