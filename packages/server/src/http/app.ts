import { OpenAPIHono, type RouteConfig, type RouteHandler } from '@hono/zod-openapi'
import type { CallerLimits } from '../auth/limits.ts'
import type { Caller, Role } from '../auth/operation-roles.ts'
import type { ReachableSessions } from '../live/reachable-sessions.ts'
import type { PushService } from '../push/push-service.ts'
import type { ToolHosts } from '../tool-hosts/tool-hosts.ts'
import type { Problem } from '@tapetree/client'
import { problemSchema } from '@tapetree/client/protocol'
import { HTTPException } from 'hono/http-exception'
import { depthOf, maxJsonDepth } from '../util/json-depth.ts'
import { problemOf, RequestProblem } from '../util/problem-error.ts'
import type { Context, MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Model } from '@tapetree/agent'
import type { RuleLayers } from '@tapetree/agent/permissions'
import type { Clock } from '@tapetree/agent/run'
import type { ListedModel } from '@tapetree/agent/models'
import type { LoadedSettings, SettingsChange } from '@tapetree/agent/settings'

/** Data of the routes besides sessions, by tenant. */
export interface ApiParts {
  models: (tenant: string) => Promise<readonly ListedModel[]>
  /** Opens the model of an answer, to rebuild its request. Absent or undefined: the request cannot be verified. */
  openModel?: (tenant: string, model: { provider: string; modelId: string }) => Promise<Model | undefined>
  agents: (tenant: string) => Promise<readonly AgentSummary[]>
  /** Without a folder: the settings outside of any project. */
  settings: (
    tenant: string,
    cwd: string | undefined,
  ) => Promise<Pick<LoadedSettings, 'values' | 'origins' | 'problems'>>
  /** Writes the settings of the user. Absent: they cannot be changed here. */
  changeSettings?: (tenant: string, change: SettingsChange) => Promise<void>
  /**
   * What applies to the files of a folder: the rules for reading, and why git does not run there, if there is a reason.
   * Absent: only the built-in rules, and no git.
   */
  workspace?: (tenant: string, cwd: string) => Promise<{ rules: RuleLayers; gitProblem?: string }>
  /** Where file snapshots are kept, as in `CodingAgentOptions`. Absent: the files of a session are not compared. */
  snapshotsFolder?: (tenant: string) => string
  /** Absolute folders. Sessions work inside of them, and nothing outside is shown. */
  roots: (tenant: string) => readonly string[]
  /** Name and version of the program, for `/api/version`. */
  version?: { name?: string; version: string }
  /** Why a load balancer should send requests elsewhere; undefined if the server is ready. */
  notReady?: () => string | undefined | Promise<string | undefined>
  /** Absent: no push messages are sent. */
  push?: PushService
  /** Absent: there are no tool hosts. */
  toolHosts?: ToolHosts
  /** Calls the listener after an interruption in which changes on other servers may have been missed. Absent: this server is alone. */
  onGap?: (listener: () => void) => () => void
  /** Aborted on shutdown: ends long polls and streams. */
  closing: AbortSignal
  clock?: Clock
}

export interface AgentSummary {
  id: string
  name: string
  description?: string
}

/** Context variables of every handler. */
export interface AppEnv {
  Variables: {
    caller: Caller
    sessions: ReachableSessions
    /** Absent: the caller has no limits. */
    limits?: CallerLimits
    /** When the caller's token expires, in milliseconds. */
    expiresAt?: number | undefined
    /** The trace that runs started by this request belong to. */
    traceparent?: string
    /** Aborted when the caller's token is revoked; ends its streams. */
    revoked?: AbortSignal
  }
}

export type App = OpenAPIHono<AppEnv>

/** Who may call a route. Every route declares it; public ones say `anyone`, and `any-role` needs any valid token. */
export type RouteAccess = Role | 'any-role' | 'anyone'

export interface DeclaredRoute {
  method: string
  path: string
  access: RouteAccess
  /** Schemas of requests and responses, for the OpenAPI document. */
  config: RouteConfig
}

/** Middleware that admits a request or rejects it. The body must have one of these media types. */
export type Guard = (access: RouteAccess, mediaTypes: readonly string[]) => RouteConfig['middleware']

/** The routes of an app with their declarations. */
export class Routes {
  readonly app: App
  readonly declared: DeclaredRoute[] = []
  readonly #guard: Guard
  readonly #sockets: string[] = []

