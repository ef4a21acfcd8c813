import { getRequestListener } from '@hono/node-server'
import { systemClock, type Clock } from '@tapetree/agent'
import type { Problem } from '@tapetree/client'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { FailureLimiter, type FailureLimits } from './auth/failure-limiter.ts'
import { Gatekeeper } from './auth/gatekeeper.ts'
import { AllowedHosts } from './auth/host-origin.ts'
import { Pairing, pairingLink } from './auth/pairing.ts'
import { peerOf, TrustedProxies, type Peer } from './auth/peer.ts'
import { TokenHolders } from './auth/token-holders.ts'
import { defaultTenant, type NewToken, type TokenStore } from './auth/token-store.ts'
import { WaitingRoom, type WaitingRoomLimits } from './auth/waiting-room.ts'
import { addRoutes } from './http/routes/add-routes.ts'
import type { ApiParts } from './http/api-parts.ts'
import { addAuthRoutes, addCallerRoute } from './http/routes/auth.ts'
import { addMetrics } from './http/routes/health.ts'
import { problemJson, Routes, undeclaredRoutes, type DeclaredRoute } from './http/app.ts'
import { createGuard, type DoorBindings } from './http/guard.ts'
import { bindProblem, isWildcard, listenOnPort, listenOnUnixSocket, unixSocketUrl } from './listen.ts'
import type { LiveSessions } from './live/live-sessions.ts'
import { RequestProblem, problemOf } from './util/problem-error.ts'
import { recoverSessions, type Recovered, type RecoveryPolicy } from './live/recovery.ts'
import type { Log } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import { observeRequests } from './observe/observe-requests.ts'
import { notReadyReason, StorageCheck } from './observe/readiness.ts'
import { loadTls, type TlsKeys, type TlsOptions } from './tls.ts'
import { WsDoor, wsRoute } from './ws/ws-door.ts'
import { settledWithin } from '@tapetree/session/util/deadline'

export interface ServerOptions {
  /** The sessions of each tenant. The server closes them when it goes down. */
  tenants: ReadonlyMap<string, LiveSessions>
  tokens: TokenStore
  /** What the routes know beside sessions. Without roots no folder may be worked in. */
  api?: Partial<Omit<ApiParts, 'closing' | 'clock'>>
  /** Adds routes of one's own. `closing` is aborted when the server goes down. */
  addRoutes?: (routes: Routes, context: { closing: AbortSignal }) => void
  /** Loopback, unless it is said otherwise. */
  host?: string
  /** 0, which is the default, takes one that is free. */
  port?: number
  /** Where the terminal of the same user connects, without a token. */
  unixSocket?: string
  /** Whose sessions come through the Unix socket. */
  ownerTenant?: string
  tls?: TlsOptions
  /** Lets other machines in without TLS, as where a proxy does it. */
  allowInsecure?: boolean
  /** Names that the server is called by, besides those of loopback: `tape.example` or `tape.example:8443`. */
  allowedHosts?: readonly string[]
  /** Pages of other origins that may use it, as in development. */
  allowedOrigins?: readonly string[]
  /** Addresses and networks whose forwarded headers are believed. */
  trustedProxies?: readonly string[]
  /** Counts what happens; told at `/metrics` to who may drive the owner's tenant. The server closes it when it goes down. */
  metrics?: Metrics
  /** Every request, and what went wrong beside them. */
  log?: Log
  /** What is done about runs that a server before this one left in the middle. Absent: nothing, until somebody resumes them. */
  recovery?: RecoveryPolicy
  failures?: Partial<FailureLimits>
  unauthenticated?: Partial<WaitingRoomLimits>
  /** How long those who are there have to go by themselves when it goes down. */
  graceMs?: number
  clock?: Clock
}

/** For who is on this machine and is the same user: a process that hosts its own session, such as a terminal. */
export interface SocketServerOptions extends Omit<
  ServerOptions,
  'port' | 'unixSocket' | 'tokens' | 'host' | 'tls' | 'allowInsecure' | 'trustedProxies'
