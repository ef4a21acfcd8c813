import type { EnvHttpProxyAgent, RequestInfo, RequestInit } from 'undici'

/**
 * `fetch` without timeouts on silence: our own idle timeout decides how long a model may think. Uses the proxy of the
 * environment, except for this machine.
 */
export const providerFetch = (async (url: RequestInfo, init?: RequestInit) => {
  // Node's built-in `fetch` has another version of undici than this agent. Loaded on demand, because it is large.
  const { EnvHttpProxyAgent: Agent, fetch } = await import('undici')
  return fetch(url, { ...init, dispatcher: sharedAgent(Agent) })
}) as unknown as typeof globalThis.fetch

let agent: EnvHttpProxyAgent | undefined

function sharedAgent(Agent: typeof EnvHttpProxyAgent): EnvHttpProxyAgent {
  const given = process.env['no_proxy'] ?? process.env['NO_PROXY'] ?? ''
  const noProxy = given === '*' ? given : `${given},localhost,127.0.0.1,[::1]`
  return (agent ??= new Agent({ headersTimeout: 0, bodyTimeout: 0, noProxy }))
}
