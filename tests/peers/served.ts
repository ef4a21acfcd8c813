import { request } from 'node:http'
import type { FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { startCommand, type Command } from '../terminal/command.ts'

/** `tapetree serve`, and a token that was got with the pairing link it prints. */
export class Served implements AsyncDisposable {
  readonly url: URL
  readonly token: string
  readonly #command: Command

  constructor(command: Command, url: URL, token: string) {
    this.#command = command
    this.url = url
    this.token = token
  }

  static async start(home: FakeHome): Promise<Served> {
    const command = startCommand({ home, args: ['serve', '--json', '--port', '0'] })
    await command.untilSaid(/#pair=[^\n]*\n/)
    const [, base = '', code = ''] = /"(https?:\/\/[^"#]+)#pair=([^"&]+)/.exec(command.stdout) ?? []
    const url = new URL(base)
    const paired = await fetch(new URL('/api/pair', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: decodeURIComponent(code), name: 'a test', as: 'token' }),
    })
    const { token } = (await paired.json()) as { token?: string }
    if (token === undefined) throw new Error(`Pairing gave ${paired.status} and no token`)
    return new Served(command, url, token)
  }

  async ask(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown }> {
    const response = await fetch(new URL(path, this.url), {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        // One that was left open may be closed by the server just when it is used again.
        connection: 'close',
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, json: text === '' ? undefined : JSON.parse(text) }
  }

  /** What a page makes a browser send. `fetch` would not let us lie about Host. */
  async knock(path: string, headers: Record<string, string>): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const sent = request(
      { host: this.url.hostname, port: this.url.port, path, method: 'POST', headers },
      (response) => {
        response.resume()
        response.once('end', () => resolve(response.statusCode ?? 0))
      },
    )
    sent.once('error', reject)
    sent.end(JSON.stringify({ text: 'touch owned', message: 'touch owned' }))
    return promise
  }

  async kill(): Promise<void> {
    await this.#command.kill()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
