import { OptionError } from '../util/option-error.ts'

/** The URL that clients use if a proxy in front of the server has another address. */
export class PublicUrl {
  readonly scheme: 'http' | 'https'
  /** As browsers send it: with the port, unless it is the default of the scheme. */
  readonly host: string
  /** Empty, or a path that starts with a slash and does not end with one. */
  readonly prefix: string
  readonly #names: ReadonlySet<string>

  /** Throws a sentence if the text is not such a URL. */
  constructor(text: string) {
    const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
    const shown = JSON.stringify(text)
    if (!url) throw new OptionError(`The public URL ${shown} must start with https:// or http:// and name a host.`)
    if (url.search + url.hash + url.username + url.password !== '')
      throw new OptionError(`The public URL ${shown} must not have a query, a fragment or a user name.`)
    this.prefix = url.pathname.replace(/\/+$/, '')
    if (!/^(?:\/[\w.~-]+)*$/.test(this.prefix))
      throw new OptionError(
        `The path of the public URL ${shown} may only have letters, digits and -._~ between its slashes.`,
      )
    // The server could not tell a path below it from a route whose prefix the proxy has removed.
    if (/^\/(?:api|metrics)(?:\/|$)/.test(this.prefix))
      throw new OptionError(
        `The path of the public URL ${shown} must not start with /api or /metrics, which are routes.`,
      )
    this.scheme = url.protocol === 'https:' ? 'https' : 'http'
    this.host = url.host
    const port = url.port === '' ? { http: '80', https: '443' }[this.scheme] : url.port
    this.#names = new Set([url.hostname, `${url.hostname}:${port}`])
  }

  get origin(): string {
    return `${this.scheme}://${this.host}`
  }

  /** Without a slash at the end. */
  get href(): string {
    return this.origin + this.prefix
  }

  /** Some proxies pass the name without its port. */
  isNamedBy(host: string | undefined): boolean {
    return host !== undefined && this.#names.has(host.toLowerCase())
  }
}
