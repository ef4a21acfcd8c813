import { systemClock, type Clock } from '@tapetree/agent/run'
import { createHash, randomBytes } from 'node:crypto'
import type { NewToken, TokenRecord, TokenStore } from './token-store.ts'

const defaultLifeMs = 5 * 60_000
/** Beyond this, a new code invalidates the oldest one. */
const maxOpen = 100

interface OpenCode {
  grant: NewToken
  until: number
}

/** Short-lived codes, each of which can be exchanged once for a new token. */
export class Pairing {
  readonly #tokens: TokenStore
  readonly #clock: Clock
  /** By hash: reading our memory does not reveal a code, and lookup time tells nothing. */
  readonly #open = new Map<string, OpenCode>()

  constructor(tokens: TokenStore, clock: Clock = systemClock) {
    this.#tokens = tokens
    this.#clock = clock
  }

  begin(grant: NewToken, lifeMs = defaultLifeMs): { code: string; expiresAt: number } {
    const code = randomBytes(32).toString('base64url')
    const until = this.#clock.now() + lifeMs
    this.#open.set(keyOf(code), { grant, until })
    const [oldest] = this.#open.keys()
    if (this.#open.size > maxOpen && oldest !== undefined) this.#open.delete(oldest)
    return { code, expiresAt: until }
  }

  /** Undefined if the code is unknown, used or expired. */
  async exchange(code: string, name?: string): Promise<{ token: string; record: TokenRecord } | undefined> {
    const key = keyOf(code)
    const found = this.#open.get(key)
    // Before anything is awaited: of two concurrent exchanges of one code, one succeeds.
    this.#open.delete(key)
    if (!found || found.until <= this.#clock.now()) return undefined
    return this.#tokens.create({ ...found.grant, ...(name !== undefined && { name }) })
  }
}

/** Browsers never send the fragment, so neither code nor fingerprint appears in a proxy's log. */
export function pairingLink(
  url: string,
  { code, fingerprint }: { code: string; fingerprint?: string | undefined },
): string {
  const fragment = new URLSearchParams({ pair: code, ...(fingerprint !== undefined && { fingerprint }) })
  return `${new URL('/', url).href}#${fragment.toString()}`
}

function keyOf(code: string): string {
  return createHash('sha256').update(code).digest('hex')
}
