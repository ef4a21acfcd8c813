import { healthSchema, readinessSchema } from '@tapetree/client'
import type { ApiParts } from '../api-parts.ts'
import type { Routes } from '../app.ts'
import { json } from '../responses.ts'
import { createRoute, z } from '@hono/zod-openapi'
import { RequestProblem } from '../../util/problem-error.ts'
import { metricsRoute, type Metrics } from '../../observe/metrics.ts'

export function addHealth(routes: Routes, { notReady }: ApiParts): void {
  routes.add(
    'anyone',
    {
      method: 'get',
      path: '/api/health',
      summary: 'Whether the process answers',
      responses: { 200: json(healthSchema, 'It does.') },
    },
    (context) => context.json({ status: 'ok' as const }, 200),
  )
  routes.add(
    'anyone',
    {
      method: 'get',
      path: '/api/ready',
      summary: 'Whether it should be sent requests',
      responses: { 200: json(readinessSchema, 'It should.'), 503: json(readinessSchema, 'Not just now.') },
    },
    async (context) => {
      const reason = await notReady?.()
      if (reason === undefined) return context.json({ status: 'ready' as const }, 200)
      return context.json({ status: 'not-ready' as const, reason }, 503)
    },
  )
}

/** It counts what all tenants do, so only the owner's sees it. */
export function addMetrics(routes: Routes, metrics: Metrics, ownerTenant: string): void {
  const { method, path, access } = metricsRoute
  const text = { 'text/plain': { schema: z.string() } }
  const route = createRoute({ method, path, responses: { 200: { description: 'For Prometheus.', content: text } } })
  routes.add(access, route, async (context) => {
    if (context.var.caller.tenant !== ownerTenant)
      throw new RequestProblem(403, 'owner-only', 'It is for the owner of this server.')
    return context.text(await metrics.metricsText(), 200, { 'content-type': metrics.contentType })
  })
}
