import type { Clock } from '../../util/clock.ts'
import type { IdleLimits } from '../idle-timeout.ts'
import type { ModelLimits } from '../model.ts'
import type { ModelPrices } from '../model-prices.ts'

export interface ProviderOptions {
  model: string
  /** Taken from the provider's usual environment variable if absent. */
  apiKey?: string
  baseUrl?: string
  headers?: Record<string, string>
  /** What is not given is taken from a small table of known models. */
  limits?: Partial<ModelLimits>
  /** Without prices nothing is known of the cost. */
  prices?: ModelPrices
  /** How long the model may say nothing. */
  idle?: Partial<IdleLimits>
  clock?: Clock
  fetch?: typeof globalThis.fetch
}
