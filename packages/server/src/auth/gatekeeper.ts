import type { IncomingMessage } from 'node:http'
import { localUser } from '../live/driver.ts'
import { RequestProblem } from '../util/problem-error.ts'
import { credentialOf } from './credential.ts'
import type { FailureLimiter } from './failure-limiter.ts'
import { changesSomething, checkOrigin, type AllowedHosts } from './host-origin.ts'
import type { Peer } from './peer.ts'
import { mayDo, roles, type Caller, type Role } from './operation-roles.ts'
import type { TokenStore } from './token-store.ts'

/** A user of a host application. */
export interface AuthenticatedUser {
  /** Unique in the tenant. Command ids and client ids belong to it. */
  id: string
  /** Whose sessions it uses. */
  tenant: string
  role: Role
  /** In milliseconds. Its connections end then. */
  expiresAt?: number
}

/** Identifies the user of a request, for example by a session cookie. Null: no user is signed in. */
export type Authenticate = (request: IncomingMessage) => AuthenticatedUser | null | Promise<AuthenticatedUser | null>

export interface GatekeeperOptions {
  /** Replaces tokens. */
  authenticate?: Authenticate | undefined
  /** Undefined: every token is rejected. */
  tokens: TokenStore | undefined
  limiter: FailureLimiter
  hosts: AllowedHosts
  /** Allowed origins besides our own, such as that of a development server. */
  origins?: ReadonlySet<string>
  /** The origin of the public URL. */
  publicOrigin?: string | undefined
  /** The tenant of the Unix socket's owner. */
  ownerTenant: string
}

/** The parts of a request that decide about access. */
export interface Visit {
  peer: Peer
  method: string
  /** A WebSocket upgrade; it counts as changing something, because any command may follow. */
  isUpgrade?: boolean
  header: (name: string) => string | undefined
}

/** The caller that was admitted, and until when. */
export interface Admitted {
  caller: Caller
  expiresAt?: number
}

/** The answer of the host application. */
export interface Identified {
  user: AuthenticatedUser | null
}

/** Authenticates and authorizes callers, for every endpoint. Each rejection is a `RequestProblem`. */
export class Gatekeeper {
  readonly #options: GatekeeperOptions

  constructor(options: GatekeeperOptions) {
    this.#options = options
  }

