import type { HttpBindings } from '@hono/node-server'
import type { Context, MiddlewareHandler } from 'hono'
import type { Admitted, Gatekeeper, Visit } from '../auth/gatekeeper.ts'
import type { UsageLimits } from '../auth/limits.ts'
import { mediaType } from '../auth/host-origin.ts'
import type { Peer } from '../auth/peer.ts'
import type { TokenHolders } from '../auth/token-holders.ts'
import type { WaitingRoom } from '../auth/waiting-room.ts'
import { RequestProblem } from '../util/problem-error.ts'
import type { AppEnv, Guard } from './app.ts'

/** Bindings that the server passes to an app with each request. */
export interface DoorBindings extends HttpBindings {
  peer: Peer
  requestId: string
}

/** Bindings of a request that an open connection of an admitted caller makes in this process. */
export interface InnerBindings {
  admitted: Admitted
  peer: Peer
  requestId: string
}

export interface GuardOptions {
  gatekeeper: Gatekeeper
  holders: TokenHolders
  waitingRoom: WaitingRoom
  limits: UsageLimits
}

/** Body limit for unauthenticated callers; authenticated ones have the limit of the route. */
const maxStrangerBytes = 64 * 1024

/** Runs before every route: identifies the caller, or throws the problem. */
export function createGuard(options: GuardOptions): Guard {
  const { gatekeeper, limits } = options
  return (access, mediaTypes) => {
    const guard: MiddlewareHandler<AppEnv> = async (context, next) => {
      const visit = visitOf(context)
      const inner = innerOf(context)
      gatekeeper.checkHost(visit.peer)
      if (access === 'anyone') {
        gatekeeper.checkStranger(visit)
        checkBody(visit, mediaTypes, maxStrangerBytes)
      } else {
        const incoming = bindingsOf(context)?.incoming
        const identified = incoming && (await gatekeeper.identify(incoming, visit.peer))
        if (inner) gatekeeper.checkRole(inner.admitted.caller, access)
        const admitted = inner?.admitted ?? gatekeeper.admit(visit, access, identified)
        const { caller, expiresAt } = admitted
        const sessions = limits.sessionsOf(caller)
        if (!sessions) throw new RequestProblem(403, 'tenant-unknown', 'This server hosts no sessions of this tenant.')
        limits.takeRequest(caller)
        checkBody(visit, mediaTypes, Infinity)
        holdRequest(context, options, admitted)
        context.set('caller', caller)
        context.set('expiresAt', expiresAt)
        context.set('sessions', sessions)
        context.set('limits', limits.of(caller))
      }
      await next()
    }
    return guard
  }
}

/** Outside of a server, as in route tests, a request has no peer. */
export function visitOf(context: Context): Visit {
  const { method, url } = context.req
  const { host, protocol } = new URL(url)
  const nowhere: Peer = { address: '', scheme: protocol === 'https:' ? 'https' : 'http', host, isOwner: false }
  return {
    peer: (bindingsOf(context) ?? innerOf(context))?.peer ?? nowhere,
    method,
    header: (name) => context.req.header(name),
  }
}

/** A body must declare its type, which excludes the types that a form on a foreign page can send. */
function checkBody({ method, header }: Visit, mediaTypes: readonly string[], maxBytes: number): void {
  if (method === 'GET' || method === 'HEAD') return
  const length = Number(header('content-length') ?? 0)
  const contentType = header('content-type')
  const isChunked = header('transfer-encoding') !== undefined
  if (!isChunked && length === 0 && contentType === undefined) return
  const wanted = mediaTypes.length > 0 ? mediaTypes : ['application/json']
  if (!wanted.some((each) => matches(mediaType(contentType), each))) {
    const detail = `The content type must be ${wanted.join(' or ')}.`
    throw new RequestProblem(415, 'wrong-media-type', detail)
  }
  // The body limit uses the declared length; measuring during the read would buffer everything.
  if (isChunked)
    throw new RequestProblem(411, 'length-required', 'A request with a body must have a Content-Length header.')
  if (length > maxBytes) {
    throw new RequestProblem(413, 'too-large', `The body exceeds the limit of ${maxBytes} bytes.`, {
      max_bytes: maxBytes,
    })
  }
}

function matches(type: string, wanted: string): boolean {
  return wanted.endsWith('/*') ? type.startsWith(wanted.slice(0, -1)) : type === mediaType(wanted)
}

/** Ends a long response, such as an event stream, when its token is revoked or expires. */
function holdRequest(
  context: Context<AppEnv>,
  { holders, waitingRoom }: GuardOptions,
  admitted: Parameters<TokenHolders['hold']>[0],
): void {
  const bindings = bindingsOf(context)
  if (!bindings) return
  const { incoming, outgoing } = bindings
  waitingRoom.admit(incoming.socket)
  const revoked = new AbortController()
  context.set('revoked', revoked.signal)
  const release = holders.hold(admitted, () => {
    revoked.abort()
    outgoing.destroy()
  })
  outgoing.once('close', release)
}

function innerOf(context: Context): InnerBindings | undefined {
  const env = context.env as Partial<InnerBindings> | undefined
  return env?.admitted ? (env as InnerBindings) : undefined
}

function bindingsOf(context: Context): DoorBindings | undefined {
  const env = context.env as Partial<DoorBindings> | undefined
  return env?.incoming ? (env as DoorBindings) : undefined
}
