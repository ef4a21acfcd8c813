import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { randomBytes } from 'node:crypto'
import { foreignUrlProblem } from './bounded-fetch.ts'
import { RedirectListener } from './redirect-listener.ts'
import { ServerProblem } from './server-problem.ts'
import type { OAuthSettings } from './server-settings.ts'

/** Secrets: store them like keys. */
export interface OAuthStore {
  load(server: string): Promise<OAuthRecord | undefined>
  save(server: string, record: OAuthRecord): Promise<void>
}

export interface OAuthRecord {
  /** The server of the tokens: they are sent nowhere else, even if its name is reused. */
  url: string
  redirectUrl?: string
  client?: StoredOAuthClientInformation
  tokens?: StoredOAuthTokens
}

export interface SignInOptions {
  server: string
  serverUrl: URL
  settings: OAuthSettings
  store: OAuthStore
  /** Opens a browser; the address is https or on this machine. It must not pass through a shell. */
  openUrl: ((url: string) => Promise<void> | void) | undefined
}

/** Authorizes the use of a server: stores and renews tokens, and requests them in a browser if there are none. */
export class SignIn implements OAuthClientProvider {
  readonly #options: SignInOptions
  readonly #listener: RedirectListener | undefined
  #record: OAuthRecord
  #verifier: string | undefined
  #discovery: OAuthDiscoveryState | undefined
  #isInteractive: boolean

  private constructor(options: SignInOptions, parts: { record: OAuthRecord; listener: RedirectListener | undefined }) {
    this.#options = options
    this.#record = parts.record
    this.#listener = parts.listener
    this.#isInteractive = parts.listener !== undefined
  }

  static async open(options: SignInOptions): Promise<SignIn> {
    const { server, serverUrl, store, settings } = options
    const stored = await store.load(server)
    const record = stored?.url === serverUrl.href ? stored : { url: serverUrl.href }
    // Some servers require the port of the first registration.
    const lastPort = Number(URL.parse(record.redirectUrl ?? '')?.port || 0)
    const ports = [settings.redirectPort ?? lastPort].filter((port) => port > 0)
    const listener = options.openUrl && (await RedirectListener.open(ports))
    return new SignIn(options, { record, listener })
  }

  /** The browser's answer. */
  answer(): Promise<URLSearchParams> {
    return this.#listener?.answer() ?? Promise.reject(this.#needed())
  }

  /** From here on tokens are only renewed; no new sign-in starts. */
  async finish(): Promise<void> {
    this.#isInteractive = false
    await this.#listener?.[Symbol.asyncDispose]()
  }

  get redirectUrl(): string {
    return this.#listener?.url ?? this.#record.redirectUrl ?? 'http://127.0.0.1/callback'
  }

  get clientMetadata(): OAuthClientMetadata {
    const { scope, clientSecret } = this.#options.settings
    return {
      client_name: 'tapetree',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: clientSecret === undefined ? 'none' : 'client_secret_post',
      ...(scope !== undefined && { scope }),
    }
  }

  state(): string {
    const state = randomBytes(32).toString('base64url')
    this.#listener?.expect(state)
    return state
  }

  clientInformation(): StoredOAuthClientInformation | undefined {
    const { clientId, clientSecret } = this.#options.settings
    if (clientId === undefined) {
      if (!this.#record.client && !this.#isInteractive) throw this.#needed()
      return this.#record.client
    }
    const issuer = this.#record.client?.client_id === clientId ? this.#record.client.issuer : undefined
    return {
      client_id: clientId,
      ...(clientSecret !== undefined && { client_secret: clientSecret }),
      ...(issuer !== undefined && { issuer }),
    }
  }

  async saveClientInformation(client: StoredOAuthClientInformation): Promise<void> {
    await this.#save({ ...this.#record, client, redirectUrl: this.redirectUrl })
  }

  tokens(): StoredOAuthTokens | undefined {
    return this.#record.tokens
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    await this.#save({ ...this.#record, tokens })
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    const { serverUrl, openUrl } = this.#options
    if (!this.#isInteractive || !openUrl) throw this.#needed()
    const problem = foreignUrlProblem(url, serverUrl)
    if (problem !== undefined) throw new ServerProblem(`The sign-in page was not opened. ${problem}`)
    await openUrl(url.href)
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  codeVerifier(): string {
    if (this.#verifier === undefined) throw this.#needed()
    return this.#verifier
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovery
  }

  async invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): Promise<void> {
    if (scope === 'all' || scope === 'verifier') this.#verifier = undefined
    if (scope === 'all' || scope === 'discovery') this.#discovery = undefined
    const { client, tokens, ...rest } = this.#record
    const keepsClient = client && scope !== 'all' && scope !== 'client'
    const keepsTokens = tokens && scope !== 'all' && scope !== 'tokens'
    await this.#save({ ...rest, ...(keepsClient && { client }), ...(keepsTokens && { tokens }) })
  }

  async #save(record: OAuthRecord): Promise<void> {
    this.#record = record
    await this.#options.store.save(this.#options.server, record)
  }

  #needed(): ServerProblem {
    return new ServerProblem(`${this.#options.serverUrl.origin} requires a sign-in.`, { isFinal: true })
  }
}
