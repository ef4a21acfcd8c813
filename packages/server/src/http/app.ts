import { OpenAPIHono, type RouteConfig, type RouteHandler } from '@hono/zod-openapi'
import type { Caller, Role } from '../auth/operation-roles.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { problemSchema, type Problem } from '@tapetree/client'
import { HTTPException } from 'hono/http-exception'
import { problemOf, RequestProblem } from '../util/problem-error.ts'
import type { MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'

/** What every handler knows. */
export interface AppEnv {
  Variables: {
    caller: Caller
    sessions: LiveSessions
    /** Aborted when the caller's token is revoked: what streams to them ends. */
    revoked?: AbortSignal
  }
}

export type App = OpenAPIHono<AppEnv>

/** Who may call a route. There is no route without one: `anyone` has to be said. */
export type RouteAccess = Role | 'anyone'

export interface DeclaredRoute {
  method: string
  path: string
  access: RouteAccess
  /** Schemas of what it takes and gives: what the OpenAPI document is made of. */
  config: RouteConfig
}

/** Lets a request to a route in, or answers it. A body is of one of these media types. */
export type Guard = (access: RouteAccess, mediaTypes: readonly string[]) => RouteConfig['middleware']

/** The routes of an app with their declarations: what the doors proof walks through. */
export class Routes {
  readonly app: App
  readonly declared: DeclaredRoute[] = []
  readonly #guard: Guard

  constructor(guard: Guard) {
    this.#guard = guard
    this.app = new OpenAPIHono<AppEnv>({
      defaultHook: (result, context) => {
        if (result.success) return undefined
        const issues = result.error.issues.slice(0, 20)
        const detail = issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
        return context.json(
          { type: 'invalid-request', title: 'Invalid request', status: 422, detail },
          422,
          problemJson,
        )
      },
    })
    this.app.onError((error, context) => {
      const problem = error instanceof HTTPException ? refusalOf(error) : problemOf(error)
      if (problem.status === 401) context.header('www-authenticate', 'Bearer')
      const { retry_after_ms: waitMs } = problem
      if (typeof waitMs === 'number') context.header('retry-after', String(Math.ceil(waitMs / 1000)))
      return context.body(JSON.stringify(problem), problem.status as 500, problemJson)
    })
    this.app.notFound((context) =>
      context.json({ type: 'not-found', title: 'Not found', status: 404 }, 404, problemJson),
    )
  }

  add<Config extends RouteConfig>(access: RouteAccess, config: Config, handler: RouteHandler<Config, AppEnv>): void {
    const { method, path } = config
    const responses = { ...config.responses, default: problemResponse }
    this.declared.push({ method, path, access, config: { ...config, responses } })
    const mediaTypes = Object.keys(config.request?.body?.content ?? {})
    const middleware = [this.#guard(access, mediaTypes) ?? [], limitBody(config)].flat()
    this.app.openapi({ ...config, responses, middleware }, handler)
  }
}

const problemResponse = {
  description: 'What went wrong, as RFC 9457 has it.',
  content: { 'application/problem+json': { schema: problemSchema.loose() } },
}

/** What the framework itself refuses: a body that is no JSON, a content type that is not taken. */
function refusalOf({ status, message }: HTTPException): Problem {
  return status === 415
    ? { type: 'wrong-media-type', title: 'Wrong media type', status, detail: message }
    : { type: 'malformed-request', title: 'Malformed request', status, detail: message }
}

export const problemJson = { 'content-type': 'application/problem+json' }

/** What the router would serve and nobody has said for whom; `*` is what stands before all routes. */
export function undeclaredRoutes({ app, declared }: Pick<Routes, 'app' | 'declared'>): string[] {
  const known = new Set(declared.map(({ method, path }) => `${method.toUpperCase()} ${path}`))
  const served = app.routes
    .filter(({ method, path }) => !(method === 'ALL' && path === '/*'))
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(\{[^}]*\})?/g, '{$1}')}`)
  return [...new Set(served)].filter((route) => !known.has(route))
}

/** The longest prompt has a million characters, each of which may take six bytes as JSON. */
const maxJsonBytes = 8 * 1024 * 1024
const maxImageBytes = 20 * 1024 * 1024
const maxJsonDepth = 64

/** Keeps a body from being larger or deeper than its route takes. Before anything is parsed. */
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
      throw new RequestProblem(413, 'too-large', `At most ${maxSize} bytes are taken here.`)
    },
  })
}

const limitDepth: MiddlewareHandler = async (context, next) => {
  if (depthOf(await context.req.text()) > maxJsonDepth) {
    throw new RequestProblem(422, 'too-deep', `At most ${maxJsonDepth} levels are taken.`)
  }
  await next()
}

/** How deep the brackets of a text are nested, whatever lies in strings. */
function depthOf(json: string): number {
  let depth = 0
  let deepest = 0
  for (let index = 0; index < json.length; index++) {
    const code = json.charCodeAt(index)
    if (code === quote) index = endOfString(json, index)
    else if (code === openBrace || code === openBracket) deepest = Math.max(deepest, ++depth)
    else if (code === closeBrace || code === closeBracket) depth--
  }
  return deepest
}

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d]

function endOfString(json: string, start: number): number {
  let index = start + 1
  while (index < json.length && json.charCodeAt(index) !== quote) index += json.charCodeAt(index) === backslash ? 2 : 1
  return index
}
