import { McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { addTools } from './test-tools.ts'

export interface HttpTestServerOptions {
  /** Answers a request itself, or passes it on. */
  before?: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>
  isJson?: boolean
  addMore?: (server: McpServer) => void
}

/** A real MCP server on this machine that speaks streamable HTTP, with a session for every client. */
export class HttpTestServer implements AsyncDisposable {
  readonly notes: string[] = []
  readonly requests: { method: string; headers: IncomingMessage['headers'] }[] = []
  readonly sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  readonly #options: HttpTestServerOptions
  readonly #server: Server

  private constructor(options: HttpTestServerOptions) {
    this.#options = options
    this.#server = createServer((request, response) => void this.#handle(request, response))
  }

  static async open(options: HttpTestServerOptions = {}): Promise<HttpTestServer> {
    const server = new HttpTestServer(options)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get url(): string {
    return `${this.origin}/mcp`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.sessions.values()) await session.close()
    this.dropConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  dropConnections(): void {
    this.#server.closeAllConnections()
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push({ method: request.method ?? '', headers: request.headers })
    if (await this.#options.before?.(request, response)) return
    const body = await bodyOf(request)
    const given = new Request(`${this.origin}${request.url}`, {
      method: request.method ?? 'GET',
      headers: Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
      ...(body.length > 0 && { body }),
    })
    const transport = await this.#transportFor(request.headers['mcp-session-id'], body)
    if (!transport) {
      response.writeHead(404).end()
      return
    }
    await pass(await transport.handleRequest(given), response)
  }

  async #transportFor(
    sessionId: string | string[] | undefined,
    body: Buffer,
  ): Promise<WebStandardStreamableHTTPServerTransport | undefined> {
    if (typeof sessionId === 'string') return this.sessions.get(sessionId)
    if (!body.includes('"initialize"')) return undefined
    const transport: WebStandardStreamableHTTPServerTransport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void this.sessions.set(id, transport),
      onsessionclosed: (id) => void this.sessions.delete(id),
      enableJsonResponse: this.#options.isJson ?? false,
      keepAliveMs: 0,
    })
    const server = new McpServer({ name: 'test', version: '1' })
    addTools(server, { note: (text) => void this.notes.push(text) })
    this.#options.addMore?.(server)
    await server.connect(transport)
    return transport
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function pass(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  response.flushHeaders()
  const reader = answer.body?.getReader()
  response.once('close', () => void reader?.cancel().catch(() => undefined))
  try {
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) response.write(part.value)
  } catch {
    // the client has gone
  }
  response.end()
}
