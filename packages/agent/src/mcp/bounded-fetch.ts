import type { FetchLike } from '@modelcontextprotocol/client'
import { ServerProblem } from './server-problem.ts'
import { isLoopback, urlProblem } from './server-settings.ts'

export interface FetchBounds {
  serverUrl: URL
  /** For the server itself, not for others that it names, such as the one where users sign in. */
  headers: Readonly<Record<string, string>>
  maxMessageBytes: number
}

/**
 * Speaks only to addresses that `urlProblem` accepts, whatever a server names as the next one; a server elsewhere cannot send us to
 * this machine. Redirects are not followed: the caller gets them, and comes back with the next address. No message may grow beyond
 * the limit.
 */
export function boundedFetch({ serverUrl, headers, maxMessageBytes }: FetchBounds): FetchLike {
  return async (address, init) => {
    const url = new URL(address)
    const problem = foreignUrlProblem(url, serverUrl)
    if (problem !== undefined) throw new ServerProblem(`${url.origin} is not asked. ${problem}`)
    const sent = new Headers(init?.headers)
    if (url.origin === serverUrl.origin) {
      for (const [name, value] of Object.entries(headers)) if (!sent.has(name)) sent.set(name, value)
    }
    // Followed by `fetch`, a redirect would take our headers to an address that was not checked.
    const response = await fetch(url, { ...init, headers: sent, redirect: 'manual' })
    if (!response.body) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const { status, statusText } = response
    const body = response.body.pipeThrough(boundedMessages({ isStream, maxMessageBytes }))
    return new Response(body, { status, statusText, headers: response.headers })
  }
}

/** Of an address that a server named. Where the server is on this machine, so may be what it names. */
export function foreignUrlProblem(url: URL, serverUrl: URL): string | undefined {
  const problem = urlProblem(url.href)
  if (problem !== undefined) return problem
  return isLoopback(url) && !isLoopback(serverUrl) ? 'A server elsewhere has no say about this machine.' : undefined
}

/** A stream has one message after the other, with an empty line between them; anything else is one message. */
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
