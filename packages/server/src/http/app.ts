import { OpenAPIHono, type RouteConfig, type RouteHandler } from '@hono/zod-openapi'
import type { Caller, Role } from '../auth/role.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { problemSchema, type Problem } from '@tapetree/client'
import { HTTPException } from 'hono/http-exception'
import { problemOf } from '../util/problem-error.ts'
import { limitBody } from './body-limits.ts'

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
export type Access = Role | 'anyone'

export interface DeclaredRoute {
  method: string
  path: string
  access: Access
  /** Schemas of what it takes and gives: what the OpenAPI document is made of. */
  config: RouteConfig
}

/** Lets a request to a route in, or answers it. A body is of one of these media types. */
export type Guard = (access: Access, mediaTypes: readonly string[]) => RouteConfig['middleware']

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

  add<Config extends RouteConfig>(access: Access, config: Config, handler: RouteHandler<Config, AppEnv>): void {
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