  /** Checked before anything else of a request. */
  checkHost({ host }: Peer): string {
    if (host !== undefined && this.#options.hosts.has(host)) return host
    const named = host === undefined ? 'no host' : `the host ${JSON.stringify(host.slice(0, 100))}`
    throw new RequestProblem(
      421,
      'host-not-allowed',
      `The request names ${named}, which is not a name of this server. Add it to the allowed hosts if it should be.`,
    )
  }

  /** For a public route: pages of other origins may not use it either. */
  checkStranger(visit: Visit): void {
    this.#checkOrigin(visit, false)
  }

  /** Asks the host application for the user. Undefined: tokens decide, or the owner is connected. */
  identify(request: IncomingMessage, { isOwner }: Peer): Promise<Identified> | undefined {
    const { authenticate } = this.#options
    if (!authenticate || isOwner) return undefined
    return (async () => ({ user: await authenticate(request) }))()
  }

  /** Synchronous, so that nothing can happen between the check and the registration of a connection. */
  admit(visit: Visit, needs: Role | 'any-role', identified?: Identified): Admitted {
    const { peer, header } = visit
    const credential = credentialOf(header, peer)
    const admitted = identified
      ? this.#admitUser(identified, visit)
      : credential.type === 'none'
        ? this.#admitOwner(peer)
        : this.#admitToken(credential.token, peer)
    // A host application may authenticate by any cookie.
    this.#checkOrigin(visit, identified ? header('cookie') !== undefined : credential.type === 'cookie')
    this.checkRole(admitted.caller, needs)
    return admitted
  }

  /** For a caller that was admitted before, such as one with an open connection. */
  checkRole({ role }: Caller, needs: Role | 'any-role'): void {
    if (needs === 'any-role' || mayDo(role, needs)) return
    const detail = `This needs the role ${needs}; the caller has the role ${role}.`
    throw new RequestProblem(403, 'role-too-small', detail, { needs })
  }

  /** Records a failed attempt. */
  failed(peer: Peer, reason = 'The token is unknown, was revoked or has expired.'): RequestProblem {
    const waitMs = this.#options.limiter.fail(peer.address)
    if (waitMs === 0) return new RequestProblem(401, 'not-signed-in', reason)
    const seconds = Math.ceil(waitMs / 1000)
    const detail = `Too many invalid credentials from this address. Try again in ${seconds} s.`
    return new RequestProblem(429, 'too-many-failures', detail, { retry_after_ms: waitMs })
  }

  #admitUser({ user }: Identified, { peer, header }: Visit): Admitted {
    if (!user) {
      const isAttempt = header('cookie') !== undefined || header('authorization') !== undefined
      if (isAttempt) throw this.failed(peer, 'The sign-in is unknown or has expired.')
      throw new RequestProblem(401, 'not-signed-in', 'This needs a signed-in user.')
    }
    const { id, tenant, role, expiresAt } = user
    if (id === '' || !roles.includes(role)) throw new TypeError('`authenticate` returned a user without an id or role.')
    // Encoded, because a colon separates the caller from its command ids; the prefix keeps it apart from token ids.
    const caller = { tokenId: `user-${encodeURIComponent(id)}`, tenant, role }
    return { caller, ...(expiresAt !== undefined && { expiresAt }) }
  }

  #admitOwner({ isOwner }: Peer): Admitted {
    if (!isOwner)
      throw new RequestProblem(401, 'not-signed-in', 'This needs a token. Send one as a bearer token, or sign in.')
    return { caller: { tokenId: localUser, tenant: this.#options.ownerTenant, role: 'drive' } }
  }

  /** Verifies the token first: a valid one is admitted regardless of earlier failures of its address. */
  #admitToken(token: string, peer: Peer): Admitted {
    const record = this.#options.tokens?.verify(token)
    if (!record) throw this.failed(peer)
    const { id, tenant, role, folder, expiresAt } = record
    const caller = { tokenId: id, tenant, role, ...(folder !== undefined && { folder }) }
    return { caller, ...(expiresAt !== undefined && { expiresAt }) }
  }

  #checkOrigin({ peer, method, isUpgrade = false, header }: Visit, byCookie: boolean): void {
    const origin = header('origin')
    const question = {
      origin,
      fetchSite: header('sec-fetch-site'),
      scheme: peer.scheme,
      host: this.checkHost(peer),
      byCookie,
      changesSomething: isUpgrade || changesSomething(method),
    }
    switch (checkOrigin(question, this.#options.origins)) {
      case 'fine':
        return
      case 'foreign':
        throw new RequestProblem(403, 'origin-not-allowed', this.#whyForeign(origin, peer))
      case 'missing':
        throw new RequestProblem(
          403,
          'origin-missing',
          'A request with a cookie that changes something must have an Origin header.',
        )
    }
  }

  /** Our own page behind a proxy looks foreign if the proxy replaces the name. */
  #whyForeign(origin: string | undefined, { host = '' }: Peer): string {
    if (origin === undefined || origin !== this.#options.publicOrigin)
      return `Pages of ${quoted(origin)} may not use this server. Add the origin to the allowed origins if they should.`
    return (
      `The page has the public origin of this server, but the proxy passed the host ${JSON.stringify(host.slice(0, 100))}. ` +
      'Configure the proxy to pass Host, or to set X-Forwarded-Host, and list it as a trusted proxy.'
    )
  }
}

function quoted(origin: string | undefined): string {
  return origin === undefined ? 'another origin' : JSON.stringify(origin.slice(0, 100))
}
