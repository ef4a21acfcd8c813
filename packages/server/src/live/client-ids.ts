import { RequestProblem } from '../util/problem-error.ts'

/** Client names that the server itself writes into logs. */
const reserved: ReadonlySet<string> = new Set(['rest', 'server', 'task'])
/** Beyond this, a token gives up its least recently used ids. */
const maxPerToken = 1000

/**
 * Client ids belong to the token that uses them first, until it is revoked or the server restarts. Logs name
 * clients by them.
 */
export class ClientIds {
  readonly #owners = new Map<string, string>()
  /** Ordered by last use. */
  readonly #byToken = new Map<string, Set<string>>()

  /** Throws `client-id-taken` if the id belongs to another token or to the server. */
  claim(clientId: string, tokenId: string): void {
    const owner = this.#owners.get(clientId)
    if (reserved.has(clientId) || (owner !== undefined && owner !== tokenId)) {
      const detail = `The client id ${clientId} belongs to another token. Choose another one.`
      throw new RequestProblem(403, 'client-id-taken', detail)
    }
    const own = this.#byToken.get(tokenId) ?? new Set()
    own.delete(clientId)
    this.#byToken.set(tokenId, own.add(clientId))
    this.#owners.set(clientId, tokenId)
    const [oldest] = own
    if (own.size > maxPerToken && oldest !== undefined) {
      own.delete(oldest)
      this.#owners.delete(oldest)
    }
  }

  /** Releases the ids of a revoked token. */
  release(tokenId: string): void {
    for (const clientId of this.#byToken.get(tokenId) ?? []) this.#owners.delete(clientId)
    this.#byToken.delete(tokenId)
  }
}
