import { systemClock } from '@tapetree/agent/run'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Pairing } from './auth/pairing.ts'
import { PublicUrl } from './auth/public-url.ts'
import { closeEndpoints, drainEndpoints, openEndpoints, recover } from './endpoints.ts'
import type { Routes } from './http/app.ts'
import { handlersOf, redirectBelow, removePrefix } from './request-handlers.ts'
import { requireAuthentication, type HandlerOptions } from './server-options.ts'
import type { SocketServer } from './server.ts'

/** The endpoints of a server without a port, for an existing `node:http` server. */
export interface ServerHandler extends AsyncDisposable {
  /** Every route and socket, with its access. Paths are without the prefix. */
  declared: SocketServer['declared']
  routes: Routes
  /** Returns false if the path is not below the prefix; then it has done nothing. */
  handleRequest(request: IncomingMessage, response: ServerResponse): boolean
  /** For the event `upgrade`. Returns false as `handleRequest` does. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean
  /** Rejects new prompts and waits at most `ms` for runs to finish, like `drain` of a server. */
  drain(ms: number): Promise<boolean>
  /** Ends its connections and live sessions. The HTTP server stays open. */
  close(): Promise<void>
}

/** Mounts the server into an existing HTTP server. It checks hosts, origins, roles and failures like `startServer`. */
export function createHandler({ prefix = '', ...options }: HandlerOptions): ServerHandler {
  const { allowedHosts = [], clock = systemClock, tokens } = options
  requireAuthentication(options)
  if (prefix !== '' && !/^(\/[^/?#]+)+$/.test(prefix))
    throw new Error(`The prefix ${JSON.stringify(prefix)} must start with a slash and not end with one.`)
  const publicUrl = options.publicUrl === undefined ? undefined : new PublicUrl(options.publicUrl)
  const pairing = tokens && new Pairing(tokens, clock, options.pairingCodes)
  const endpoints = openEndpoints(options, { names: allowedHosts, clock, pairing, publicUrl })
  const { handleRequest, handleUpgrade } = handlersOf(endpoints, { isUnixSocket: false })
  recover(options, { clock, closing: endpoints.closing.signal })
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => (closed ??= closeEndpoints(endpoints, options))
  return {
    declared: [...endpoints.routes.declared, ...endpoints.sockets],
    routes: endpoints.routes,
    handleRequest: (request, response) => {
      if (redirectBelow(request, response, prefix)) return true
      const isOurs = removePrefix(request, prefix)
      if (isOurs) handleRequest(request, response)
      return isOurs
    },
    handleUpgrade: (request, socket, head) => {
      const isOurs = removePrefix(request, prefix)
      if (isOurs) handleUpgrade(request, socket as Socket, head)
      return isOurs
    },
    drain: (ms) => drainEndpoints(endpoints, options, { ms, clock }),
    close,
    [Symbol.asyncDispose]: close,
  }
}
