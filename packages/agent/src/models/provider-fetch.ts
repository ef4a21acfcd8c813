import type { EnvHttpProxyAgent, RequestInfo, RequestInit } from 'undici'

/**
 * `fetch` without the time-outs that end a long silence: a model may think for as long as our own idle time-out lets it. It
 * takes the proxy that the environment names, but for this machine.
 */
export const providerFetch = (async (url: RequestInfo, init?: RequestInit) => {
  // Node's own `fetch` is of another version of undici than the one whose agent this is. It is large: whoever asks nobody does without.
  const { EnvHttpProxyAgent: Agent, fetch } = await import('undici')
  return fetch(url, { ...init, dispatcher: sharedAgent(Agent) })
}) as unknown as typeof globalThis.fetch

let agent: EnvHttpProxyAgent | undefined

function sharedAgent(Agent: typeof EnvHttpProxyAgent): EnvHttpProxyAgent {
  const given = process.env['no_proxy'] ?? process.env['NO_PROXY'] ?? ''
  const noProxy = given === '*' ? given : `${given},localhost,127.0.0.1,[::1]`
  return (agent ??= new Agent({ headersTimeout: 0, bodyTimeout: 0, noProxy }))
}
