import { getRequestListener } from '@hono/node-server'
import type { TracerProvider } from '@opentelemetry/api'
import { systemClock, type Clock } from '@tapetree/agent/run'
import type { Problem } from '@tapetree/client'
import type { Limits } from '@tapetree/client/protocol'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { isIPv6, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { FailureLimiter, type FailureLimits } from './auth/failure-limiter.ts'
import { Gatekeeper, type Authenticate } from './auth/gatekeeper.ts'
import { AllowedHosts, corsHeaders, preflightHeaders } from './auth/host-origin.ts'
import { UsageLimits } from './auth/limits.ts'
import { Pairing, pairingLink } from './auth/pairing.ts'
import { peerOf, TrustedProxies, type Peer } from './auth/peer.ts'
import { PublicUrl } from './auth/public-url.ts'
import { TokenHolders } from './auth/token-holders.ts'
import { defaultTenant, type NewToken, type TokenStore } from './auth/token-store.ts'
import { WaitingRoom, type WaitingRoomLimits } from './auth/waiting-room.ts'
import { addRoutes } from './http/routes/add-routes.ts'
import { problemJson, Routes, undeclaredRoutes, type ApiParts, type DeclaredRoute } from './http/app.ts'
import { addAuthRoutes, addCallerRoute } from './http/routes/auth.ts'
import { findWebApp } from './http/routes/web-app.ts'
import { addMetrics } from './http/routes/health.ts'
import { addPage } from './http/routes/page.ts'
import { createGuard, type DoorBindings } from './http/guard.ts'
import {
  bindProblem,
  isWildcard,
  likelyFirst,
  listenOnPort,
  listenOnUnixSocket,
  machineNames,
  unixSocketUrl,
} from './listen.ts'
import type { LiveSessions } from './live/live-sessions.ts'
import { PushService, type PushOptions } from './push/push-service.ts'
import { RequestProblem, problemOf } from './util/problem-error.ts'
import { recoverSessions, type Recovered, type RecoveryPolicy } from './live/recovery.ts'
import type { Log } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import { notReadyReason, StorageCheck } from './observe/readiness.ts'
import { logRequest, observeRequests, requestIdOf, type RequestLine } from './observe/requests.ts'
import { loadTls, useCertificate, type CertificateNames, type TlsKeys, type TlsOptions } from './tls.ts'
import { WsDoor, wsRoute, type FinishedUpgrade } from './ws/ws-door.ts'
import { settledWithin } from '@tapetree/session/util/deadline'

export interface ServerOptions {
  /** The sessions of each tenant. The server closes them on shutdown. */
  tenants: ReadonlyMap<string, LiveSessions>
  /** Either this or `authenticate` is required. */
  tokens?: TokenStore
  /** Identifies callers instead of tokens, for users of a host application. */
  authenticate?: Authenticate
  /** Data of the routes besides sessions. Without roots no folder can be used. */
  api?: Partial<Omit<ApiParts, 'closing' | 'clock' | 'push'>>
  /** Sends push messages to subscribed browsers when a session needs its user. Absent: none. */
  push?: PushOptions
  /** False: the page at `/` only pairs browsers and lists sessions. Default: the web app, if it was built. */
  webApp?: boolean
  /** Adds custom routes. `closing` is aborted on shutdown. */
  addRoutes?: (routes: Routes, context: { closing: AbortSignal }) => void
  /** Default: loopback. */
  host?: string
  /** Default: 0, which picks a free port. */
  port?: number
  /** The socket on which the same user's terminal connects, without a token. */
  unixSocket?: string
  /** The tenant of the Unix socket. */
  ownerTenant?: string
  tls?: TlsOptions
  /** Admits other machines without TLS, for example behind a proxy that does it. */
  allowInsecure?: boolean
  /** Host names of the server, besides those of loopback: `tape.example` or `tape.example:8443`. */
  allowedHosts?: readonly string[]
  /** Other origins whose pages may use the server, as in development. */
  allowedOrigins?: readonly string[]
  /**
   * The URL that clients use if a proxy in front of the server has another address, such as `https://tape.example/agents`.
   * The proxy may keep or remove its path.
   */
  publicUrl?: string
  /** Addresses and networks whose forwarded headers are trusted. */
  trustedProxies?: readonly string[]
  /** Served at `/metrics` to callers with the role `metrics` or `drive` in the owner's tenant. The server closes it on shutdown. */
  metrics?: Metrics
  /** Logs every request, and other errors. */
  log?: Log
  /** Traces every request. Runs that a request starts belong to its trace, or to that of its `traceparent`. */
  tracerProvider?: TracerProvider
  /**
   * What to do about runs that the previous server left interrupted. Absent: nothing, until they are resumed by
   * hand.
   */
  recovery?: RecoveryPolicy
  /** Limits of whole tenants, besides those of their tokens. */
  tenantLimits?: ReadonlyMap<string, Limits>
  failures?: Partial<FailureLimits>
  unauthenticated?: Partial<WaitingRoomLimits>
  /** How long clients have to disconnect by themselves on shutdown. */
  graceMs?: number
  clock?: Clock
}

/** For the same user on this machine: a process that hosts its own session, such as a terminal. */
export interface SocketServerOptions extends Omit<
  ServerOptions,
  'port' | 'unixSocket' | 'tokens' | 'authenticate' | 'host' | 'tls' | 'allowInsecure' | 'trustedProxies' | 'publicUrl'
> {
  /** No port. */
  port: null
  unixSocket: string
  /** Absent: no token is accepted, and none can be created. */
  tokens?: TokenStore
}

/** A server that listens only on a Unix socket. */
export interface SocketServer extends AsyncDisposable {
  /** `unix:` and the path of the socket, or the URL of the port if there is one. */
  url: string
  /** Every route and socket, with its access. */
  declared: readonly (Pick<DeclaredRoute, 'method' | 'path' | 'access'> & Partial<DeclaredRoute>)[]
  routes: Routes
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
  const pairing = options.tokens && new Pairing(options.tokens, clock)
  const isOwnAddress = (address: string): boolean => machineNames(host).addresses.includes(address)
  const doors = openDoors(options, { names, isOwnAddress, clock, pairing, publicUrl })
  const byPort = createHttpServer(doors, { isUnixSocket: false, tls })
  const byUnixSocket = createHttpServer(doors, { isUnixSocket: true, tls: undefined })
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
      ...serve({ url, servers, doors, options, clock }),
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
    await closeDoors(doors, options)
    throw error
  }
}

