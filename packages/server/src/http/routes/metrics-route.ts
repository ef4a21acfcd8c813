import { createRoute, z } from '@hono/zod-openapi'
import { ProblemError } from '../../util/problem-error.ts'
import { metricsRoute, type Metrics } from '../../observe/metrics.ts'
import type { Routes } from '../app.ts'

/** It counts what all tenants do, so only the owner's sees it. */
export function addMetrics(routes: Routes, metrics: Metrics, ownerTenant: string): void {
  const { method, path, access } = metricsRoute
  const text = { 'text/plain': { schema: z.string() } }
  const route = createRoute({ method, path, responses: { 200: { description: 'For Prometheus.', content: text } } })
  routes.add(access, route, async (context) => {
    if (context.var.caller.tenant !== ownerTenant)
      throw new ProblemError(403, 'owner-only', 'It is for the owner of this server.')
    return context.text(await metrics.metricsText(), 200, { 'content-type': metrics.contentType })
  })
}
