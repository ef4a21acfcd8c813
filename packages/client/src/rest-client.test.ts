import { afterEach, describe, expect, test } from 'vitest'
import { ProblemError } from './problem-error.ts'
import type { WireSessionSummary } from './protocol/rest.ts'
import { RestClient } from './rest-client.ts'
import { webServer } from './testing/web-server.ts'

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

interface Seen {
  request: string
  headers: Record<string, unknown>
  body: string
}

async function client(status: number, body: unknown, contentType = 'application/json'): Promise<[RestClient, Seen[]]> {
  const seen: Seen[] = []
  const server = await webServer((request, response, text) => {
    seen.push({ request: `${request.method} ${request.url}`, headers: request.headers, body: text })
    response.writeHead(status, { 'content-type': contentType })
    response.end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body))
  })
  cleanUps.push(() => server.close())
  return [new RestClient({ baseUrl: `${server.url}/base`, token: 'not-a-secret' }), seen]
}

const session: WireSessionSummary = {
  id: 's1',
  name: 'A name',
  created: '2026-01-01T00:00:00Z',
  modified: '2026-01-01T00:00:00Z',
  message_count: 1,
  status: 'idle',
  queue_length: 0,
  cost: 0,
  damaged: false,
}
const { message_count: messageCount, queue_length: queueLength, ...same } = session
const summary = { ...same, messageCount, queueLength }

describe('a request', () => {
  test('goes to its path, with the token and the command id', async () => {
    const [rest, seen] = await client(201, session)
    expect(await rest.createSession({ cwd: '/x' }, { commandId: 'c-1' })).toEqual(summary)
    expect(seen).toMatchObject([
      {
        request: 'POST /base/api/sessions',
        headers: {
          authorization: 'Bearer not-a-secret',
          'idempotency-key': 'c-1',
          'content-type': 'application/json',
        },
        body: '{"cwd":"/x"}',
      },
    ])
  })

  test('has camelCase names in its body and its result, except inside of foreign values', async () => {
    const [rest, seen] = await client(200, { outcome: 'queued', run_id: null, message_id: 'm' })
    const result = await rest.prompt('s1', { text: 'snake_case', imageIds: [], whenBusy: 'queue' })
    expect(result).toEqual({ outcome: 'queued', runId: null, messageId: 'm' })
    expect(seen[0]?.body).toBe('{"text":"snake_case","image_ids":[],"when_busy":"queue"}')
    const request = { request_id: 'p', tool: 'act', input: { file_path: 'a' }, options: [{ option_id: 'yes' }] }
    const [asked] = await client(200, { permissions: [request] })
    expect((await asked.permissions('s1')).permissions).toEqual([
      { requestId: 'p', tool: 'act', input: { file_path: 'a' }, options: [{ optionId: 'yes' }] },
    ])
  })

  test('sends its query', async () => {
    const [rest, seen] = await client(200, { sessions: [session], cursor: 'next' })
    expect(await rest.sessions({ limit: 10, q: 'a b' })).toEqual({ sessions: [summary], cursor: 'next' })
    expect(seen[0]?.request).toBe('GET /base/api/sessions?limit=10&q=a+b')
  })

  test('changes only the version that it has seen', async () => {
    const [rest, seen] = await client(200, session)
    await rest.patchSession('s1', { name: 'x' }, { ifMatch: '"7"' })
    expect(seen).toMatchObject([{ request: 'PATCH /base/api/sessions/s1', headers: { 'if-match': '"7"' } }])
  })

  test('without a response body resolves', async () => {
    const [rest, seen] = await client(204, undefined)
    await rest.removeQueued('s1', 'q-1')
    expect(seen[0]?.request).toBe('DELETE /base/api/sessions/s1/queue/q-1')
  })

  test('deletes a session for good, and returns its forks', async () => {
    const [rest, seen] = await client(200, { id: 's1', forks: ['s2'] })
    expect(await rest.eraseSession('s1')).toEqual({ id: 's1', forks: ['s2'] })
    expect(seen[0]?.request).toBe('DELETE /base/api/sessions/s1?erase=true')
  })

  test('never leaves its path, whatever the id', async () => {
    const [rest, seen] = await client(200, { messages: [], count: 0 })
    await rest.queue('../../x?y#z')
    expect(seen[0]?.request).toBe('GET /base/api/sessions/..%2F..%2Fx%3Fy%23z/queue')
    for (const id of ['', '.', '..']) await expect(rest.queue(id)).rejects.toMatchObject({ status: 422 })
    expect(seen.length).toBe(1)
  })

  test('sends an image unchanged', async () => {
    const stored = { id: 'a'.repeat(64), size: 3, media_type: 'image/png' }
    const [rest, seen] = await client(201, stored)
    expect(await rest.storeImage('s1', new Blob(['png'], { type: 'image/png' }))).toEqual({
      id: stored.id,
      size: stored.size,
      mediaType: stored.media_type,
    })
    expect(seen).toMatchObject([{ headers: { 'content-type': 'image/png' }, body: 'png' }])
  })

  test('has the URL of the socket', async () => {
    const rest = new RestClient({ baseUrl: 'https://host/base/' })
    expect(rest.socketUrl('s1')).toBe('wss://host/base/api/sessions/s1/ws')
  })
})

describe('a failed request', () => {
  test("rejects with the server's problem", async () => {
    const problem = { type: 'session-busy', title: 'Session busy', status: 409, detail: 'A run goes on.', run_id: 'r' }
    const [rest] = await client(409, problem, 'application/problem+json')
    const error = await rest.prompt('s1', { text: 'x' }).catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(ProblemError)
    expect(error).toMatchObject({ message: 'A run goes on.', type: 'session-busy', status: 409, problem })
  })

  test('reports the status if a proxy answers', async () => {
    const [rest] = await client(502, '<html>Bad gateway</html>', 'text/html')
    await expect(rest.models()).rejects.toMatchObject({ type: 'http', status: 502 })
  })

  test('rejects if the response is malformed', async () => {
    const [rest] = await client(200, { sessions: 'none' })
    await expect(rest.sessions()).rejects.toMatchObject({ type: 'unreadable-answer', status: 0 })
  })

  test('rejects if no server answers', async () => {
    const rest = new RestClient({ baseUrl: 'http://127.0.0.1:1' })
    await expect(rest.models()).rejects.toMatchObject({ type: 'unreachable', status: 0 })
  })

  test('rejects with the abort reason when aborted', async () => {
    const rest = new RestClient({ baseUrl: 'http://127.0.0.1:1' })
    await expect(rest.models(AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' })
  })
})
