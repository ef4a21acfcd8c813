import { isIP } from 'node:net'

/** The accepted Host headers. Any other is a DNS rebinding attempt or a mistake. */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>
  readonly #isOwnAddress: (address: string) => boolean

  /**
   * A name covers every port, `name:port` only that one. `isOwnAddress` accepts addresses that the machine gets later; a
   * rebinding attempt has a name.
   */
  constructor(configured: readonly string[], isOwnAddress: (address: string) => boolean = () => false) {
    this.#names = new Set([...loopbackNames, ...configured.map((name) => name.toLowerCase())])
    this.#isOwnAddress = isOwnAddress
  }

  /** Compared literally: `localhost.`, `127.1` and `0x7f000001` are rejected. */
  has(host: string | undefined): boolean {
    const [whole, name] = hostPattern.exec(host?.toLowerCase() ?? '') ?? []
    if (whole === undefined || name === undefined) return false
    if (this.#names.has(name) || this.#names.has(whole)) return true
    const address = name.replace(/^\[(.*)\]$/, '$1')
    return isIP(address) !== 0 && this.#isOwnAddress(address)
  }
}

export type OriginCheck = 'fine' | 'foreign' | 'missing'

export interface OriginQuestion {
  origin: string | undefined
  /** The `Sec-Fetch-Site` header of a browser. */
  fetchSite: string | undefined
  /** The scheme that the client used. */
  scheme: 'http' | 'https'
  host: string
  /** A browser sends a cookie automatically, even for a request of a foreign page; a token is sent deliberately. */
  byCookie: boolean
  changesSomething: boolean
}

/** An Origin header must be our own or an allowed one. With a cookie, every change requires it. */
export function checkOrigin(
  { origin, fetchSite, scheme, host, byCookie, changesSomething }: OriginQuestion,
  alsoAllowed: ReadonlySet<string> = new Set(),
): OriginCheck {
  if (origin !== undefined) return isOwn(origin, `${scheme}://${host}`) || alsoAllowed.has(origin) ? 'fine' : 'foreign'
  if (!byCookie) return 'fine'
  // Another port of this machine is the same site: browsers send our cookie with its requests, and report it
  // here.
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') return 'foreign'
  return changesSomething ? 'missing' : 'fine'
}

/** Headers by which a browser lets pages of an allowed origin read responses and send cookies. */
export function corsHeaders(origin: string): Record<string, string> {
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': 'etag, location, retry-after',
    vary: 'origin',
  }
}

/** Answers a preflight. Browsers ask before they send any other header or method of a page. */
export const preflightHeaders: Record<string, string> = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, idempotency-key, if-match, last-event-id, traceparent, x-client-id',
  'access-control-max-age': '600',
}

/** The media type of a body, without its parameters. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1).join('').trim().toLowerCase()
}

/** An upgrade counts: later commands may change anything. */
export function changesSomething(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']
const hostPattern = /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::\d{1,5})?$/i

function isOwn(origin: string, own: string): boolean {
  const parsed = URL.parse(origin)
  // Browsers write an origin in exactly one way; any other spelling is rejected.
  return parsed !== null && parsed.origin === origin && parsed.origin === URL.parse(own)?.origin
}