> {
  /** There is none. */
  port: null
  unixSocket: string
  /** Absent: nobody comes in by a token, and none can be made. */
  tokens?: TokenStore
}

/** A server that listens on a Unix socket and nowhere else. */
export interface SocketServer {
  /** `unix:` and the path of the socket, or that of the port where there is one. */
  url: string
  /** Every way in, with who may take it. */
  declared: readonly (Pick<DeclaredRoute, 'method' | 'path' | 'access'> & Partial<DeclaredRoute>)[]
  routes: Routes
  /** Down within 5 s: says whether all went by themselves. */
  close(): Promise<'in time' | 'cut'>
}

export interface RunningServer extends SocketServer {
  address: { host: string; port: number }
  /** SHA-256 of a certificate of our own making. */
  fingerprint?: string
  /** A link that lets one device in, once and soon. */
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
  const names = isWildcard(host) ? allowedHosts : [bracketed(host), ...allowedHosts]
  const tls = options.tls && (await loadTls(options.tls, certificateNames(names), clock.now()))
  const pairing = new Pairing(options.tokens, clock)
  const doors = openDoors(options, { names, clock, pairing })
  const byPort = createHttpServer(doors, { isUnixSocket: false, tls })
  const byUnixSocket = createHttpServer(doors, { isUnixSocket: true, tls: undefined })
  const { unixSocket } = options
  try {
    const address = await listenOnPort(byPort, host, port)
    if (unixSocket !== undefined) await listenOnUnixSocket(byUnixSocket, unixSocket)
    const url = urlOf({ names, port: address.port, scheme: tls ? 'https' : 'http' })
    const { fingerprint } = tls ?? {}
    const servers = unixSocket === undefined ? [byPort] : [byPort, byUnixSocket]
    return {
      ...serve({ url, servers, doors, options, clock }),
      address: { host: address.address, port: address.port },
      ...(fingerprint !== undefined && { fingerprint }),
      pairingLink: (grant) => pairingLink(url, { code: pairing.begin(grant).code, fingerprint }),
    }
  } catch (error) {
    byPort.close()
    byUnixSocket.close()
    await closeDoors(doors, options)
    throw error
  }
}

async function serveUnixSocket(options: SocketServerOptions): Promise<SocketServer> {
  const { unixSocket, tokens, allowedHosts = [], clock = systemClock } = options
  const pairing = tokens && new Pairing(tokens, clock)
  const doors = openDoors(options, { names: allowedHosts, clock, pairing })
  const server = createHttpServer(doors, { isUnixSocket: true, tls: undefined })
  try {
    await listenOnUnixSocket(server, unixSocket)
    return serve({ url: unixSocketUrl(unixSocket), servers: [server], doors, options, clock })
  } catch (error) {
    server.close()
    await closeDoors(doors, options)
    throw error
  }
}

interface Serving {
  url: string
  servers: readonly Server[]
  doors: Doors
  options: AnyServerOptions
  clock: Clock
}

/** It listens: what its predecessor left is taken up, and it can be closed. */
function serve({ url, servers, doors, options, clock }: Serving): SocketServer {
  const { graceMs = defaultGraceMs } = options
  recover(options, clock)
  let closed: Promise<'in time' | 'cut'> | undefined
  return {
    url,
    declared: [...doors.routes.declared, wsRoute],
    routes: doors.routes,
    close: () => (closed ??= shutDown({ servers, graceMs, finish: () => closeDoors(doors, options) })),
  }
}

type AnyServerOptions = ServerOptions | SocketServerOptions

/** All that both listeners share. */
interface Doors {
  gatekeeper: Gatekeeper
  holders: TokenHolders
  waitingRoom: WaitingRoom
  proxies: TrustedProxies
  routes: Routes
  ws: WsDoor
  closing: AbortController
}

interface DoorParts {
  names: readonly string[]
  clock: Clock
  pairing: Pairing | undefined
}

