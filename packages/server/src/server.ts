import { systemClock, type Clock } from '@tapetree/agent/run'
import { settledWithin } from '@tapetree/session/util/deadline'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { isIPv6, type Socket } from 'node:net'
import { Pairing, pairingLink } from './auth/pairing.ts'
import { PublicUrl } from './auth/public-url.ts'
import type { NewToken } from './auth/token-store.ts'
import { closeEndpoints, drainEndpoints, openEndpoints, recover, type Endpoints } from './endpoints.ts'
import type { DeclaredRoute, Routes } from './http/app.ts'
import {
  bindProblem,
  isWildcard,
  likelyFirst,
  listenOnPort,
  listenOnUnixSocket,
  machineNames,
  unixSocketUrl,
} from './listen.ts'
import { handlersOf } from './request-handlers.ts'
import {
  requireAuthentication,
  type EndpointOptions,
  type ServerOptions,
  type SocketServerOptions,
} from './server-options.ts'
import { loadTls, useCertificate, type CertificateNames, type TlsKeys } from './tls.ts'
import { emitWarning } from './util/problem-error.ts'

/** A server that listens only on a Unix socket. */
export interface SocketServer extends AsyncDisposable {
  /** `unix:` and the path of the socket, or the URL of the port if there is one. */
  url: string
  /** Every route and socket, with its access. */
  declared: readonly (Pick<DeclaredRoute, 'method' | 'path' | 'access'> & Partial<DeclaredRoute>)[]
  routes: Routes
  /**
   * Rejects new prompts with `draining`, and waits at most `ms` for runs to finish. `/api/ready` answers 503; clients stay
   * connected and may answer requests. Resolves with whether all runs have finished. Call `close` afterwards.
   */
  drain(ms: number): Promise<boolean>
  /** Shuts down within 5 s. Resolves with whether all clients disconnected by themselves. */
  close(): Promise<'in time' | 'cut'>
}

export interface RunningServer extends SocketServer {
  address: { host: string; port: number }
  /** As configured, without a slash at the end. */
  publicUrl?: string
  /** Other URLs at which machines may reach it, if it listens on all addresses. */
  alsoAt: readonly string[]
  /** SHA-256 of a self-signed certificate. */
  fingerprint?: string
  /** Why the self-signed certificate of an earlier start was replaced. Clients that know the old one must pair again. */
  renewed?: 'expires' | 'new-name'
  /** Uses another certificate for new connections. Throws if it is not usable; then the old one stays in use. */
  reloadTls(keys: Pick<TlsKeys, 'cert' | 'key'>): void
  /** A short-lived link that admits one device, once. */
  pairingLink(grant: NewToken): string
}

export function startServer(options: ServerOptions): Promise<RunningServer>
export function startServer(options: SocketServerOptions): Promise<SocketServer>
export function startServer(options: ServerOptions | SocketServerOptions): Promise<SocketServer> {
  return options.port === null ? serveUnixSocket(options) : servePort(options)
}

async function servePort(options: ServerOptions): Promise<RunningServer> {
  const { host = '127.0.0.1', port = 0, allowedHosts = [], allowInsecure = false, clock = systemClock } = options
  const problem = bindProblem({ host, hasTls: options.tls !== undefined, allowInsecure })
  if (problem !== undefined) throw new Error(problem)
  const publicUrl = options.publicUrl === undefined ? undefined : new PublicUrl(options.publicUrl)
  const machine = machineNames(host)
  const addresses = (await likelyFirst(machine.addresses)).map(bracketed)
  const configured = isWildcard(host) ? allowedHosts : [bracketed(host), ...allowedHosts]
  const names = [...configured, ...addresses, ...machine.names]
  const tls = options.tls && (await loadTls(options.tls, certificateNames(names), clock.now()))
  requireAuthentication(options)
  const pairing = options.tokens && new Pairing(options.tokens, clock, options.pairingCodes)
  const isOwnAddress = (address: string): boolean => machineNames(host).addresses.includes(address)
  const endpoints = openEndpoints(options, { names, isOwnAddress, clock, pairing, publicUrl })
  const byPort = createHttpServer(endpoints, { isUnixSocket: false, tls })
  const byUnixSocket = createHttpServer(endpoints, { isUnixSocket: true, tls: undefined })
  const { unixSocket } = options
  try {
    const address = await listenOnPort(byPort, host, port)
    if (unixSocket !== undefined) await listenOnUnixSocket(byUnixSocket, unixSocket)
    // Without TLS, all addresses are those of a container or of a proxy's network, which clients do not use.
    const shown = tls ? names : [...configured, 'localhost']
    const [url = '', ...alsoAt] = urlsOf({ names: shown, port: address.port, scheme: tls ? 'https' : 'http' })
    const { fingerprint, renewed } = tls ?? {}
    const servers = unixSocket === undefined ? [byPort] : [byPort, byUnixSocket]
    return {
      ...serve({ url, servers, endpoints, options, clock }),
      address: { host: address.address, port: address.port },
      alsoAt,
      ...(publicUrl && { publicUrl: publicUrl.href }),
      ...(fingerprint !== undefined && { fingerprint }),
      ...(renewed !== undefined && { renewed }),
      reloadTls: (keys) => {
        if (!tls) throw new Error('This server has no TLS.')
        useCertificate(byPort as TlsServer, keys)
      },
      pairingLink: (grant) => {
        if (!pairing) throw new Error('Pairing needs tokens, and this server has none.')
        const { code } = pairing.begin(grant)
        // Behind a proxy, clients see the certificate of the proxy.
        return publicUrl ? pairingLink(publicUrl.href, { code }) : pairingLink(url, { code, fingerprint })
      },
    }
  } catch (error) {
    byPort.close()
    byUnixSocket.close()
    await closeEndpoints(endpoints, options)
    throw error
  }
}

