/** Who may be meant by a Host header. Anything else is a page that made its own name point at us, or a mistake. */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>

  /** A name counts for every port, `name:port` for one. */
  constructor(configured: readonly string[]) {
    this.#names = new Set([...loopbackNames, ...configured.map((name) => name.toLowerCase())])
  }

  /** By the letter: `localhost.`, `127.1` and `0x7f000001` are no names of ours. */
  has(host: string | undefined): boolean {
    const [whole, name] = hostPattern.exec(host ?? '') ?? []
    if (whole === undefined || name === undefined) return false
    return this.#names.has(name.toLowerCase()) || this.#names.has(whole.toLowerCase())
  }
}

export type OriginCheck = 'fine' | 'foreign' | 'missing'

export interface OriginQuestion {
  origin: string | undefined
  /** What a browser says about the page that asks. */
  fetchSite: string | undefined
  /** How the client reached us. */
  scheme: 'http' | 'https'
  host: string
  /** A browser sends a cookie by itself, whoever asks it to; a program that has the token means it. */
  byCookie: boolean
  changesSomething: boolean
}

/** An origin that is there must be our own. A cookie needs one for everything that changes something. */
export function checkOrigin(
  { origin, fetchSite, scheme, host, byCookie, changesSomething }: OriginQuestion,
  alsoAllowed: ReadonlySet<string> = new Set(),
): OriginCheck {
  if (origin !== undefined) return isOwn(origin, `${scheme}://${host}`) || alsoAllowed.has(origin) ? 'fine' : 'foreign'
  if (!byCookie) return 'fine'
  // Another port of this machine is the same site: its pages get our cookie sent, and say so here.
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') return 'foreign'
  return changesSomething ? 'missing' : 'fine'
}

/** The media type of a body, without its parameters. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1).join('').trim().toLowerCase()
}

/** An upgrade counts: what comes after it may change anything. */
export function changesSomething(method: string): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']
const hostPattern = /^(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)(?::\d{1,5})?$/i

function isOwn(origin: string, own: string): boolean {
  const parsed = URL.parse(origin)
  // A browser writes it in one way; every other way is somebody trying.
  return parsed !== null && parsed.origin === origin && parsed.origin === URL.parse(own)?.origin
}
