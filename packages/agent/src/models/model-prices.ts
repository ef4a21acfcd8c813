import type { Usage } from '@tapetree/session'

/** US dollars for a million tokens. */
export interface ModelPrices extends TokenPrices {
  /** The prices of a whole request whose input is longer than this; the highest tier that it reaches applies. */
  tiers?: readonly PriceTier[] | undefined
}

export interface PriceTier extends TokenPrices {
  inputTokensAbove: number
}

interface TokenPrices {
  input: number
  output: number
  /** Default: `input`. */
  cacheRead?: number | undefined
  cacheWrite?: number | undefined
}

export function costAt(prices: ModelPrices, usage: Usage): number {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const { input, output, cacheRead = input, cacheWrite = input } = pricesFor(inputTokens, prices)
  const fresh = Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens)
  return (fresh * input + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite + outputTokens * output) / 1e6
}

function pricesFor(inputTokens: number, prices: ModelPrices): TokenPrices {
  const passed = prices.tiers?.filter(({ inputTokensAbove }) => inputTokens > inputTokensAbove) ?? []
  return passed.reduce<TokenPrices & { inputTokensAbove?: number }>(
    (highest, tier) => (tier.inputTokensAbove > (highest.inputTokensAbove ?? -1) ? tier : highest),
    prices,
  )
}