async function serveUnixSocket(options: SocketServerOptions): Promise<SocketServer> {
  const { unixSocket, tokens, allowedHosts = [], clock = systemClock } = options
  const pairing = tokens && new Pairing(tokens, clock)
  const endpoints = openEndpoints(options, { names: allowedHosts, clock, pairing })
  const server = createHttpServer(endpoints, { isUnixSocket: true, tls: undefined })
  try {
    await listenOnUnixSocket(server, unixSocket)
    return serve({ url: unixSocketUrl(unixSocket), servers: [server], endpoints, options, clock })
  } catch (error) {
    server.close()
    await closeEndpoints(endpoints, options)
    throw error
  }
}

interface Serving {
  url: string
  servers: readonly Server[]
  endpoints: Endpoints
  options: EndpointOptions
  clock: Clock
}

/** Starts once the server listens: resumes interrupted runs and makes it closable. */
function serve({ url, servers, endpoints, options, clock }: Serving): SocketServer {
  const { graceMs = defaultGraceMs } = options
  recover(options, { clock, closing: endpoints.closing.signal })
  endpoints.door?.connect().catch((error: unknown) => emitWarning(error))
  let closed: Promise<'in time' | 'cut'> | undefined
  const close = (): Promise<'in time' | 'cut'> =>
    (closed ??= shutDown({ servers, graceMs, finish: () => closeEndpoints(endpoints, options) }))
  return {
    url,
    declared: [...endpoints.routes.declared, ...endpoints.sockets],
    routes: endpoints.routes,
    drain: (ms) => drainEndpoints(endpoints, options, { ms, clock }),
    close,
    [Symbol.asyncDispose]: async () => void (await close()),
  }
}

interface Listener {
  isUnixSocket: boolean
  tls: TlsKeys | undefined
}

function createHttpServer(endpoints: Endpoints, { isUnixSocket, tls }: Listener): Server {
  const { handleRequest, handleUpgrade } = handlersOf(endpoints, { isUnixSocket })
  const server = tls
    ? createTlsServer({ ...serverSettings, handshakeTimeout, cert: tls.cert, key: tls.key }, handleRequest)
    : createServer(serverSettings, handleRequest)
  server.on('connection', (socket: Socket) => {
    if (!isUnixSocket && !endpoints.proxies.has(socket.remoteAddress ?? '')) endpoints.waitingRoom.enter(socket)
  })
  server.on('upgrade', handleUpgrade)
  return server
}

const handshakeTimeout = 10_000

const serverSettings = {
  // A request without a host gets the same answer as one with a wrong host.
  requireHostHeader: false,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 5000,
  // `curl --http2` also offers an upgrade; it is ignored.
  shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** The systems of today change some of their IPv6 addresses every day. */
function certificateNames(names: readonly string[]): CertificateNames {
  const plain = names.map((name) => name.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'))
  const all = new Set(['localhost', '127.0.0.1', '::1', ...plain])
  const isKept = (name: string): boolean => name === '::1' || name === plain[0] || !isIPv6(name)
  return { required: [...all].filter(isKept), also: [...all].filter((name) => !isKept(name)) }
}

/** The first is the best one for clients: the given host, a configured name, or an address of the machine. */
function urlsOf({ names, port, scheme }: { names: readonly string[]; port: number; scheme: string }): string[] {
  const hasPort = (name: string): boolean => /[^\]]:\d+$|\]:\d+$/.test(name)
  return names.map((name) => (hasPort(name) ? `${scheme}://${name}` : `${scheme}://${name}:${port}`))
}

/** A server shuts down within 5 s, whatever hangs; the remaining time is for destroying connections. */
const defaultGraceMs = 4500

const sweepMs = 20

interface Shutdown {
  graceMs: number
  servers: readonly Server[]
  /** Notifies all clients, ends or suspends runs, and resolves when everything is on disk. */
  finish: () => Promise<void>
}

/** Stops listening, notifies clients, and destroys connections that remain after the grace period. */
async function shutDown({ servers, finish, graceMs }: Shutdown): Promise<'in time' | 'cut'> {
  // Readiness turns first.
  const finished = finish()
  const closed = Promise.all(
    servers.map(
      (server) =>
        new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeIdleConnections()
        }),
    ),
  )
  // A connection becomes idle when its last request has its response.
  const sweep = setInterval(() => {
    for (const server of servers) server.closeIdleConnections()
  }, sweepMs)
  const orderly = Promise.all([finished, closed])
  try {
    if ((await settledWithin(orderly, { ms: graceMs })) === 'late') return 'cut'
    await orderly
    return 'in time'
  } finally {
    clearInterval(sweep)
    for (const server of servers) server.closeAllConnections()
  }
}
