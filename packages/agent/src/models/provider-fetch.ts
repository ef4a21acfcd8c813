import { EnvHttpProxyAgent, fetch, type RequestInfo, type RequestInit } from 'undici'

/**
 * `fetch` without the time-outs that end a long silence: a model may think for as long as our own idle time-out lets it. It
 * takes the proxy that the environment names, but for this machine.
 */
export const providerFetch = ((url: RequestInfo, init?: RequestInit) =>
  // Node's own `fetch` is of another version of undici than the one whose agent this is.
  fetch(url, { ...init, dispatcher: sharedAgent() })) as unknown as typeof globalThis.fetch

let agent: EnvHttpProxyAgent | undefined

function sharedAgent(): EnvHttpProxyAgent {
  const given = process.env['no_proxy'] ?? process.env['NO_PROXY'] ?? ''
  const noProxy = given === '*' ? given : `${given},localhost,127.0.0.1,[::1]`
  return (agent ??= new EnvHttpProxyAgent({ headersTimeout: 0, bodyTimeout: 0, noProxy }))
}
