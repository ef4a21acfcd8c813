import type { Usage } from '@tapetree/session'

/** US dollars for a million tokens. */
export interface ModelPrices {
  input: number
  output: number
  /** As `input` where absent. */
  cacheRead?: number
  cacheWrite?: number
}

export function costAt(prices: ModelPrices, usage: Usage): number {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const { input, output, cacheRead = input, cacheWrite = input } = prices
  const fresh = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  return (fresh * input + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite + outputTokens * output) / 1e6
}
