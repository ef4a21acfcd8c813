import type { Clock } from '@tapetree/agent/run'
import { FailureLimiter } from './auth/failure-limiter.ts'
import { Gatekeeper } from './auth/gatekeeper.ts'
import { AllowedHosts } from './auth/host-origin.ts'
import { UsageLimits } from './auth/limits.ts'
import type { Pairing } from './auth/pairing.ts'
import { TrustedProxies } from './auth/peer.ts'
import type { PublicUrl } from './auth/public-url.ts'
import { TokenHolders } from './auth/token-holders.ts'
import { defaultTenant } from './auth/token-store.ts'
import { WaitingRoom } from './auth/waiting-room.ts'
import { Routes, undeclaredRoutes } from './http/app.ts'
import { createGuard } from './http/guard.ts'
import { addRoutes } from './http/routes/add-routes.ts'
import { addAuthRoutes, addCallerRoute } from './http/routes/auth.ts'
import { addMetrics } from './http/routes/health.ts'
import { addPage } from './http/routes/page.ts'
import { findWebApp } from './http/routes/web-app.ts'
import type { LiveSessions } from './live/live-sessions.ts'
import type { BusDoor } from './bus/session-bus.ts'
import { NodeLink } from './nodes/node-link.ts'
import {
  recoverAbandoned,
  recoverOpened,
  recoverSessions,
  type Recovered,
  type RecoveryOptions,
} from './live/recovery.ts'
import type { Log } from './observe/log.ts'
import { notReadyReason, StorageCheck } from './observe/readiness.ts'
import { logRequest, observeRequests } from './observe/requests.ts'
import { PushService } from './push/push-service.ts'
import type { EndpointOptions } from './server-options.ts'
import { RequestProblem } from './util/problem-error.ts'
import { linkOf } from './editors.ts'
import { editorRoute, hostRoute, WsDoor, wsRoute, type FinishedUpgrade } from './ws/ws-door.ts'

/** All routes and the WebSocket, with the state that the listeners share. They do not depend on how requests arrive. */
export interface Endpoints {
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
  /** Where other nodes connect. */
  door: BusDoor | undefined
  ws: WsDoor
  /** Where WebSockets are opened. */
  sockets: readonly (typeof wsRoute | typeof hostRoute | typeof editorRoute)[]
  closing: AbortController
  nodes: NodeLink | undefined
  log: Log | undefined
}

interface EndpointDeps {
  names: readonly string[]
  isOwnAddress?: (address: string) => boolean
  clock: Clock
  pairing: Pairing | undefined
  publicUrl?: PublicUrl | undefined
}

export function openEndpoints(
  options: EndpointOptions,
  { names, isOwnAddress, clock, pairing, publicUrl }: EndpointDeps,
): Endpoints {
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
  const limiter = new FailureLimiter(clock, options.failures)
  const gatekeeper = new Gatekeeper({
    tokens,
    authenticate: options.authenticate,
    limiter,
    hosts: new AllowedHosts(publicUrl ? [...names, publicUrl.host] : names, isOwnAddress),
    origins,
    publicOrigin: publicUrl?.origin,
    ownerTenant,
  })
  const closing = new AbortController()
  const { bus } = options
  const nodes = bus && new NodeLink({ bus, tenants, clock, limiter, limits, tokens })
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
    ...(bus && { onGap: (listener) => bus.onGap(listener) }),
    ...(options.toolHosts && { toolHosts: options.toolHosts }),
  })
  const { editors } = options
  const sockets = [wsRoute, ...(options.toolHosts ? [hostRoute] : []), ...(editors ? [editorRoute] : [])]
  for (const { path } of sockets) routes.addSocket(path)
  options.addRoutes?.(routes, { closing: closing.signal })
  const hasOwnPage = routes.declared.some(({ method, path }) => method === 'get' && path === '/')
  if (pairing && !hasOwnPage) addPage(routes, options.webApp === false ? undefined : findWebApp())
  const undeclared = undeclaredRoutes(routes)
  if (undeclared.length > 0)
    throw new Error(`No access is declared for ${undeclared.join(', ')}. Add these routes with Routes.add.`)
  const onUpgrade = log && ((done: FinishedUpgrade): void => logRequest(log, { ...done, ...upgradeRoute }))
  const ws = new WsDoor({
    gatekeeper,
    holders,
    waitingRoom,
    limits,
    toolHosts: options.toolHosts,
    serveEditor: editors && ((editor) => editors(linkOf(editor, { routes, limits }))),
    clock,
    onUpgrade,
  })
  return {
    gatekeeper,
    holders,
    limits,
    push,
    waitingRoom,
    proxies,
    publicUrl,
    origins,
    routes,
    ws,
    sockets,
    door: bus?.door,
    closing,
    nodes,
    log,
  }
}

