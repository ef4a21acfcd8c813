/** The accepted Host headers. Any other is a DNS rebinding attempt or a mistake. */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>

  /** A name covers every port, `name:port` only that one. */
  constructor(configured: readonly string[]) {
    this.#names = new Set([...loopbackNames, ...configured.map((name) => name.toLowerCase())])
  }

  /** Compared literally: `localhost.`, `127.1` and `0x7f000001` are rejected. */
  has(host: string | undefined): boolean {
    const [whole, name] = hostPattern.exec(host ?? '') ?? []
    if (whole === undefined || name === undefined) return false
    return this.#names.has(name.toLowerCase()) || this.#names.has(whole.toLowerCase())
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
