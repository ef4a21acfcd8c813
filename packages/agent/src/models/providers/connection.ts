import { providerFetch } from '../provider-fetch.ts'
import { readableFetch, type ResponseFormat } from '../readable-response.ts'
import type { Clock } from '@tapetree/session/util/wait'
import type { IdleLimits } from '../idle-timeout.ts'
import type { ModelLimits, ThinkingLevel } from '../model.ts'
import type { ModelPrices } from '../model-prices.ts'

export interface ProviderOptions {
  model: string
  /** Default: the usual environment variable of the provider. If empty, no key is sent. */
  apiKey?: string
  baseUrl?: string
  headers?: Record<string, string>
  /** Default: a small table of known models. */
  limits?: Partial<ModelLimits>
  /** Without prices the cost is unknown. */
  prices?: ModelPrices
  /** The maximum silence of the model. */
  idle?: Partial<IdleLimits>
  clock?: Clock
  fetch?: typeof globalThis.fetch
}

export interface OpenaiOptions extends ProviderOptions {
  /** Requests with the same key share a cache; one key for each session is a good choice. */
  promptCacheKey?: string
}

export interface OpenaiCompatibleOptions extends ProviderOptions {
  /** The provider name in messages, such as `ollama` or `openrouter`. */
  name: string
  baseUrl: string
  /** The levels that the server accepts as `reasoning_effort`. Default: `low`, `medium` and `high`. */
  thinkingLevels?: readonly ThinkingLevel[]
}

interface Connection {
  apiKey?: string
  baseURL?: string
  headers?: Record<string, string>
  fetch: typeof globalThis.fetch
}

/** The connection options, under the names of the provider packages. */
export function connectionOf(options: ProviderOptions, format: ResponseFormat): Connection {
  const { apiKey, baseUrl, headers, fetch = providerFetch } = options
  return {
    ...(apiKey !== undefined && { apiKey }),
    ...(baseUrl !== undefined && { baseURL: baseUrl }),
    ...(headers && { headers }),
    fetch: readableFetch(apiKey === '' ? withoutKey(fetch) : fetch, format),
  }
}

/** The packages turn an empty key into an empty header. */
function withoutKey(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => {
    const headers = [...new Headers(init?.headers)].filter(([, value]) => value !== '' && value !== 'Bearer')
    return fetch(input, { ...init, headers })
  }
}
