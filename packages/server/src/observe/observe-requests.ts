import type { MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

/** Counts and logs every request that reaches the routes. Query strings are left out: they may contain a token. */
export function observeRequests({ metrics, log }: { metrics?: Metrics; log?: Log }): MiddlewareHandler {
  return async (context, next) => {
    const startedAt = performance.now()
    await next()
    const seconds = (performance.now() - startedAt) / 1000
    const { method, path } = context.req
    const { status } = context.res
    const matched = routePath(context, -1)
    // No declared route matched.
    const route = matched.includes('*') ? 'none' : matched
    metrics?.requestDone({ method, route, status, seconds })
    const line = { method, path, route, status, ms: Math.round(seconds * 1000) }
    if (status >= 500) log?.error(line, 'request')
    else log?.info(line, 'request')
  }
}
