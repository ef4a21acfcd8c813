import type { TracerProvider } from '@opentelemetry/api'
import type { Clock } from '@tapetree/agent/run'
import type { Limits } from '@tapetree/client/protocol'
import type { FailureLimits } from './auth/failure-limiter.ts'
import type { Authenticate } from './auth/gatekeeper.ts'
import type { SharedDocument } from './auth/shared-document.ts'
import type { TokenStore } from './auth/token-store.ts'
import type { WaitingRoomLimits } from './auth/waiting-room.ts'
import type { SessionBus } from './bus/session-bus.ts'
import type { ServeEditor } from './editors.ts'
import type { ApiParts, Routes } from './http/app.ts'
import type { LiveSessions } from './live/live-sessions.ts'
import type { RecoveryPolicy } from './live/recovery.ts'
import type { Log } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import type { PushOptions } from './push/push-service.ts'
import type { ToolHosts } from './tool-hosts/tool-hosts.ts'
import type { TlsOptions } from './tls.ts'

export interface ServerOptions {
  /** The sessions of each tenant. The server closes them on shutdown. */
  tenants: ReadonlyMap<string, LiveSessions>
  /** Either this or `authenticate` is required. */
  tokens?: TokenStore
  /** Where open pairing codes are, if several servers share them. Default: in the memory of this one. */
  pairingCodes?: SharedDocument
  /** Identifies callers instead of tokens, for users of a host application. */
  authenticate?: Authenticate
  /** Data of the routes besides sessions. Without roots no folder can be used. */
  api?: Partial<Omit<ApiParts, 'onGap' | 'closing' | 'clock' | 'push' | 'toolHosts'>>
  /**
   * Connects the servers of one database to one service: clients of each may use all sessions. The server closes it on
   * shutdown.
   */
  bus?: SessionBus
  /** Lets tool hosts connect, whose folders sessions may use. The server closes it on shutdown. */
  toolHosts?: ToolHosts
  /** Lets editors connect at `/acp`, and speaks the Agent Client Protocol with each. Absent: there is no such path. */
  editors?: ServeEditor
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
  | 'port'
  | 'unixSocket'
  | 'tokens'
  | 'pairingCodes'
  | 'authenticate'
  | 'host'
  | 'tls'
  | 'allowInsecure'
  | 'trustedProxies'
  | 'publicUrl'
> {
  /** No port. */
  port: null
  unixSocket: string
  /** Absent: no token is accepted, and none can be created. */
  tokens?: TokenStore
}

/** Handles requests on a server of the host application. The options of listening are those of that server. */
export interface HandlerOptions extends Omit<
  ServerOptions,
  'host' | 'port' | 'unixSocket' | 'tls' | 'allowInsecure' | 'unauthenticated' | 'graceMs'
> {
  /** Where it is mounted, such as `/agent`. Default: at the root, or where a framework has removed the prefix. */
  prefix?: string
}

/** The options that do not depend on how requests arrive. */
export type EndpointOptions = Omit<ServerOptions, 'host' | 'port' | 'unixSocket' | 'tls' | 'allowInsecure'>

export function requireAuthentication({ tokens, authenticate }: Pick<ServerOptions, 'tokens' | 'authenticate'>): void {
  if ((tokens === undefined) === (authenticate === undefined))
    throw new Error('A server needs either `tokens` or `authenticate`, and not both.')
}