const upgradeRoute = { method: 'GET', route: wsRoute.path, ms: 0, traceId: undefined }

const noApi = {
  models: () => Promise.resolve([]),
  agents: () => Promise.resolve([]),
  settings: () => Promise.reject(new RequestProblem(404, 'no-settings', 'This server has no settings.')),
  roots: () => [],
}

/** Runs in the background: clients can connect meanwhile. */
export function recover(
  { tenants, recovery: policy, log }: EndpointOptions,
  { clock, closing }: { clock: Clock; closing: AbortSignal },
): void {
  if (policy === undefined) return
  for (const [tenant, sessions] of tenants) {
    const onRecovered = ({ sessionId, step }: Recovered): void =>
      log?.info({ tenant, sessionId, step: step.type, ...detailsOf(step) }, 'recovered')
    const options = { policy, clock, onRecovered }
    const failed = (error: unknown): void => {
      // The next start recovers the rest.
      if (closing.aborted) return
      log?.error({ tenant, message: messageOf(error) }, 'recovery failed')
    }
    void recoverSessions(sessions, options)
      .catch(failed)
      .then(() => takeOverAbandoned(sessions, { ...options, closing, failed }))
  }
}

function detailsOf(step: Recovered['step']): { reason?: string } {
  if (step.type === 'wait-for-person') return { reason: step.reason }
  return step.type === 'failed' ? { reason: messageOf(step.error) } : {}
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Continues the sessions of servers that die, as long as this one runs. */
async function takeOverAbandoned(
  sessions: LiveSessions,
  {
    closing,
    failed,
    ...options
  }: RecoveryOptions & { clock: Clock; closing: AbortSignal; failed: (error: unknown) => void },
): Promise<void> {
  let stop: (() => void) | undefined
  for (let canTell = true; canTell && !closing.aborted;) {
    if (!sessions.isDraining) {
      canTell = await recoverAbandoned(sessions, options).then(
        (recovered) => recovered !== undefined,
        (error: unknown) => {
          failed(error)
          return true
        },
      )
    }
    if (!canTell) break
    stop ??= recoverOpened(sessions, options)
    await options.clock.wait(abandonedEveryMs, closing).catch(() => undefined)
  }
  stop?.()
}

/** How often a server looks for sessions of servers that have died. */
const abandonedEveryMs = 500

/** Takes no new work and waits for runs to finish. Resolves with false if some are still at work after `ms`. */
export async function drainEndpoints(
  { closing }: Endpoints,
  { tenants, log }: EndpointOptions,
  { ms, clock }: { ms: number; clock: Clock },
): Promise<boolean> {
  const late = new AbortController()
  const isOver = AbortSignal.any([late.signal, closing.signal])
  const done = new AbortController()
  void clock.wait(ms, done.signal).then(
    () => late.abort(),
    () => undefined,
  )
  log?.info({ ms }, 'draining')
  await Promise.all([...tenants.values()].map((sessions) => sessions.drain(isOver)))
  done.abort()
  return !isOver.aborted
}

/** Live sessions notify their observers, and end when their lines are on disk. */
export async function closeEndpoints(
  { holders, limits, push, waitingRoom, ws, closing, nodes }: Endpoints,
  { tenants, metrics, bus, toolHosts }: EndpointOptions,
): Promise<void> {
  closing.abort()
  await push?.close()
  metrics?.close()
  const ended = await Promise.allSettled([...tenants.values()].map((sessions) => sessions.close()))
  nodes?.close()
  toolHosts?.close()
  await bus?.close()
  ws.close()
  limits.close()
  holders.close()
  waitingRoom.close()
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}
