import { providerFetch } from '../provider-fetch.ts'
import { readableFetch, type ResponseFormat } from '../readable-response.ts'
import type { Clock } from '@tapetree/session/util/wait'
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

interface Connection {
  apiKey?: string
  baseURL?: string
  headers?: Record<string, string>
  fetch: typeof globalThis.fetch
}

/** Where and how to connect, under the names of the provider packages. */
export function connectionOf(options: ProviderOptions, format: ResponseFormat): Connection {
  const { apiKey, baseUrl, headers, fetch = providerFetch } = options
  return {
    ...(apiKey !== undefined && { apiKey }),
    ...(baseUrl !== undefined && { baseURL: baseUrl }),
    ...(headers && { headers }),
    fetch: readableFetch(fetch, format),
  }
}
