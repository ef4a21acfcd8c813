import { AgentSession, onlyModel, allowAll, type AgentSessionOptions } from '@tapetree/agent'
import type { Clock } from '@tapetree/agent/run'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModelOptions } from '@tapetree/agent/testing'
import { memoryStore, type SessionStore } from '@tapetree/session'
import type { MiddlewareHandler } from 'hono'
import type { Role } from '../../auth/operation-roles.ts'
import { AgentDriver } from '../../drivers/agent-driver.ts'
import type { SlashCommand } from '../../live/driver.ts'
import { LiveSessions } from '../../live/live-sessions.ts'
import { addRoutes } from '../routes/add-routes.ts'
import { Routes, type ApiParts, type AppEnv } from '../app.ts'
import { faultsOf, routeFor } from './checked-response.ts'

export interface TestApiOptions {
  script?: ScriptBuilder
  /** What the model says after the end of the script. */
  otherwise?: ScriptedModelOptions['otherwise']
  store?: SessionStore
  agent?: Partial<AgentSessionOptions>
  slashCommands?: readonly SlashCommand[]
  clock?: Clock
  maxLive?: number
  parts?: Partial<ApiParts>
  /** The token of callers that name none. */
  tokenId?: string
}

export interface Asked {
  method?: string
  body?: unknown
  headers?: Record<string, string>
  role?: Role
}

/**
 * The routes over scripted sessions, with a guard that trusts the given caller. Every response is checked
 * against its declaration.
 */
export class TestApi {
  readonly routes: Routes
  readonly sessions: LiveSessions
  readonly store: SessionStore
  /** Responses that differ from their declaration. */
  readonly faults: string[] = []
  readonly #tokenId: string
  readonly #closing = new AbortController()
  readonly #revoked = new AbortController()

  constructor(options: TestApiOptions = {}) {
    const { script: said = script(), store = memoryStore(), agent, slashCommands = [], clock, parts } = options
    const model = scriptedModel(said, options.otherwise && { otherwise: options.otherwise })
    this.store = store
    this.#tokenId = options.tokenId ?? 'test'
    this.sessions = new LiveSessions({
      store,
      ...(options.maxLive !== undefined && { maxLive: options.maxLive }),
      create: async ({ model: _model, agent: _agent, ...header }) => {
        await using session = await store.create(header)
        return session.id
      },
      openDriver: async (sessionId) =>
        new AgentDriver({
          agent: await AgentSession.open({
            store,
            sessionId,
            models: onlyModel(model),
            tools: () => [model.tool('act')],
            gate: () => allowAll,
            hasSubagents: false,
            cwd: '/',
            ...agent,
          }),
          slashCommands: () => slashCommands,
        }),
    })
    this.routes = new Routes(() => this.#guard)
    addRoutes(this.routes, {
      models: () => Promise.resolve([]),
      agents: () => Promise.resolve([{ id: 'tapetree', name: 'tapetree' }]),
      settings: () => Promise.reject(new Error('There are no settings in this test.')),
      roots: () => ['/'],
      closing: this.#closing.signal,
      ...(clock && { clock }),
      ...parts,
    })
  }

  readonly #guard: MiddlewareHandler<AppEnv> = async (context, next) => {
    const role = (context.req.header('x-test-role') ?? 'drive') as Role
    const tokenId = context.req.header('x-test-token') ?? this.#tokenId
    context.set('caller', { tokenId, tenant: 'local', role })
    context.set('sessions', this.sessions)
    context.set('revoked', this.#revoked.signal)
    await next()
  }

  /** Sends a request, and records faults of the response. */
  async request(path: string, { method = 'GET', body, headers = {}, role = 'drive' }: Asked = {}): Promise<Response> {
    const isRaw = body instanceof Uint8Array || typeof body === 'string'
    const sent = isRaw
      ? (body as string | Uint8Array<ArrayBuffer>)
      : body === undefined
        ? undefined
        : JSON.stringify(body)
    const type = sent === undefined || 'content-type' in headers ? {} : { 'content-type': 'application/json' }
    const response = await this.routes.app.request(path, {
      method,
      headers: { 'x-test-role': role, ...type, ...headers },
      ...(sent !== undefined && { body: sent }),
    })
    const { pathname } = new URL(path, 'http://localhost')
    const route = routeFor(this.routes.declared, { method, path: pathname })
    if (route) this.faults.push(...(await faultsOf(route, response)))
    return response
  }

  get(path: string, asked: Omit<Asked, 'method' | 'body'> = {}): Promise<Response> {
    return this.request(path, asked)
  }

  post(path: string, body: unknown = {}, asked: Omit<Asked, 'method' | 'body'> = {}): Promise<Response> {
    return this.request(path, { ...asked, method: 'POST', body })
  }

  patch(path: string, body: unknown, asked: Omit<Asked, 'method' | 'body'> = {}): Promise<Response> {
    return this.request(path, { ...asked, method: 'PATCH', body })
  }

  delete(path: string, asked: Omit<Asked, 'method' | 'body'> = {}): Promise<Response> {
    return this.request(path, { ...asked, method: 'DELETE' })
  }

  /** Creates a session and returns its path. */
  async session(body: Record<string, unknown> = {}): Promise<string> {
    const created = await this.post('/api/sessions', { cwd: '/', ...body })
    return `/api/sessions/${((await created.json()) as { id: string }).id}`
  }

  revoke(): void {
    this.#revoked.abort()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.sessions.close()
    await this.store.close()
  }
}