/** Handles requests on a server of the host application. The options of listening are those of that server. */
export interface HandlerOptions extends Omit<
  ServerOptions,
  'host' | 'port' | 'unixSocket' | 'tls' | 'allowInsecure' | 'unauthenticated' | 'graceMs'
> {
  /** Where it is mounted, such as `/agent`. Default: at the root, or where a framework has removed the prefix. */
  prefix?: string
}

/** The endpoints of a server without a port, for an existing `node:http` server. */
export interface ServerHandler extends AsyncDisposable {
  /** Every route and socket, with its access. Paths are without the prefix. */
  declared: SocketServer['declared']
  routes: Routes
  /** Returns false if the path is not below the prefix; then it has done nothing. */
  handleRequest(request: IncomingMessage, response: ServerResponse): boolean
  /** For the event `upgrade`. Returns false as `handleRequest` does. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean
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
  const pairing = tokens && new Pairing(tokens, clock)
  const doors = openDoors(options, { names: allowedHosts, clock, pairing, publicUrl })
  const { handleRequest, handleUpgrade } = handlersOf(doors, { isUnixSocket: false })
  recover(options, { clock, closing: doors.closing.signal })
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => (closed ??= closeDoors(doors, options))
  return {
    declared: [...doors.routes.declared, wsRoute],
    routes: doors.routes,
    handleRequest: (request, response) => {
      const isPrefix = prefix !== '' && request.url === prefix
      const isOurs = removePrefix(request, prefix)
      if (isPrefix) redirectBelow(prefix, response)
      else if (isOurs) handleRequest(request, response)
      return isOurs
    },
    handleUpgrade: (request, socket, head) => {
      const isOurs = removePrefix(request, prefix)
      if (isOurs) handleUpgrade(request, socket as Socket, head)
      return isOurs
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function requireAuthentication({ tokens, authenticate }: Pick<ServerOptions, 'tokens' | 'authenticate'>): void {
  if ((tokens === undefined) === (authenticate === undefined))
    throw new Error('A server needs either `tokens` or `authenticate`, and not both.')
}

/** As frameworks do, so that all routes see the same paths wherever they are mounted. */
function removePrefix(request: IncomingMessage, prefix: string): boolean {
  const { url = '' } = request
  if (!url.startsWith(prefix) || !/^(?:[/?]|$)/.test(url.slice(prefix.length))) return false
  const rest = url.slice(prefix.length)
  request.url = rest.startsWith('/') ? rest : `/${rest}`
  return true
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

/** Starts once the server listens: resumes interrupted runs and makes it closable. */
function serve({ url, servers, doors, options, clock }: Serving): SocketServer {
  const { graceMs = defaultGraceMs } = options
  recover(options, { clock, closing: doors.closing.signal })
  let closed: Promise<'in time' | 'cut'> | undefined
  const close = (): Promise<'in time' | 'cut'> =>
    (closed ??= shutDown({ servers, graceMs, finish: () => closeDoors(doors, options) }))
  return {
    url,
    declared: [...doors.routes.declared, wsRoute],
    routes: doors.routes,
    close,
    [Symbol.asyncDispose]: async () => void (await close()),
  }
}

type AnyServerOptions = Omit<ServerOptions, 'host' | 'port' | 'unixSocket' | 'tls' | 'allowInsecure'>

/** State that both listeners share. */
interface Doors {
  gatekeeper: Gatekeeper
  holders: TokenHolders
  limits: UsageLimits
  push: PushService | undefined
  waitingRoom: WaitingRoom
  proxies: TrustedProxies
  publicUrl: PublicUrl | undefined
  /** Other origins whose pages may read responses. */
  origins: ReadonlySet<string>
  routes: Routes
  ws: WsDoor
  closing: AbortController
  log: Log | undefined
}

interface DoorParts {
  names: readonly string[]
  isOwnAddress?: (address: string) => boolean
  clock: Clock
  pairing: Pairing | undefined
  publicUrl?: PublicUrl | undefined
}

function openDoors(options: AnyServerOptions, { names, isOwnAddress, clock, pairing, publicUrl }: DoorParts): Doors {
  const { tenants, tokens, ownerTenant = defaultTenant } = options
  const origins = new Set(options.allowedOrigins)
  // First, because it may throw.
  const proxies = new TrustedProxies(options.trustedProxies ?? [])
  const holders = new TokenHolders({
    tokens,
    clock,
    onRevoked: (tokenId) => {
      for (const sessions of tenants.values()) sessions.clientIds.release(tokenId)
    },
  })
  const limits = new UsageLimits({ tenants, tokens, tenantLimits: options.tenantLimits, clock })
  const waitingRoom = new WaitingRoom(clock, options.unauthenticated)
  const gatekeeper = new Gatekeeper({
    tokens,
    authenticate: options.authenticate,
    limiter: new FailureLimiter(clock, options.failures),
    hosts: new AllowedHosts(publicUrl ? [...names, publicUrl.host] : names, isOwnAddress),
    origins,
    publicOrigin: publicUrl?.origin,
    ownerTenant,
  })
  const closing = new AbortController()
  const storage = new StorageCheck(tenants, clock)
  const routes = new Routes(createGuard({ gatekeeper, holders, waitingRoom, limits }))
  const { metrics, log, tracerProvider } = options
  routes.app.use(observeRequests({ metrics, log, tracerProvider }))
  if (metrics) addMetrics(routes, metrics, ownerTenant)
  addCallerRoute(routes)
  if (tokens && pairing)
    addAuthRoutes(routes, { gatekeeper, tokens, pairing, clock, limits, roots: options.api?.roots ?? noApi.roots })
  const push =
    options.push &&
    new PushService({
      ...options.push,
      tenants,
      tokens,
      clock,
      onProblem: (problem) => log?.warn(problem, 'push message not sent'),
    })
  addRoutes(routes, {
    ...noApi,
    notReady: () => notReadyReason({ tenants, closing: closing.signal }) ?? storage.reason(),
    ...options.api,
    closing: closing.signal,
    clock,
    ...(push && { push }),
  })
  routes.addSocket(wsRoute.path)
  options.addRoutes?.(routes, { closing: closing.signal })
  const hasOwnPage = routes.declared.some(({ method, path }) => method === 'get' && path === '/')
  if (pairing && !hasOwnPage) addPage(routes, options.webApp === false ? undefined : findWebApp())
  const undeclared = undeclaredRoutes(routes)
  if (undeclared.length > 0)
    throw new Error(`No access is declared for ${undeclared.join(', ')}. Add these routes with Routes.add.`)
  const onUpgrade = log && ((done: FinishedUpgrade): void => logRequest(log, { ...done, ...upgradeRoute }))
  const ws = new WsDoor({ gatekeeper, holders, waitingRoom, limits, clock, onUpgrade })
  return { gatekeeper, holders, limits, push, waitingRoom, proxies, publicUrl, origins, routes, ws, closing, log }
}

const upgradeRoute = { method: 'GET', route: wsRoute.path, ms: 0, traceId: undefined }

const noApi = {
  models: () => Promise.resolve([]),
  agents: () => Promise.resolve([]),
  settings: () => Promise.reject(new RequestProblem(404, 'no-settings', 'This server has no settings.')),
  roots: () => [],
}

/** Runs in the background: clients can connect meanwhile. */
function recover(
  { tenants, recovery: policy, log }: AnyServerOptions,
  { clock, closing }: { clock: Clock; closing: AbortSignal },
): void {
  if (policy === undefined) return
  for (const [tenant, sessions] of tenants) {
    const onRecovered = ({ sessionId, step }: Recovered): void =>
      log?.info({ tenant, sessionId, step: step.type }, 'recovered')
    recoverSessions(sessions, { policy, clock, onRecovered }).catch((error: unknown) => {
      // The next start recovers the rest.
      if (closing.aborted) return
      log?.error({ tenant, message: error instanceof Error ? error.message : String(error) }, 'recovery failed')
    })
  }
}

/** Live sessions notify their observers, and end when their lines are on disk. */
async function closeDoors(
  { holders, limits, push, waitingRoom, ws, closing }: Doors,
  { tenants, metrics }: AnyServerOptions,
): Promise<void> {
  closing.abort()
  await push?.close()
  metrics?.close()
  const ended = await Promise.allSettled([...tenants.values()].map((sessions) => sessions.close()))
  ws.close()
  limits.close()
  holders.close()
  waitingRoom.close()
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}

interface Listener {
  isUnixSocket: boolean
  tls: TlsKeys | undefined
}

function createHttpServer(doors: Doors, { isUnixSocket, tls }: Listener): Server {
  const { handleRequest, handleUpgrade } = handlersOf(doors, { isUnixSocket })
  const server = tls
    ? createTlsServer({ ...serverSettings, handshakeTimeout, cert: tls.cert, key: tls.key }, handleRequest)
    : createServer(serverSettings, handleRequest)
  server.on('connection', (socket: Socket) => {
    if (!isUnixSocket && !doors.proxies.has(socket.remoteAddress ?? '')) doors.waitingRoom.enter(socket)
  })
  server.on('upgrade', handleUpgrade)
  return server
}

interface Handlers {
  handleRequest: RequestListener
  handleUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void
}

function handlersOf(doors: Doors, { isUnixSocket }: Pick<Listener, 'isUnixSocket'>): Handlers {
  const peerFor = (request: IncomingMessage): Peer =>
    peerOf(
      {
        remoteAddress: request.socket.remoteAddress,
        isEncrypted: 'encrypted' in request.socket,
        isUnixSocket,
        header: (name) => singleHeader(request, name),
      },
      doors.proxies,
      doors.publicUrl,
    )
  return {
    handleRequest: requestListener(doors, peerFor),
    handleUpgrade: (request, socket, head) => {
      if (doors.publicUrl) removePrefix(request, doors.publicUrl.prefix)
      doors.waitingRoom.heard(socket)
      const requestId = requestIdOf(singleHeader(request, requestIdHeader))
      doors.ws.upgrade(request, socket, { head, peer: peerFor(request), requestId })
    },
  }
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

function requestListener(doors: Doors, peerFor: (request: IncomingMessage) => Peer): RequestListener {
  const fetchApp = (request: Request, bindings: unknown): Response | Promise<Response> => {
    const { incoming, outgoing } = bindings as DoorBindings
    const requestId = String(outgoing.getHeader(requestIdHeader))
    return doors.routes.app.fetch(request, { ...(bindings as DoorBindings), peer: peerFor(incoming), requestId })
  }
  // The global classes `Request` and `Response` must not be replaced.
  const toApp = getRequestListener(fetchApp, { overrideGlobalObjects: false })
  return (request, response) => {
    doors.waitingRoom.heard(request.socket)
    for (const [name, value] of Object.entries(everyResponse)) response.setHeader(name, value)
    const requestId = requestIdOf(singleHeader(request, requestIdHeader))
    response.setHeader(requestIdHeader, requestId)
    const peer = peerFor(request)
    const refused = wrongHost(doors, request, peer)
    if (refused) {
      if (doors.log) logRequest(doors.log, refusedLine(request, { status: refused.status, requestId, peer }))
      return refuse(request, response, { ...refused, request_id: requestId })
    }
    if (allowOrigin(doors, request, response)) return undefined
    const { prefix = '' } = doors.publicUrl ?? {}
    if (prefix !== '' && request.url === prefix) return redirectBelow(prefix, response)
    removePrefix(request, prefix)
    return void toApp(request, response)
  }
}

/** Adds the headers for pages of an allowed origin. True if the request was a preflight, which is then answered. */
function allowOrigin({ origins }: Doors, request: IncomingMessage, response: ServerResponse): boolean {
  const origin = singleHeader(request, 'origin')
  if (origin === undefined || !origins.has(origin)) return false
  for (const [name, value] of Object.entries(corsHeaders(origin))) response.setHeader(name, value)
  const isPreflight = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers
  if (isPreflight) response.writeHead(204, preflightHeaders).end()
  return isPreflight
}

/** To the page whose relative URLs are below the prefix. The target is relative, because a proxy may have removed a part. */
function redirectBelow(prefix: string, response: ServerResponse): void {
  response.writeHead(308, { location: `./${prefix.slice(prefix.lastIndexOf('/') + 1)}/` }).end()
}

const requestIdHeader = 'x-request-id'

function refusedLine(
  { method = '', url = '' }: IncomingMessage,
  { status, requestId, peer }: { status: number; requestId: string; peer: Peer },
): RequestLine {
  const path = url.replace(/\?.*/s, '')
  const nobody = { tenant: undefined, caller: undefined, traceId: undefined }
  return { requestId, method, path, route: 'none', status, ms: 0, address: peer.address, ...nobody }
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
function wrongHost({ gatekeeper }: Doors, request: IncomingMessage, peer: Peer): Problem | undefined {
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
