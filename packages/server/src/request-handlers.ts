import { getRequestListener } from '@hono/node-server'
import type { Problem } from '@tapetree/client'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { corsHeaders, preflightHeaders } from './auth/host-origin.ts'
import { peerOf, type Peer } from './auth/peer.ts'
import type { Endpoints } from './endpoints.ts'
import { problemJson } from './http/app.ts'
import type { DoorBindings } from './http/guard.ts'
import { logRequest, requestIdOf, type RequestLine } from './observe/requests.ts'
import { problemOf } from './util/problem-error.ts'

/** What a `node:http` server calls for each request and each upgrade. */
export interface Handlers {
  handleRequest: RequestListener
  handleUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void
}

export function handlersOf(endpoints: Endpoints, { isUnixSocket }: { isUnixSocket: boolean }): Handlers {
  const peerFor = (request: IncomingMessage): Peer =>
    peerOf(
      {
        remoteAddress: request.socket.remoteAddress,
        isEncrypted: 'encrypted' in request.socket,
        isUnixSocket,
        header: (name) => singleHeader(request, name),
      },
      endpoints.proxies,
      endpoints.publicUrl,
    )
  return {
    handleRequest: requestListener(endpoints, peerFor),
    handleUpgrade: (request, socket, head) => {
      if (endpoints.publicUrl) removePrefix(request, endpoints.publicUrl.prefix)
      endpoints.waitingRoom.heard(socket)
      if (endpoints.door && request.url === endpoints.door.path) {
        // It has its own limit of connections that have not authenticated.
        endpoints.waitingRoom.admit(socket)
        return endpoints.door.upgrade(request, socket, head)
      }
      const requestId = requestIdOf(singleHeader(request, requestIdHeader))
      endpoints.ws.upgrade(request, socket, { head, peer: peerFor(request), requestId })
    },
  }
}

function requestListener(endpoints: Endpoints, peerFor: (request: IncomingMessage) => Peer): RequestListener {
  const fetchApp = (request: Request, bindings: unknown): Response | Promise<Response> => {
    const { incoming, outgoing } = bindings as DoorBindings
    const requestId = String(outgoing.getHeader(requestIdHeader))
    return endpoints.routes.app.fetch(request, { ...(bindings as DoorBindings), peer: peerFor(incoming), requestId })
  }
  // The global classes `Request` and `Response` must not be replaced.
  const toApp = getRequestListener(fetchApp, { overrideGlobalObjects: false })
  return (request, response) => {
    endpoints.waitingRoom.heard(request.socket)
    for (const [name, value] of Object.entries(everyResponse)) response.setHeader(name, value)
    const requestId = requestIdOf(singleHeader(request, requestIdHeader))
    response.setHeader(requestIdHeader, requestId)
    const peer = peerFor(request)
    const refused = wrongHost(endpoints, request, peer)
    if (refused) {
      if (endpoints.log) logRequest(endpoints.log, refusedLine(request, { status: refused.status, requestId, peer }))
      return refuse(request, response, { ...refused, request_id: requestId })
    }
    if (allowOrigin(endpoints, request, response)) return undefined
    const { prefix = '' } = endpoints.publicUrl ?? {}
    if (redirectBelow(request, response, prefix)) return undefined
    removePrefix(request, prefix)
    return void toApp(request, response)
  }
}

/** Adds the headers for pages of an allowed origin. True if the request was a preflight, which is then answered. */
function allowOrigin({ origins }: Endpoints, request: IncomingMessage, response: ServerResponse): boolean {
  const origin = singleHeader(request, 'origin')
  if (origin === undefined || !origins.has(origin)) return false
  for (const [name, value] of Object.entries(corsHeaders(origin))) response.setHeader(name, value)
  const isPreflight = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers
  if (isPreflight) response.writeHead(204, preflightHeaders).end()
  return isPreflight
}

/**
 * Redirects a request for the prefix itself to the page below it, so that relative URLs of the page are below the prefix.
 * Returns false for all other requests. The target is relative, because a proxy may have removed a part.
 */
export function redirectBelow(request: IncomingMessage, response: ServerResponse, prefix: string): boolean {
  const [path, query] = (request.url ?? '').split(/(?=\?)/, 2)
  if (prefix === '' || path !== prefix) return false
  const folder = prefix.slice(prefix.lastIndexOf('/') + 1)
  response.writeHead(308, { location: `./${folder}/${query ?? ''}` }).end()
  return true
}

/** As frameworks do, so that all routes see the same paths wherever they are mounted. */
export function removePrefix(request: IncomingMessage, prefix: string): boolean {
  const { url = '' } = request
  if (!url.startsWith(prefix) || !/^(?:[/?]|$)/.test(url.slice(prefix.length))) return false
  const rest = url.slice(prefix.length)
  request.url = rest.startsWith('/') ? rest : `/${rest}`
  return true
}

const requestIdHeader = 'x-request-id'

function refusedLine(
  { method = '', url = '' }: IncomingMessage,
  { status, requestId, peer }: { status: number; requestId: string; peer: Peer },
): RequestLine {
  const path = url.replace(/\?.*/s, '')
  const unidentified = { tenant: undefined, caller: undefined, traceId: undefined }
  return { requestId, method, path, route: 'none', status, ms: 0, address: peer.address, ...unidentified }
}

/** No page of another origin may read or run our content. */
const everyResponse = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  // A shared cache, such as that of a proxy, must not serve one caller's response to another.
  'cache-control': 'private, no-cache',
}

/** Checked first, for every path. An absolute URL as target is a proxy request, which is rejected. */
function wrongHost({ gatekeeper }: Endpoints, request: IncomingMessage, peer: Peer): Problem | undefined {
  try {
    const isOurs = request.url?.startsWith('/') ?? false
    gatekeeper.checkHost(isOurs ? peer : { ...peer, host: request.url })
    return undefined
  } catch (error) {
    return problemOf(error)
  }
}

/** Answers without reading the body: closes a connection on which one may follow. */
function refuse({ method = '' }: IncomingMessage, response: ServerResponse, problem: Problem): void {
  response.writeHead(problem.status, { ...problemJson, ...(method !== 'GET' && { connection: 'close' }) })
  response.end(JSON.stringify(problem))
}

/** Undefined if the header occurs twice. */
function singleHeader({ headersDistinct }: IncomingMessage, name: string): string | undefined {
  return headersDistinct[name]?.join(', ')
}
