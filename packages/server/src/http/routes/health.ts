import { healthSchema, readinessSchema } from '@tapetree/client'
import type { ApiParts } from '../api-parts.ts'
import type { Routes } from '../app.ts'
import { json } from '../responses.ts'

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
