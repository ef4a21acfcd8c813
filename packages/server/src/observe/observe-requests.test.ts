import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { afterEach, describe, expect, test } from 'vitest'
import { createLog } from './log.ts'
import { Metrics, observeRequests } from './metrics.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function place(): { app: Hono; metrics: Metrics; written: string[] } {
  const metrics = new Metrics(new Map())
  cleanUps.push(() => metrics.close())
  const written: string[] = []
  const log = createLog({ destination: { write: (line) => written.push(line) } })
  const app = new Hono()
  app.use(observeRequests({ metrics, log }))
  app.get('/api/sessions/:id', (context) => context.json({}))
  app.get('/refused', () => {
    throw new HTTPException(403)
  })
  return { app, metrics, written }
}

describe('a request', () => {
  test('is counted by its route and logged without its query string', async () => {
    const { app, metrics, written } = place()
    await app.request('/api/sessions/one?token=hidden-words')
    await app.request('/api/sessions/two')
    expect(await metrics.metricsText()).toContain(
      'tapetree_http_request_duration_seconds_count{method="GET",route="/api/sessions/:id",status="200"} 2',
    )
    expect(written.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { level: 'info', method: 'GET', path: '/api/sessions/one', status: 200, msg: 'request' },
      { path: '/api/sessions/two' },
    ])
    expect(written.join('')).not.toContain('hidden-words')
  })

  test('without a route, or rejected, is counted too', async () => {
    const { app, metrics } = place()
    await app.request('/nowhere/at/all')
    await app.request('/refused')
    const text = await metrics.metricsText()
    expect(text).toContain('{method="GET",route="none",status="404"} 1')
    expect(text).toContain('{method="GET",route="/refused",status="403"} 1')
  })
})