  constructor(guard: Guard) {
    this.#guard = guard
    this.app = new OpenAPIHono<AppEnv>({
      defaultHook: (result, context) => {
        if (result.success) return undefined
        const issues = result.error.issues.slice(0, 20)
        const detail = issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
        return problemAnswer(context, { type: 'invalid-request', title: 'Invalid request', status: 422, detail })
      },
    })
    this.app.onError((error, context) => {
      const problem = error instanceof HTTPException ? refusalOf(error) : problemOf(error)
      if (problem.status === 401) context.header('www-authenticate', 'Bearer')
      const { retry_after_ms: waitMs } = problem
      if (typeof waitMs === 'number') context.header('retry-after', String(Math.ceil(waitMs / 1000)))
      return problemAnswer(context, problem)
    })
    this.app.notFound((context) => this.#noHandler(context))
    this.app.use(cancelUnsent)
  }

  add<Config extends RouteConfig & { operationId: string }>(
    access: RouteAccess,
    config: Config,
    handler: RouteHandler<Config, AppEnv>,
  ): void {
    const { method, path } = config
    const responses = { ...config.responses, default: problemResponse }
    this.declared.push({ method, path, access, config: { ...config, responses } })
    const mediaTypes = Object.keys(config.request?.body?.content ?? {})
    const middleware = [this.#guard(access, mediaTypes) ?? [], limitBody(config)].flat()
    this.app.openapi({ ...config, responses, middleware }, handler)
  }

  /** Declares a path that answers only WebSocket upgrades, which do not reach the app. */
  addSocket(path: string): void {
    this.#sockets.push(path)
  }

  /**
   * The only place that answers OPTIONS: it lists the methods of a path. A preflight that no middleware has
   * answered comes from an origin that is not allowed. Other methods are 405 at a known path and 404 elsewhere.
   */
  #noHandler(context: Context): Response {
    const { method, path } = context.req
    const isSocket = this.#sockets.some((socket) => patternOf(socket).test(path))
    const methods = [...this.#methodsAt(path), ...(isSocket ? ['GET'] : [])]
    if (methods.length === 0) throw new RequestProblem(404, 'not-found', 'There is nothing at this path.')
    if (method === 'OPTIONS' && context.req.header('access-control-request-method') !== undefined) {
      throw new RequestProblem(403, 'origin-not-allowed', 'Pages of this origin may not use this server.')
    }
    if (isSocket && method === 'GET') {
      context.header('upgrade', 'websocket')
      throw new RequestProblem(426, 'upgrade-required', 'This path accepts only WebSocket upgrades.')
    }
    const allowed = allowedWith(methods)
    context.header('allow', allowed)
    if (method === 'OPTIONS') return context.body(null, 204)
    throw new RequestProblem(405, 'method-not-allowed', `This path has no ${method}. It accepts ${allowed}.`)
  }

  #methodsAt(path: string): string[] {
    return this.declared.filter((route) => patternOf(route.path).test(path)).map(({ method }) => method.toUpperCase())
  }
}

/** The value of the header `Allow`. The framework answers HEAD like GET, without the body. */
function allowedWith(methods: readonly string[]): string {
  const all = new Set([...methods, 'OPTIONS', ...(methods.includes('GET') ? ['HEAD'] : [])])
  return [...all].sort().join(', ')
}

function patternOf(path: string): RegExp {
  const literal = path.split(/\{[^}]+\}/).map((part) => RegExp.escape(part))
  return new RegExp(`^${literal.join('[^/]+')}$`)
}

/** A problem may have more members, such as `retry_after_ms`. */
export const problemBody = problemSchema.loose()

const problemResponse = {
  description: 'A problem document (RFC 9457).',
  content: { 'application/problem+json': { schema: problemBody } },
}

/** A problem document with the id of the request, by which its log line can be found. */
function problemAnswer(context: Context, problem: Problem): Response {
  const { requestId } = (context.env ?? {}) as { requestId?: string }
  const body = { ...problem, ...(requestId !== undefined && { request_id: requestId }) }
  return context.body(JSON.stringify(body), problem.status as 500, problemJson)
}

/** Problems of the framework itself: a malformed JSON body, an unsupported content type. */
function refusalOf({ status, message }: HTTPException): Problem {
  return status === 415
    ? { type: 'wrong-media-type', title: 'Wrong media type', status, detail: message }
    : { type: 'malformed-request', title: 'Malformed request', status, detail: message }
}

export const problemJson = { 'content-type': 'application/problem+json' }

/** Routes in the router without a declaration; `*` stands for middleware before all routes. */
export function undeclaredRoutes({ app, declared }: Pick<Routes, 'app' | 'declared'>): string[] {
  const known = new Set(declared.map(({ method, path }) => `${method.toUpperCase()} ${path}`))
  const served = app.routes
    .filter(({ method, path }) => !(method === 'ALL' && path === '/*'))
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(\{[^}]*\})?/g, '{$1}')}`)
  return [...new Set(served)].filter((route) => !known.has(route))
}

/** The framework drops the body of a response to HEAD without canceling it, which would leave its source open. */
const cancelUnsent: MiddlewareHandler = async (context, next) => {
  await next()
  if (context.req.method === 'HEAD') await context.res.body?.cancel()
}

/** The longest prompt has a million characters, each of which may take six bytes as JSON. */
const maxJsonBytes = 8 * 1024 * 1024
const maxImageBytes = 20 * 1024 * 1024

/** Rejects bodies that are too large or nested too deeply, before they are parsed. */
function limitBody(config: RouteConfig): MiddlewareHandler[] {
  const types = Object.keys(config.request?.body?.content ?? {})
  if (types.length === 0) return []
  if (types.every((type) => type.endsWith('json'))) return [limitBytes(maxJsonBytes), limitDepth]
  return [limitBytes(maxImageBytes)]
}

function limitBytes(maxSize: number): MiddlewareHandler {
  return bodyLimit({
    maxSize,
    onError: () => {
      throw new RequestProblem(413, 'too-large', `The body exceeds the limit of ${maxSize} bytes.`)
    },
  })
}

const limitDepth: MiddlewareHandler = async (context, next) => {
  if (depthOf(await context.req.text()) > maxJsonDepth) {
    throw new RequestProblem(422, 'too-deep', `The body is nested deeper than ${maxJsonDepth} levels.`)
  }
  await next()
}
