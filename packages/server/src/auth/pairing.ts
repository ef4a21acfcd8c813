import { systemClock, type Clock } from '@tapetree/agent/run'
import { createHash, randomBytes } from 'node:crypto'
import { mayDo, type Role } from './operation-roles.ts'
import { RequestProblem } from '../util/problem-error.ts'
import type { SharedDocument } from './shared-document.ts'
import type { NewToken, TokenRecord, TokenStore } from './token-store.ts'

const defaultLifeMs = 5 * 60_000
/** Beyond this, a new code invalidates the oldest one. */
const maxOpen = 100

interface OpenCode {
  grant: NewToken
  by?: string
  until: number
}

/** By hash: reading them does not reveal a code, and lookup time tells nothing. */
type OpenCodes = Map<string, OpenCode>

/**
 * Short-lived codes, each of which can be exchanged once for a new token. With a document, at any of the servers that share
 * it; otherwise at this one.
 */
export class Pairing {
  readonly #tokens: TokenStore
  readonly #clock: Clock
  /** Codes of this process. Those that are shared stay here until they are in the document. */
  readonly #open: OpenCodes = new Map()
  readonly #shared: SharedDocument | undefined
  /** Codes that are being written to the document. */
  readonly #sharing = new Map<string, Promise<void>>()

  constructor(tokens: TokenStore, clock: Clock = systemClock, shared?: SharedDocument) {
    this.#tokens = tokens
    this.#clock = clock
    this.#shared = shared
  }

  /** `by` is the token that grants it. Throws `wider-than-creator` if that token is narrower. */
  begin(
    grant: NewToken,
    { lifeMs = defaultLifeMs, by }: { lifeMs?: number; by?: string } = {},
  ): { code: string; expiresAt: number } {
    if (by !== undefined) this.#tokens.checkGrant(grant, { by })
    const code = newCode()
    // A code does not outlive the token that it grants.
    const until = Math.min(this.#clock.now() + lifeMs, grant.expiresAt ?? Infinity)
    const key = keyOf(code)
    const opened = { grant, until, ...(by !== undefined && { by }) }
    add(this.#open, key, opened)
    if (this.#shared) this.#sharing.set(key, this.#share(this.#shared, key, opened))
    return { code, expiresAt: until }
  }

  /** What a code grants, without using it. Undefined if the code is unknown, used or expired. */
  preview(code: string): { role: Role; expiresAt: number } | undefined {
    const found = this.#find(code)
    return found && { role: found.grant.role, expiresAt: found.until }
  }

  /** Uses up the code, unless it is refused because the wanted role has more rights than the code grants. */
  async exchange(code: string, { name, role }: { name?: string; role?: Role } = {}): Promise<Exchange> {
    const found = this.#find(code)
    if (!found) return { type: 'unknown' }
    const { grant, by } = found
    if (role !== undefined && !mayDo(grant.role, role)) return { type: 'too-wide', grants: grant.role }
    // Of two concurrent exchanges of one code, one succeeds.
    if (!(await this.#use(keyOf(code)))) return { type: 'unknown' }
    const wanted = { ...grant, ...(role !== undefined && { role }), ...(name !== undefined && { name }) }
    const made = await this.#tokens.create(wanted, by === undefined ? {} : { by }).catch(unlessCreatorOver)
    return made ? { type: 'paired', ...made } : { type: 'unknown' }
  }

  #find(code: string): OpenCode | undefined {
    const key = keyOf(code)
    const found = this.#open.get(key) ?? codesIn(this.#shared?.content()).get(key)
    return found && found.until > this.#clock.now() ? found : undefined
  }

  /** Until this has succeeded, the code can be used here only. */
  async #share(document: SharedDocument, key: string, opened: OpenCode): Promise<void> {
    await document
      .change((content) => {
        const codes = codesIn(content)
        for (const [each, { until }] of codes) if (until <= this.#clock.now()) codes.delete(each)
        add(codes, key, opened)
        return JSON.stringify([...codes])
      })
      .then(
        () => this.#open.delete(key),
        () => undefined,
      )
    this.#sharing.delete(key)
  }

  /** Whether nobody else has used it. */
  async #use(key: string): Promise<boolean> {
    await this.#sharing.get(key)
    if (this.#open.delete(key)) return true
    let isMine = false
    await this.#shared?.change((content) => {
      const codes = codesIn(content)
      isMine = codes.delete(key)
      return isMine ? JSON.stringify([...codes]) : undefined
    })
    return isMine
  }
}

function add(codes: OpenCodes, key: string, opened: OpenCode): void {
  codes.set(key, opened)
  const [oldest] = codes.keys()
  if (codes.size > maxOpen && oldest !== undefined) codes.delete(oldest)
}

/** What cannot be read has no codes. */
function codesIn(content: string | undefined): OpenCodes {
  try {
    return new Map(JSON.parse(content ?? '[]') as [string, OpenCode][])
  } catch {
    return new Map()
  }
}

/** `unknown`: the code does not exist, was used or has expired, or the token that granted it is no longer valid. */
export type Exchange =
  | { type: 'paired'; token: string; record: TokenRecord }
  | { type: 'unknown' }
  | { type: 'too-wide'; grants: Role }

/** Without I, L, O and U, which people mistake for others. */
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 80 random bits, short enough to type: `K7QF-3MZD-X8TP-4WNC`. Guesses are limited by address, and a code lives for minutes. */
function newCode(): string {
  const symbols = Array.from(randomBytes(16), (byte) => alphabet[byte & 31])
  return symbols.join('').replaceAll(/.{4}(?!$)/g, '$&-')
}

/** Browsers never send the fragment, so neither code nor fingerprint appears in a proxy's log. */
export function pairingLink(
  url: string,
  { code, fingerprint }: { code: string; fingerprint?: string | undefined },
): string {
  // Neither needs to be encoded, which keeps the QR code small.
  const fragment = [`pair=${code}`, ...(fingerprint === undefined ? [] : [`fingerprint=${fingerprint}`])].join('&')
  return `${url.replace(/\/$/, '')}/#${fragment}`
}

function unlessCreatorOver(error: unknown): undefined {
  if (error instanceof RequestProblem && error.problem.type === 'creator-over') return undefined
  throw error
}

/** The same for every way in which people type a code. */
function keyOf(code: string): string {
  const typed = code.toUpperCase().replaceAll(/[-\s]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1')
  return createHash('sha256').update(typed).digest('hex')
}
