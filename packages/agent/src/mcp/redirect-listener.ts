import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const host = '127.0.0.1'
const path = '/callback'

/**
 * Receives the browser's redirect after a sign-in, on this machine only. Accepts only the answer to our own
 * request.
 */
export class RedirectListener implements AsyncDisposable {
  readonly #server: Server
  readonly #answer = Promise.withResolvers<URLSearchParams>()
  #state: string | undefined
  #port = 0

  private constructor() {
    this.#server = createServer((request, response) => this.#handle(request, response))
  }

  /** Uses one of these ports if it is free, else any. */
  static async open(ports: readonly number[] = []): Promise<RedirectListener> {
    for (const port of [...ports, 0]) {
      const listener = new RedirectListener()
      try {
        await listener.#listen(port)
        return listener
      } catch (error) {
        if (port === 0) throw error
      }
    }
    throw new Error('No port is free.')
  }

  get url(): string {
    return `http://${host}:${this.#port}${path}`
  }

  /** Sets the expected state; answers to earlier requests are rejected. */
  expect(state: string): void {
    this.#state = state
  }

  answer(): Promise<URLSearchParams> {
    return this.#answer.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port, exclusive: true }, resolve)
    })
    this.#port = (this.#server.address() as AddressInfo).port
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const url = URL.parse(request.url ?? '', this.url)
    // Another host name in the request indicates DNS rebinding.
    const isOurs =
      request.headers.host === `${host}:${this.#port}` && url?.pathname === path && request.method === 'GET'
    if (!isOurs) return respond(response, 404, 'Not found.')
    if (!isSame(url.searchParams.get('state'), this.#state)) {
      return respond(response, 400, 'This sign-in was not requested, or has expired.')
    }
    this.#state = undefined
    const hasCode = url.searchParams.has('code')
    respond(response, 200, hasCode ? 'You are signed in. You can close this window.' : 'The sign-in has failed.')
    this.#answer.resolve(url.searchParams)
  }
}

function respond(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, {
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      connection: 'close',
    })
    .end(text)
}

function isSame(given: string | null, expected: string | undefined): boolean {
  if (given === null || expected === undefined) return false
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}
