import { providerFetch } from '../provider-fetch.ts'
import type { ProviderOptions } from './provider-options.ts'

interface Connection {
  apiKey?: string
  baseURL?: string
  headers?: Record<string, string>
  fetch: typeof globalThis.fetch
}

/** Where and how to connect, under the names of the provider packages. */
export function connectionOf({ apiKey, baseUrl, headers, fetch = providerFetch }: ProviderOptions): Connection {
  return {
    ...(apiKey !== undefined && { apiKey }),
    ...(baseUrl !== undefined && { baseURL: baseUrl }),
    ...(headers && { headers }),
    fetch,
  }
}
