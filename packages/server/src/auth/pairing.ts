import { systemClock, type Clock } from '@tapetree/agent'
import { createHash, randomBytes } from 'node:crypto'
import type { NewToken, TokenRecord, TokenStore } from './token-store.ts'

const defaultLifeMs = 5 * 60_000
/** A new code beyond these ends the oldest. */
const maxOpen = 100

interface OpenCode {
  grant: NewToken
  until: number
}

/** Codes that are each good for one token of their own, once and not for long. */
export class Pairing {
  readonly #tokens: TokenStore
  readonly #clock: Clock
  /** By hash: who reads our memory cannot pair with it, and looking one up tells nothing by its time. */
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

  /** Undefined for a code that was never given out, is used up or too old. */
  async exchange(code: string, name?: string): Promise<{ token: string; record: TokenRecord } | undefined> {
    const key = keyOf(code)
    const found = this.#open.get(key)
    // Before anything is awaited: of two who come with one code, one gets in.
    this.#open.delete(key)
    if (!found || found.until <= this.#clock.now()) return undefined
    return this.#tokens.create({ ...found.grant, ...(name !== undefined && { name }) })
  }
}

/** A browser never sends what stands behind `#`, so neither code nor fingerprint is in any log on the way. */
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
