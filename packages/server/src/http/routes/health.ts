import { healthSchema, readinessSchema, subprotocol, versionSchema } from '@tapetree/client/protocol'
import type { ApiParts, Routes } from '../app.ts'
import { json } from '../responses.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { RequestProblem } from '../../util/problem-error.ts'
import { metricsRoute, type Metrics } from '../../observe/metrics.ts'

export function addHealth(routes: Routes, { notReady, version }: ApiParts): void {
  routes.add(
    'anyone',
    {
      method: 'get',
      path: '/api/health',
      operationId: 'checkHealth',
      summary: 'Check whether the process answers',
      responses: { 200: json(healthSchema, 'It does.') },
    },
    (context) => context.json({ status: 'ok' as const }, 200),
  )
  routes.add(
    'anyone',
    {
      method: 'get',
      path: '/api/ready',
      operationId: 'checkReadiness',
      summary: 'Check whether the server is ready for requests',
      responses: { 200: json(readinessSchema, 'It should.'), 503: json(readinessSchema, 'It is not ready.') },
    },
    async (context) => {
      const reason = await notReady?.()
      if (reason === undefined) return context.json({ status: 'ready' as const }, 200)
      return context.json({ status: 'not-ready' as const, reason }, 503)
    },
  )
  routes.add(
    'any-role',
    {
      method: 'get',
      path: '/api/version',
      operationId: 'getVersion',
      summary: 'Get the version of the server and of its protocol',
      responses: { 200: json(versionSchema, 'Strangers do not learn which version they could attack.') },
    },
    (context) => context.json({ name: 'tapetree', ...version, protocol: subprotocol }, 200),
  )
}

/** It counts the activity of all tenants, so only tokens of the owner's tenant without a folder may read it. */
export function addMetrics(routes: Routes, metrics: Metrics, ownerTenant: string): void {
  const { method, path, access } = metricsRoute
  const text = { 'text/plain': { schema: z.string() } }
  const route = createRoute({
    method,
    path,
    operationId: 'getMetrics',
    summary: 'Get metrics for Prometheus',
    responses: { 200: { description: 'For Prometheus.', content: text } },
  })
  routes.add(access, route, async (context) => {
    const { tenant, folder } = context.var.caller
    if (tenant !== ownerTenant || folder !== undefined)
      throw new RequestProblem(
        403,
        'owner-only',
        'Only tokens of the owner that are not limited to a folder may read the metrics.',
      )
    return context.text(await metrics.metricsText(), 200, { 'content-type': metrics.contentType })
  })
}
