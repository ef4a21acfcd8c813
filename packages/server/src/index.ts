export { agentSessions, type AgentSessionsOptions } from './drivers/agent-sessions.ts'
export { Pairing, pairingLink } from './auth/pairing.ts'
export { DatabaseDocument } from './auth/shared-document.ts'
export { NatsBus, type NatsBusOptions } from './bus/nats-bus.ts'
export { RelayBus } from './bus/relay-bus.ts'
export type { SessionBus } from './bus/session-bus.ts'
export { storedUsage } from './auth/limits.ts'
export type { Caller, Role } from './auth/operation-roles.ts'
export {
  defaultTenant,
  tokenInfo,
  TokenStore,
  type NewToken,
  type TokenRecord,
  type TokenStoreOptions,
} from './auth/token-store.ts'
export { folderInside } from './http/bodies/list-files.ts'
export type { RouteAccess } from './http/app.ts'
export { AgentDriver, type AgentDriverOptions } from './drivers/agent-driver.ts'
export type { CommandRights, DriverEvent, SessionDriver, SlashCommand } from './live/driver.ts'
export { createCodingSession, openCodingDriver, type CodingDriverOptions } from './drivers/coding-driver.ts'
export { LiveSession, type LiveSessionOptions } from './live/live-session.ts'
export { LiveSessions, type LiveSessionsOptions, type NewSession } from './live/live-sessions.ts'
export { LocalSession } from './local/local-session.ts'
export { ReadOnlySession } from './local/local-session-read-only.ts'
export { RequestProblem } from './util/problem-error.ts'
export { recoverSessions, type Recovered, type RecoveryOptions, type RecoveryPolicy } from './live/recovery.ts'
export { storeInside } from './live/store-inside.ts'
export { createLog, type Log, type LogOptions } from './observe/log.ts'
export { Metrics } from './observe/metrics.ts'
export { tracing, type TraceOptions } from './observe/traces.ts'
export type { Authenticate, AuthenticatedUser } from './auth/gatekeeper.ts'
export { createHandler, type ServerHandler } from './mount.ts'
export type { HandlerOptions, ServerOptions, SocketServerOptions } from './server-options.ts'
export { startServer, type RunningServer, type SocketServer } from './server.ts'
export type { TlsOptions } from './tls.ts'
