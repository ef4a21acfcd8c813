import { providerFetch } from '../provider-fetch.ts'
import { readableFetch, type ResponseFormat } from '../readable-response.ts'
import type { ProviderOptions } from './provider-options.ts'

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
