import { localUser } from '../live/driver.ts'
import { RequestProblem } from '../util/problem-error.ts'
import { credentialOf } from './credential.ts'
import type { FailureLimiter } from './failure-limiter.ts'
import { changesSomething, checkOrigin, type AllowedHosts } from './host-origin.ts'
import type { Peer } from './peer.ts'
import { mayDo, type Caller, type Role } from './operation-roles.ts'
import type { TokenStore } from './token-store.ts'

export interface GatekeeperOptions {
  /** Undefined: no token is good. */
  tokens: TokenStore | undefined
  limiter: FailureLimiter
  hosts: AllowedHosts
  /** Origins besides our own, such as that of a page in development. */
  origins?: ReadonlySet<string>
  /** Whose sessions the owner of the Unix socket drives. */
  ownerTenant: string
}

/** A request, as far as it matters for letting it in. */
export interface Visit {
  peer: Peer
  method: string
  /** Opens a WebSocket: all may come through it, so it counts as changing something. */
  isUpgrade?: boolean
  header: (name: string) => string | undefined
}

/** Who came in, and until when. */
export interface Admitted {
  caller: Caller
  expiresAt?: number
}

/** Decides who comes in, for every door alike. Each refusal is a `RequestProblem`. */
export class Gatekeeper {
  readonly #options: GatekeeperOptions

  constructor(options: GatekeeperOptions) {
    this.#options = options
  }

  /** Before anything else of a request is looked at. */
  checkHost({ host }: Peer): string {
    if (host !== undefined && this.#options.hosts.has(host)) return host
    const named = host === undefined ? 'no host' : `the host ${JSON.stringify(host.slice(0, 100))}`
    throw new RequestProblem(421, 'host-not-allowed', `The request names ${named}, which is none of this server's.`)
  }

  /** For a route that is for anyone: no foreign page may use it either. */
  checkStranger(visit: Visit): void {
    this.#checkOrigin(visit, false)
  }

  admit(visit: Visit, needs: Role): Admitted {
    const { peer, header } = visit
    const credential = credentialOf(header, peer)
    const admitted = credential.type === 'none' ? this.#admitOwner(peer) : this.#admitToken(credential.token, peer)
    this.#checkOrigin(visit, credential.type === 'cookie')
    const { role } = admitted.caller
    if (!mayDo(role, needs)) {
      throw new RequestProblem(403, 'role-too-small', `This needs the role ${needs}; the token has ${role}.`, { needs })
    }
    return admitted
  }

  /** Somebody tried something that was no key. */
  failed(peer: Peer): RequestProblem {
    const waitMs = this.#options.limiter.fail(peer.address)
    if (waitMs === 0)
      return new RequestProblem(401, 'not-signed-in', 'The token is not one of this server, or is over.')
    const seconds = Math.ceil(waitMs / 1000)
    const detail = `Too many wrong tokens came from this address. Try again in ${seconds} s.`
    return new RequestProblem(429, 'too-many-failures', detail, { retry_after_ms: waitMs })
  }

  #admitOwner({ isOwner }: Peer): Admitted {
    if (!isOwner) throw new RequestProblem(401, 'not-signed-in', 'This needs a token.')
    return { caller: { tokenId: localUser, tenant: this.#options.ownerTenant, role: 'drive' } }
  }

  /** The token first: a good one is let in whatever came from its address before. */
  #admitToken(token: string, peer: Peer): Admitted {
    const record = this.#options.tokens?.verify(token)
    if (!record) throw this.failed(peer)
    const { id, tenant, role, expiresAt } = record
    return { caller: { tokenId: id, tenant, role }, ...(expiresAt !== undefined && { expiresAt }) }
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
        throw new RequestProblem(403, 'origin-not-allowed', `Pages of ${quoted(origin)} may not use this server.`)
      case 'missing':
        throw new RequestProblem(403, 'origin-missing', 'A request by cookie that changes something names its origin.')
    }
  }
}

function quoted(origin: string | undefined): string {
  return origin === undefined ? 'another origin' : JSON.stringify(origin.slice(0, 100))
}
