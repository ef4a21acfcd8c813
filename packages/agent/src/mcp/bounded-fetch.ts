import type { FetchLike } from '@modelcontextprotocol/client'
import type { Dispatcher, RequestInit } from 'undici'
import { ServerProblem } from './server-problem.ts'
import { isLoopback, urlProblem } from './server-settings.ts'

export interface FetchBounds {
  serverUrl: URL
  /** Sent only to the server itself, not to other servers that it names, such as its authorization server. */
  headers: Readonly<Record<string, string>>
  maxMessageBytes: number
}

/**
 * Connects only to addresses that `urlProblem` accepts, also for addresses that a server names; a remote server
 * cannot direct us to this machine. Redirects are not followed: the caller gets them. Limits the size of every
 * message.
 */
export function boundedFetch({ serverUrl, headers, maxMessageBytes }: FetchBounds): FetchLike {
  return async (address, init) => {
    const url = new URL(address)
    const problem = foreignUrlProblem(url, serverUrl)
    if (problem !== undefined) throw new ServerProblem(`No request was sent to ${url.origin}. ${problem}`)
    const sent = new Headers(init?.headers)
    if (url.origin === serverUrl.origin) {
      for (const [name, value] of Object.entries(headers)) if (!sent.has(name)) sent.set(name, value)
    }
    // If `fetch` followed a redirect, it would send our headers to an unchecked address.
    const response = await patientFetch(url, { ...init, headers: sent, redirect: 'manual' })
    if (!response.body) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const { status, statusText } = response
    const body = response.body.pipeThrough(boundedMessages({ isStream, maxMessageBytes }))
    return new Response(body, { status, statusText, headers: response.headers })
  }
}

/** `fetch` without timeouts on silence, which would end a call before its own time limit. */
const patientFetch = (async (url: URL, init: RequestInit) => {
  // Node's built-in `fetch` has another version of undici than this agent. Loaded on demand, because it is large.
  const { Agent, EnvHttpProxyAgent, fetch } = await import('undici')
  // As the built-in `fetch` does.
  const AgentClass = process.env['NODE_USE_ENV_PROXY'] === '1' ? EnvHttpProxyAgent : Agent
  agent ??= new AgentClass({ headersTimeout: 0, bodyTimeout: 0 })
  return fetch(url, { ...init, dispatcher: agent })
}) as unknown as FetchLike

let agent: Dispatcher | undefined

/** Checks an address that a server named. Only a server on this machine may name one on this machine. */
export function foreignUrlProblem(url: URL, serverUrl: URL): string | undefined {
  const problem = urlProblem(url.href)
  if (problem !== undefined) return problem
  return isLoopback(url) && !isLoopback(serverUrl)
    ? 'A remote server cannot name an address on this machine.'
    : undefined
}

/** A stream has messages separated by empty lines; any other body is one message. */
function boundedMessages({ isStream, maxMessageBytes }: { isStream: boolean; maxMessageBytes: number }): Bytes {
  let size = 0
  let last = ''
  return new TransformStream({
    transform(chunk, controller) {
      size += chunk.length
      if (size > maxMessageBytes) {
        controller.error(new ServerProblem(`The server sent a message of more than ${maxMessageBytes} bytes.`))
        return
      }
      if (isStream) {
        const text = last + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
        const end = Math.max(...['\n\n', '\r\n\r\n', '\r\r'].map((separator) => text.lastIndexOf(separator)))
        if (end !== -1) size = text.length - end
        last = text.slice(-3)
      }
      controller.enqueue(chunk)
    },
  })
}

type Bytes = TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>
