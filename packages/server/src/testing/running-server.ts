import { mkdtemp, rm } from 'node:fs/promises'
import { request, type IncomingHttpHeaders } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import type { Clock } from '@tapetree/agent/run'
import type { Role } from '../auth/operation-roles.ts'
import { TokenStore } from '../auth/token-store.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import type { ServerOptions } from '../server-options.ts'
import { startServer, type RunningServer } from '../server.ts'
import { scriptedSessions } from './scripted-sessions.ts'

/** A server on loopback with its own tenant and folder. */
export class TestServer {
  readonly server: RunningServer
  readonly tokens: TokenStore
  readonly sessions: LiveSessions
  readonly folder: string

  private constructor(parts: { server: RunningServer; tokens: TokenStore; sessions: LiveSessions; folder: string }) {
    this.server = parts.server
    this.tokens = parts.tokens
    this.sessions = parts.sessions
    this.folder = parts.folder
  }

  static async start(
    options: (folder: string) => Partial<ServerOptions> & { sessions?: LiveSessions; clock?: Clock } = () => ({}),
  ): Promise<TestServer> {
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-server-'))
    const { sessions = scriptedSessions(), ...rest } = options(folder)
    const clock = rest.clock ? { clock: rest.clock } : {}
    const tokens = await TokenStore.open({ file: join(folder, 'tokens.json'), ...clock })
    try {
      const server = await startServer({ tenants: new Map([['default', sessions]]), tokens, ...rest })
      return new TestServer({ server, tokens, sessions, folder })
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  async token(role: Role, tenant = 'default', expiresAt?: number): Promise<string> {
    return (await this.tokens.create({ tenant, role, ...(expiresAt !== undefined && { expiresAt }) })).token
  }

  ask(path: string, options: Omit<Asked, 'url'> = {}): Promise<Answer> {
    return ask(path, { url: this.server.url, ...options })
  }

  /** A WebSocket to a session; only `protocols` authenticate it. */
  dial(sessionId: string, token: string, headers: Record<string, string> = {}): WebSocket {
    const url = `${this.server.url.replace('http', 'ws')}/api/sessions/${sessionId}/ws`
    return new WebSocket(url, ['tapetree.v1', `bearer.${token}`], { headers, rejectUnauthorized: false })
  }

  async close(): Promise<void> {
    await this.server.close()
    await rm(this.folder, { recursive: true, force: true })
  }
}

export interface Asked {
  url: string
  method?: string
  headers?: Record<string, string>
  token?: string
  json?: unknown
  socketPath?: string
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
  body: unknown
}

/** One request on its own connection, with exactly these headers: `fetch` forbids some. */
export function ask(path: string, { url, method, headers = {}, token, json, socketPath }: Asked): Promise<Answer> {
  const body = json === undefined ? undefined : JSON.stringify(json)
  const target = new URL(path, url)
  const send = target.protocol === 'https:' ? tlsRequest : request
  return new Promise((resolve, reject) => {
    const asked = send(
      {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        ...(socketPath === undefined ? { host: target.hostname, port: target.port } : { socketPath }),
        path: target.pathname + target.search,
        agent: false,
        rejectUnauthorized: false,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text) })
        })
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not every response is JSON.
    return undefined
  }
}
