import { SpanKind, SpanStatusCode, type Span, type TracerProvider } from '@opentelemetry/api'
import type { Context, MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import { randomUUID } from 'node:crypto'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import { remoteContext, traceparentOf } from './trace-context.ts'

/** The id of a request: the one that the client or a proxy sent, if it is well formed, or a new one. */
export function requestIdOf(sent: string | undefined): string {
  return sent !== undefined && wellFormedId.test(sent) ? sent : randomUUID()
}

/** It appears in logs and response headers as it is. */
const wellFormedId = /^[\w.:+/=@-]{1,128}$/

/** The log line of a request. It has no token, cookie, body or query string. */
export interface RequestLine {
  requestId: string | undefined
  method: string
  path: string
  /** The pattern of the route; `none` if no route matched. */
  route: string
  status: number
  ms: number
  address: string | undefined
  tenant: string | undefined
  /** The id of the token. The member has another name because the log redacts members that are named after tokens. */
  caller: string | undefined
  traceId: string | undefined
}

const maxPathLength = 500

export function logRequest(log: Log, line: RequestLine): void {
  const shortened = { ...line, path: line.path.slice(0, maxPathLength) }
  if (line.status >= 500) log.error(shortened, 'request')
  else log.info(shortened, 'request')
}

export interface RequestObservers {
  metrics?: Metrics | undefined
  log?: Log | undefined
  tracerProvider?: TracerProvider | undefined
}

/** The parts of a request's context that observers use. */
interface ObservedEnv {
  Bindings: { requestId?: string; peer?: { address: string; scheme: string } }
  Variables: { caller?: { tokenId: string; tenant: string }; traceparent?: string }
}

/**
 * Counts, logs and traces every request that reaches the routes. Sets `traceparent` for the runs that the request starts: to
 * the span of the request or, without a tracer, to the header that the client sent.
 */
export function observeRequests({ metrics, log, tracerProvider }: RequestObservers): MiddlewareHandler<ObservedEnv> {
  const tracer = tracerProvider?.getTracer('@tapetree/server')
  return async (context, next) => {
    const startedAt = performance.now()
    const { method } = context.req
    const sent = context.req.header('traceparent')
    const span = tracer?.startSpan(
      method,
      { kind: SpanKind.SERVER, attributes: { 'http.request.method': method } },
      remoteContext(sent, context.req.header('tracestate')),
    )
    const traceparent = span ? traceparentOf(span.spanContext()) : sent
    if (traceparent !== undefined) context.set('traceparent', traceparent)
    try {
      await next()
    } finally {
      const seconds = (performance.now() - startedAt) / 1000
      const route = routeOf(context)
      metrics?.requestDone({ method, route, status: context.res.status, seconds })
      if (span) endSpan(span, context, route)
      if (log) logRequest(log, lineOf(context, { route, seconds, traceId: span?.spanContext().traceId }))
    }
  }
}

function routeOf(context: Context): string {
  const matched = routePath(context, -1)
  // Only middleware matched.
  return matched.includes('*') ? 'none' : matched
}

function lineOf(
  context: Context<ObservedEnv>,
  { route, seconds, traceId }: { route: string; seconds: number; traceId: string | undefined },
): RequestLine {
  const { method, path } = context.req
  const { requestId, peer } = (context.env as Partial<ObservedEnv>['Bindings']) ?? {}
  const caller = context.get('caller')
  return {
    requestId,
    method,
    path,
    route,
    status: context.res.status,
    ms: Math.round(seconds * 1000),
    address: peer?.address,
    tenant: caller?.tenant,
    caller: caller?.tokenId,
    traceId,
  }
}

/** Attributes of the HTTP conventions. The query string may contain secrets and is left out. */
function endSpan(span: Span, context: Context<ObservedEnv>, route: string): void {
  const { method, path, url } = context.req
  const { status } = context.res
  const { requestId, peer } = (context.env as Partial<ObservedEnv>['Bindings']) ?? {}
  const hasRoute = route !== 'none'
  if (hasRoute) span.updateName(`${method} ${route}`)
  span.setAttributes({
    'url.path': path,
    'url.scheme': peer?.scheme ?? new URL(url).protocol.slice(0, -1),
    'http.response.status_code': status,
    ...(hasRoute && { 'http.route': route }),
    ...(peer && { 'client.address': peer.address }),
    ...(requestId !== undefined && { 'tapetree.request.id': requestId }),
  })
  if (status >= 500) span.setAttribute('error.type', String(status)).setStatus({ code: SpanStatusCode.ERROR })
  span.end()
}
