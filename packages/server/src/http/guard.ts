import type { HttpBindings } from '@hono/node-server'
import type { Context, MiddlewareHandler } from 'hono'
import type { Gatekeeper, Visit } from '../auth/gatekeeper.ts'
import { mediaType } from '../auth/host-origin.ts'
import type { Peer } from '../auth/peer.ts'
import type { TokenHolders } from '../auth/token-holders.ts'
import type { WaitingRoom } from '../auth/waiting-room.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { RequestProblem } from '../util/problem-error.ts'
import type { AppEnv, Guard } from './app.ts'

/** What the server hands an app with each request. */
export interface DoorBindings extends HttpBindings {
  peer: Peer
}

export interface GuardOptions {
  gatekeeper: Gatekeeper
  holders: TokenHolders
  waitingRoom: WaitingRoom
  tenants: ReadonlyMap<string, LiveSessions>
}

/** Somebody unknown may say this much; to who is known, each route has its own limit. */
const maxStrangerBytes = 64 * 1024

/** Stands before every route: says who calls, or throws what they are told. */
export function createGuard(options: GuardOptions): Guard {
  const { gatekeeper, tenants } = options
  return (access, mediaTypes) => {
    const guard: MiddlewareHandler<AppEnv> = async (context, next) => {
      const visit = visitOf(context)
      gatekeeper.checkHost(visit.peer)
      if (access === 'anyone') {
        gatekeeper.checkStranger(visit)
        checkBody(visit, mediaTypes, maxStrangerBytes)
      } else {
        const admitted = gatekeeper.admit(visit, access)
        const sessions = tenants.get(admitted.caller.tenant)
        if (!sessions) throw new RequestProblem(403, 'tenant-unknown', 'This server hosts nothing of this tenant.')
        checkBody(visit, mediaTypes, Infinity)
        holdRequest(context, options, admitted)
        context.set('caller', admitted.caller)
        context.set('sessions', sessions)
      }
      await next()
    }
    return guard
  }
}

/** Outside of a server, as in tests of routes, a request comes from nowhere in particular. */
export function visitOf(context: Context): Visit {
  const { method, url } = context.req
  const { host, protocol } = new URL(url)
  const nowhere: Peer = { address: '', scheme: protocol === 'https:' ? 'https' : 'http', host, isOwner: false }
  return { peer: bindingsOf(context)?.peer ?? nowhere, method, header: (name) => context.req.header(name) }
}

/** A body names its type, and one that a form of a foreign page can send is not among ours. */
function checkBody({ method, header }: Visit, mediaTypes: readonly string[], maxBytes: number): void {
  if (method === 'GET' || method === 'HEAD') return
  const length = Number(header('content-length') ?? 0)
  const contentType = header('content-type')
  const isChunked = header('transfer-encoding') !== undefined
  if (!isChunked && length === 0 && contentType === undefined) return
  const wanted = mediaTypes.length > 0 ? mediaTypes : ['application/json']
  if (!wanted.some((each) => matches(mediaType(contentType), each))) {
    const detail = `A body here is ${wanted.join(' or ')}, and says so in its content type.`
    throw new RequestProblem(415, 'wrong-media-type', detail)
  }
  // The limit on a body goes by what it says; whoever measured it while it comes would hold all of it.
  if (isChunked) throw new RequestProblem(411, 'length-required', 'A body says how long it is in its content length.')
  if (length > maxBytes) {
    throw new RequestProblem(413, 'too-large', `A body here has at most ${maxBytes} bytes.`, { max_bytes: maxBytes })
  }
}

function matches(type: string, wanted: string): boolean {
  return wanted.endsWith('/*') ? type.startsWith(wanted.slice(0, -1)) : type === mediaType(wanted)
}

/** A response that goes on and on, such as a stream of events, ends with the token it was asked for by. */
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

function bindingsOf(context: Context): DoorBindings | undefined {
  const env = context.env as Partial<DoorBindings> | undefined
  return env?.incoming ? (env as DoorBindings) : undefined
}
