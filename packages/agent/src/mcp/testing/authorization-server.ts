import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Accepts every well-formed request: registration, codes with PKCE, renewable tokens. */
export class AuthorizationServer implements AsyncDisposable {
  /** The requests of clients, such as `register` and `token refresh_token`. */
  readonly asked: string[] = []
  readonly headers: IncomingMessage['headers'][] = []
  readonly tokens = new Set<string>()
  readonly #codes = new Map<string, { challenge: string; redirectUri: string; clientId: string }>()
  readonly #refreshTokens = new Set<string>()
  readonly #server: Server

  readonly #metadata: object

  private constructor(metadata: object) {
    this.#metadata = metadata
    this.#server = createServer((request, response) => void this.#handle(request, response))
  }

  /** Overrides parts of its metadata. */
  static async open(metadata: object = {}): Promise<AuthorizationServer> {
    const server = new AuthorizationServer(metadata)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Invalidates all tokens and codes. */
  revokeAll(): void {
    this.tokens.clear()
    this.#refreshTokens.clear()
  }

  /** Requires our tokens on behalf of another server. */
  guard(request: IncomingMessage, response: ServerResponse, resource: { origin: string; url: string }): boolean {
    if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
      send(response, 200, { resource: resource.url, authorization_servers: [this.origin] })
      return true
    }
    if (this.tokens.has(request.headers.authorization?.replace(/^Bearer /, '') ?? '')) return false
    const metadata = `${resource.origin}/.well-known/oauth-protected-resource/mcp`
    response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` }).end()
    return true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.origin)
    const body = await textOf(request)
    this.headers.push(request.headers)
    switch (url.pathname) {
      case '/.well-known/oauth-authorization-server':
        return send(response, 200, {
          issuer: this.origin,
          authorization_endpoint: `${this.origin}/authorize`,
          token_endpoint: `${this.origin}/token`,
          registration_endpoint: `${this.origin}/register`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
          ...this.#metadata,
        })
      case '/register':
        this.asked.push('register')
        return send(response, 201, { ...(JSON.parse(body) as object), client_id: randomUUID() })
      case '/authorize':
        return this.#authorize(url.searchParams, response)
      case '/token':
        return this.#token(new URLSearchParams(body), response)
      default:
        return send(response, 404, {})
    }
  }

  #authorize(asked: URLSearchParams, response: ServerResponse): void {
    this.asked.push('authorize')
    const redirectUri = asked.get('redirect_uri') ?? ''
    const code = randomUUID()
    this.#codes.set(code, {
      challenge: asked.get('code_challenge') ?? '',
      redirectUri,
      clientId: asked.get('client_id') ?? '',
    })
    const back = new URL(redirectUri)
    back.searchParams.set('code', code)
    back.searchParams.set('state', asked.get('state') ?? '')
    response.writeHead(302, { location: back.href }).end()
  }

  #token(asked: URLSearchParams, response: ServerResponse): void {
    const grant = asked.get('grant_type') ?? ''
    this.asked.push(`token ${grant}`)
    const isGiven = grant === 'refresh_token' ? this.#takeRefresh(asked) : this.#takeCode(asked)
    if (!isGiven) return send(response, 400, { error: 'invalid_grant' })
    const [accessToken, refreshToken] = [randomUUID(), randomUUID()]
    this.tokens.add(accessToken)
    this.#refreshTokens.add(refreshToken)
    send(response, 200, { access_token: accessToken, token_type: 'Bearer', refresh_token: refreshToken })
  }

  #takeRefresh(asked: URLSearchParams): boolean {
    return this.#refreshTokens.delete(asked.get('refresh_token') ?? '')
  }

  #takeCode(asked: URLSearchParams): boolean {
    const code = asked.get('code') ?? ''
    const known = this.#codes.get(code)
    this.#codes.delete(code)
    const challenge = createHash('sha256')
      .update(asked.get('code_verifier') ?? '')
      .digest('base64url')
    return (
      known !== undefined &&
      known.challenge === challenge &&
      known.redirectUri === asked.get('redirect_uri') &&
      known.clientId === asked.get('client_id')
    )
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
