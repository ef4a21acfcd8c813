import { RequestProblem } from '../util/problem-error.ts'

/** Names that the server itself writes into logs. */
const reserved: ReadonlySet<string> = new Set(['rest', 'server', 'task'])
/** A token that uses more gives up those it has not used for longest. */
const maxPerToken = 1000

/** Client ids belong to the token that uses them first, until it is revoked or the server restarts. Logs name clients by them. */
export class ClientIds {
  readonly #owners = new Map<string, string>()
  /** In the order of their last use. */
  readonly #byToken = new Map<string, Set<string>>()

  /** Throws `client-id-taken` if the id belongs to another token or to the server. */
  claim(clientId: string, tokenId: string): void {
    const owner = this.#owners.get(clientId)
    if (reserved.has(clientId) || (owner !== undefined && owner !== tokenId)) {
      const detail = `The client id ${clientId} belongs to somebody else. Choose another one.`
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

  /** For a token that was revoked: its ids are free. */
  release(tokenId: string): void {
    for (const clientId of this.#byToken.get(tokenId) ?? []) this.#owners.delete(clientId)
    this.#byToken.delete(tokenId)
  }
}
