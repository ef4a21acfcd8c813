import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { afterEach, describe, expect, test } from 'vitest'
import { createLog } from './log.ts'
import { Metrics } from './metrics.ts'
import { observeRequests, type RequestLine } from './requests.ts'
import { memoryTracer } from './testing/memory-tracer.ts'
import { TestServer } from '../testing/running-server.ts'

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

interface Logged extends RequestLine {
  msg: string
}

async function loggedServer(): Promise<{ server: TestServer; lines: () => Logged[]; written: string[] }> {
  const written: string[] = []
  const log = createLog({ destination: { write: (line) => written.push(line) } })
  const server = await TestServer.start(() => ({ log }))
  cleanUps.push(() => server.close())
  return { server, written, lines: () => written.map((line) => JSON.parse(line) as Logged) }
}

describe('the log of a server', () => {
  test('names request, caller, address and route, and has no secrets', async () => {
    const { server, lines, written } = await loggedServer()
    const token = await server.token('drive')
    const secret = 'words-of-the-body'
    await server.ask('/api/sessions?q=words-of-the-query', {
      token,
      json: { name: secret },
      headers: { cookie: 'other=words-of-the-cookie', 'x-request-id': 'proxy-17' },
    })
    await server.ask('/api/caller')
    await server.ask('/api/health', { headers: { host: 'evil.example' } })
    expect(lines()).toMatchObject([
      {
        level: 'info',
        msg: 'request',
        requestId: 'proxy-17',
        method: 'POST',
        path: '/api/sessions',
        route: '/api/sessions',
        status: 201,
        ms: expect.any(Number),
        address: '127.0.0.1',
        tenant: 'default',
        caller: token.split('_')[1],
      },
      { route: '/api/caller', status: 401, address: '127.0.0.1' },
      { route: 'none', path: '/api/health', status: 421, address: '127.0.0.1' },
    ])
    expect(lines()[1]).not.toHaveProperty('caller')
    expect(written.join('')).not.toMatch(/words-of/)
    expect(written.join('')).not.toContain(token.slice(-43))
  })

  test('includes upgrades to WebSockets, accepted and refused', async () => {
    const { server, lines } = await loggedServer()
    const sessionId = await server.sessions.create({})
    const open = server.dial(sessionId, await server.token('view'), { 'x-request-id': 'socket-1' })
    const upgraded = await new Promise<string | string[] | undefined>((resolve) => {
      open.once('upgrade', ({ headers }) => resolve(headers['x-request-id']))
    })
    expect(upgraded).toBe('socket-1')
    open.terminate()
    const refused = server.dial(sessionId, 'no-token')
    await new Promise((resolve) => refused.once('close', resolve))
    expect(lines()).toMatchObject([
      { requestId: 'socket-1', route: '/api/sessions/{id}/ws', status: 101, tenant: 'default' },
      { route: '/api/sessions/{id}/ws', status: 401 },
    ])
  })
})

describe('the id of a request', () => {
  test('is that of the client if it is well formed, and is in the header and the problem', async () => {
    const { server } = await loggedServer()
    const ask = (id: string): ReturnType<TestServer['ask']> =>
      server.ask('/api/caller', { headers: { 'x-request-id': id } })
    const named = await ask('a-b.c:1')
    expect([named.headers['x-request-id'], named.body]).toMatchObject(['a-b.c:1', { request_id: 'a-b.c:1' }])
    for (const odd of ['', 'two words', 'x'.repeat(129), 'a,b', '{"a":1}']) {
      const { headers } = await ask(odd)
      expect(headers['x-request-id']).toMatch(/^[\da-f]{8}-/)
    }
    const refused = await server.ask('/api/health', { headers: { host: 'evil.example', 'x-request-id': 'one' } })
    expect([refused.status, refused.headers['x-request-id'], refused.body]).toMatchObject([
      421,
      'one',
      { request_id: 'one' },
    ])
    const wrong = await server.ask('/api/health', { method: 'PUT', headers: { 'x-request-id': 'two' } })
    expect(wrong.body).toMatchObject({ type: 'method-not-allowed', request_id: 'two' })
    expect((await server.ask('/api/health')).headers['x-request-id']).toMatch(/^[\da-f]{8}-/)
  })
})

describe('the span of a request', () => {
  test('follows the HTTP conventions and continues the trace of the client', async () => {
    const { provider, spans } = memoryTracer()
    const app = new Hono()
    app.use(observeRequests({ tracerProvider: provider }))
    app.get('/api/sessions/:id', (context) => context.json({}))
    app.get('/broken', (context) => context.json({}, 500))
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await app.request('/api/sessions/one?token=hidden-words', { headers: { traceparent } })
    await app.request('/broken', { headers: { traceparent: 'ff-broken' } })
    await app.request('/nowhere')
    expect(spans).toMatchObject([
      {
        name: 'GET /api/sessions/:id',
        traceId: '0af7651916cd43dd8448eb211c80319c',
        parent: 'b7ad6b7169203331',
        attributes: {
          'http.request.method': 'GET',
          'http.route': '/api/sessions/:id',
          'http.response.status_code': 200,
          'url.path': '/api/sessions/one',
          'url.scheme': 'http',
        },
      },
      { name: 'GET /broken', parent: undefined, status: { code: 2 }, attributes: { 'error.type': '500' } },
      { name: 'GET', parent: undefined, attributes: { 'http.response.status_code': 404 } },
    ])
    expect(JSON.stringify(spans)).not.toContain('hidden-words')
    expect(spans.filter(({ endTime }) => endTime === undefined)).toEqual([])
  })
})