function openDoors(options: AnyServerOptions, { names, clock, pairing }: DoorParts): Doors {
  const { tenants, tokens, allowedOrigins = [], ownerTenant = defaultTenant } = options
  const holders = new TokenHolders({
    tokens,
    clock,
    onRevoked: (tokenId) => {
      for (const sessions of tenants.values()) sessions.clientIds.release(tokenId)
    },
  })
  const waitingRoom = new WaitingRoom(clock, options.unauthenticated)
  const gatekeeper = new Gatekeeper({
    tokens,
    limiter: new FailureLimiter(clock, options.failures),
    hosts: new AllowedHosts(names),
    origins: new Set(allowedOrigins),
    ownerTenant,
  })
  const closing = new AbortController()
  const storage = new StorageCheck(tenants, clock)
  const routes = new Routes(createGuard({ gatekeeper, holders, waitingRoom, tenants }))
  const { metrics, log } = options
  if (metrics || log) routes.app.use(observeRequests({ ...(metrics && { metrics }), ...(log && { log }) }))
  if (metrics) addMetrics(routes, metrics, ownerTenant)
  addCallerRoute(routes)
  if (tokens && pairing) addAuthRoutes(routes, { gatekeeper, tokens, pairing, clock })
  addRoutes(routes, {
    ...noApi,
    notReady: () => notReadyReason({ tenants, closing: closing.signal }) ?? storage.reason(),
    ...options.api,
    closing: closing.signal,
    clock,
  })
  options.addRoutes?.(routes, { closing: closing.signal })
  const undeclared = undeclaredRoutes(routes)
  if (undeclared.length > 0)
    throw new Error(`Nobody has said who may call ${undeclared.join(', ')}: add it by Routes.add.`)
  const ws = new WsDoor({ gatekeeper, holders, waitingRoom, tenants, clock })
  const proxies = new TrustedProxies('trustedProxies' in options ? (options.trustedProxies ?? []) : [])
  return { gatekeeper, holders, waitingRoom, proxies, routes, ws, closing }
}

const noApi = {
  models: () => Promise.resolve([]),
  agents: () => Promise.resolve([]),
  settings: () => Promise.reject(new RequestProblem(404, 'no-settings', 'This server has no settings.')),
  roots: () => [],
}

/** In the background: who comes meanwhile is let in. */
function recover({ tenants, recovery: policy, log }: AnyServerOptions, clock: Clock): void {
  if (policy === undefined) return
  for (const [tenant, sessions] of tenants) {
    const onRecovered = ({ sessionId, step }: Recovered): void =>
      log?.info({ tenant, sessionId, step: step.type }, 'recovered')
    recoverSessions(sessions, { policy, clock, onRecovered }).catch((error: unknown) =>
      log?.error({ tenant, message: error instanceof Error ? error.message : String(error) }, 'recovery failed'),
    )
  }
}

/** Live sessions say goodbye to who watches them, and end when what they did is on the disk. */
async function closeDoors(
  { holders, waitingRoom, ws, closing }: Doors,
  { tenants, metrics }: AnyServerOptions,
): Promise<void> {
  closing.abort()
  metrics?.close()
  const ended = await Promise.allSettled([...tenants.values()].map((sessions) => sessions.close()))
  ws.close()
  holders.close()
  waitingRoom.close()
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}

interface Listener {
  isUnixSocket: boolean
  tls: TlsKeys | undefined
}

function createHttpServer(doors: Doors, { isUnixSocket, tls }: Listener): Server {
  const peerFor = (request: IncomingMessage): Peer =>
    peerOf(
      {
        remoteAddress: request.socket.remoteAddress,
        isEncrypted: tls !== undefined,
        isUnixSocket,
        header: (name) => singleHeader(request, name),
      },
      doors.proxies,
    )
  const listener = requestListener(doors, peerFor)
  const server = tls
    ? createTlsServer({ ...serverSettings, handshakeTimeout, cert: tls.cert, key: tls.key }, listener)
    : createServer(serverSettings, listener)
  server.on('connection', (socket: Socket) => {
    if (!isUnixSocket && !doors.proxies.has(socket.remoteAddress ?? '')) doors.waitingRoom.enter(socket)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    doors.waitingRoom.heard(socket)
    doors.ws.upgrade(request, socket, { head, peer: peerFor(request) })
  })
  return server
}

const handshakeTimeout = 10_000

const serverSettings = {
  // A request that names no host gets our answer to that, the same as one that names a wrong one.
  requireHostHeader: false,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 5000,
  // `curl --http2` offers an upgrade too; it is answered as if it had not.
  shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
}

function requestListener(doors: Doors, peerFor: (request: IncomingMessage) => Peer): RequestListener {
  const fetchApp = (request: Request, bindings: unknown): Response | Promise<Response> => {
    const { incoming } = bindings as DoorBindings
    return doors.routes.app.fetch(request, { ...(bindings as DoorBindings), peer: peerFor(incoming) })
  }
  // The classes `Request` and `Response` of the whole process are not ours to replace.
  const toApp = getRequestListener(fetchApp, { overrideGlobalObjects: false })
  return (request, response) => {
    doors.waitingRoom.heard(request.socket)
    for (const [name, value] of Object.entries(everyResponse)) response.setHeader(name, value)
    const refused = wrongHost(doors, request, peerFor(request))
    if (refused) refuse(request, response, refused)
    else void toApp(request, response)
  }
}

/** No page of another origin gets to read or run anything of ours. */
const everyResponse = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  // A cache on the way, as that of a proxy, must not hand to one what another was told.
  'cache-control': 'private, no-cache',
}

/** Looked at before the rest, whatever the path. A target that is a whole URL asks for a proxy, which we are not. */
function wrongHost({ gatekeeper }: Doors, request: IncomingMessage, peer: Peer): Problem | undefined {
  try {
    const isOurs = request.url?.startsWith('/') ?? false
    gatekeeper.checkHost(isOurs ? peer : { ...peer, host: request.url })
    return undefined
  } catch (error) {
    return problemOf(error)
  }
}

/** Answers without reading a body: a connection on which one may come is closed. */
function refuse({ method = '' }: IncomingMessage, response: ServerResponse, problem: Problem): void {
  response.writeHead(problem.status, { ...problemJson, ...(method !== 'GET' && { connection: 'close' }) })
  response.end(JSON.stringify(problem))
}

/** Two where there should be one is nobody we know. */
function singleHeader({ headersDistinct }: IncomingMessage, name: string): string | undefined {
  return headersDistinct[name]?.join(', ')
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

function certificateNames(names: readonly string[]): string[] {
  const plain = names.map((name) => name.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'))
  return [...new Set(['localhost', '127.0.0.1', '::1', ...plain])]
}

/** A name that it answers to: of a wildcard, the first that was given, or loopback. */
function urlOf({ names, port, scheme }: { names: readonly string[]; port: number; scheme: string }): string {
  const [name = 'localhost'] = names
  return /[^\]]:\d+$|\]:\d+$/.test(name) ? `${scheme}://${name}` : `${scheme}://${name}:${port}`
}

/** A server is down within 5 s, whatever hangs; the rest of them is for cutting whoever did not go. */
const defaultGraceMs = 4500

interface Shutdown {
  graceMs: number
  servers: readonly Server[]
  /** Says goodbye to all, ends or keeps what runs, and is done when all of it is on the disk. */
  finish: () => Promise<void>
}

/** No new callers, goodbye to those that are there, and in the end nobody waits for who does not go. */
async function shutDown({ servers, finish, graceMs }: Shutdown): Promise<'in time' | 'cut'> {
  const closed = Promise.all(
    servers.map(
      (server) =>
        new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeIdleConnections()
        }),
    ),
  )
  const orderly = finish().then(async () => {
    for (const server of servers) server.closeIdleConnections()
    await closed
  })
  try {
    if ((await settledWithin(orderly, { ms: graceMs })) === 'late') return 'cut'
    await orderly
    return 'in time'
  } finally {
    for (const server of servers) server.closeAllConnections()
  }
}
