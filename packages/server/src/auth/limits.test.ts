import { allowAll, onlyModel, type Model } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import { FakeClock, script, scriptedModel } from '@tapetree/agent/testing'
import type { Ack, Limits } from '@tapetree/client/protocol'
import { memoryStore, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { TestServer, type Answer } from '../testing/running-server.ts'
import { UsageLimits } from './limits.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface StartOptions {
  store?: (folder: string) => SessionStore
  model?: Model
  tenantLimits?: Limits
  clock?: FakeClock
  root?: string
}

async function start({ store, model = answering(), tenantLimits, clock }: StartOptions = {}): Promise<TestServer> {
  const server = await TestServer.start((folder) => ({
    sessions: agentSessions({
      store: store?.(folder) ?? memoryStore(),
      models: onlyModel(model),
      tools: () => [scripted(model).tool('act')],
      gate: () => allowAll,
      hasSubagents: false,
    }),
    api: { roots: () => ['/'] },
    ...(tenantLimits && { tenantLimits: new Map([['default', tenantLimits]]) }),
    ...(clock && { clock }),
  }))
  cleanUps.push(() => server.close())
  return server
}

function scripted(model: Model): ReturnType<typeof scriptedModel> {
  return model as ReturnType<typeof scriptedModel>
}

/** Each answer costs this many dollars. */
function answering(cost = 0): Model {
  return scriptedModel([], {
    otherwise: () => script().usage({ inputTokens: 1, outputTokens: 1, cost }).text('Said.'),
  })
}

async function limited(server: TestServer, limits: Limits): Promise<string> {
  return (await server.tokens.create({ tenant: 'default', role: 'drive', limits })).token
}

async function child(server: TestServer, token: string): Promise<string> {
  const { body } = await server.ask('/api/tokens', { token, json: { role: 'drive' } })
  return (body as { token: string }).token
}

async function create(server: TestServer, token: string, headers = {}): Promise<Answer> {
  return server.ask('/api/sessions', { token, json: {}, headers })
}

async function newSession(server: TestServer, token: string): Promise<string> {
  return ((await create(server, token)).body as { id: string }).id
}

async function attach(server: TestServer, id: string, token: string): Promise<Screen> {
  const socket = server.dial(id, token)
  cleanUps.push(() => socket.terminate())
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'attach', data: { client: { id: `c-${id}-${token.slice(-6)}` } } }))
  const [data] = (await once(socket, 'message')) as [Buffer]
  const { type } = JSON.parse(data.toString()) as { type: string }
  return { socket, type }
}

interface Screen {
  socket: WebSocket
  type: string
}

let commands = 0
function command({ socket }: Screen, op: string, args: object = {}): Promise<Ack> {
  const id = `cmd-${++commands}`
  return new Promise((resolve) => {
    socket.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as { type: string; data: Ack }
      if (frame.type === 'ack' && frame.data.id === id) resolve(frame.data)
    })
    socket.send(JSON.stringify({ type: 'cmd', data: { id, op, args } }))
  })
}

async function untilIdle(server: TestServer, id: string): Promise<void> {
  const live = await server.sessions.get(id)
  await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
}

describe('a limit on requests', () => {
  test('rejects requests with 429 and the time to wait, then admits them again', async () => {
    const clock = new FakeClock()
    const server = await start({ clock })
    const token = await limited(server, { requests_per_minute: 3 })
    for (let count = 0; count < 3; count++) expect((await server.ask('/api/sessions', { token })).status).toBe(200)
    const refused = await server.ask('/api/sessions', { token })
    expect([refused.status, refused.headers['retry-after'], refused.body]).toMatchObject([
      429,
      '20',
      { type: 'too-many-requests', retry_after_ms: 20_000 },
    ])
    clock.advance(20_000)
    expect((await server.ask('/api/caller', { token })).body).toMatchObject({
      limits: { requests_per_minute: 3 },
      usage: { requests_per_minute: 3 },
    })
    expect((await server.ask('/api/sessions', { token })).status).toBe(429)
  })

  test('counts commands on a socket, and closes an upgrade beyond it with 4429', async () => {
    const server = await start({ clock: new FakeClock() })
    const token = await limited(server, { requests_per_minute: 4 })
    const id = await newSession(server, token)
    const screen = await attach(server, id, token)
    expect(screen.type).toBe('attached')
    expect((await command(screen, 'rename', { name: 'a' })).ok).toBe(true)
    expect((await command(screen, 'rename', { name: 'b' })).ok).toBe(true)
    const refused = await command(screen, 'rename', { name: 'c' })
    expect(refused.error).toMatchObject({ status: 429, type: 'too-many-requests', retry_after_ms: 15_000 })
    const late = server.dial(id, token)
    expect((await once(late, 'close'))[0]).toBe(4429)
  })

  test('is shared by all tokens that derive from one', async () => {
    const server = await start({ clock: new FakeClock() })
    const parent = await limited(server, { requests_per_minute: 5 })
    const [left, right] = [await child(server, parent), await child(server, parent)]
    const statuses: number[] = []
    for (const token of [left, right, left, right]) statuses.push((await server.ask('/api/models', { token })).status)
    expect(statuses).toEqual([200, 200, 200, 429])
  })
})

describe('a limit on stored sessions', () => {
  test('rejects new sessions and forks, but not the repetition of a request', async () => {
    const server = await start()
    const token = await limited(server, { sessions: 1 })
    const key = { 'idempotency-key': 'first' }
    const made = await create(server, token, key)
    expect(made.status).toBe(201)
    const { id } = made.body as { id: string }
    expect((await create(server, token)).body).toMatchObject({ status: 403, type: 'session-limit', limit: 'sessions' })
    expect((await server.ask(`/api/sessions/${id}/fork`, { token, json: {} })).body).toMatchObject({
      type: 'session-limit',
    })
    expect([(await create(server, token, key)).status, (await create(server, token, key)).body]).toMatchObject([
      201,
      { id },
    ])
    const { tokens } = (await server.ask('/api/tokens', { token })).body as { tokens: object[] }
    expect(tokens.at(-1)).toMatchObject({ limits: { sessions: 1 }, usage: { sessions: 1 } })
    await server.ask(`/api/sessions/${id}?erase=true`, { token, method: 'DELETE' })
    expect((await create(server, token)).status).toBe(201)
  })

  test('of a tenant holds for every token, and not for the user of the Unix socket', async () => {
    const server = await start({ tenantLimits: { sessions: 1 } })
    const token = await server.token('drive')
    expect((await create(server, token)).status).toBe(201)
    expect((await create(server, await server.token('drive'))).status).toBe(403)
    await server.sessions.create({ cwd: '/' })
  })
})

describe('a limit on storage', () => {
  test('rejects new sessions, images and prompts when the files are larger', async () => {
    const clock = new FakeClock()
    const server = await start({ clock, store: (folder) => openFileStore({ folder: join(folder, 'sessions') }) })
    const token = await limited(server, { storage_bytes: 1 })
    const id = await newSession(server, token)
    expect(id).toBeDefined()
    clock.advance(10_000)
    expect((await create(server, token)).body).toMatchObject({ status: 403, type: 'storage-limit' })
    const prompted = await server.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'go' } })
    expect(prompted.body).toMatchObject({ type: 'storage-limit' })
    expect((await server.ask(`/api/sessions/${id}`, { token, method: 'PATCH', json: { name: 'n' } })).status).toBe(200)
  })

  test('holds for a store without files, too', async () => {
    const clock = new FakeClock()
    const server = await start({ clock, store: () => memoryStore() })
    const token = await limited(server, { storage_bytes: 1 })
    const id = await newSession(server, token)
    expect(id).toBeDefined()
    clock.advance(10_000)
    expect((await create(server, token)).body).toMatchObject({ status: 403, type: 'storage-limit' })
  })
})

describe('a limit on live sessions', () => {
  test('rejects another one while all are in use, and closes idle ones to make room', async () => {
    const server = await start()
    const token = await limited(server, { live_sessions: 1 })
    const [one, two] = [await newSession(server, token), await newSession(server, token)]
    const screen = await attach(server, one, token)
    const path = `/api/sessions/${two}`
    const rename = (): Promise<Answer> => server.ask(path, { token, method: 'PATCH', json: { name: 'named' } })
    expect((await rename()).body).toMatchObject({ status: 409, type: 'live-session-limit' })
    expect((await attach(server, two, token)).type).toBe('bye')
    // Reading needs no live session, and a session that is live already can be joined.
    expect((await server.ask(path, { token })).status).toBe(200)
    const driver = await server.token('drive')
    const other = await attach(server, two, driver)
    expect((await rename()).status).toBe(200)
    for (const { socket } of [other, screen]) {
      socket.close()
      await once(socket, 'close')
    }
    await server.sessions.release(two)
    expect((await rename()).status).toBe(200)
    expect(server.sessions.opened.map(({ session }) => session.id)).toEqual([two])
  })
})

test('a limit on live sessions holds for concurrent requests', async () => {
  const server = await start()
  const token = await limited(server, { live_sessions: 2 })
  const ids = await Promise.all(Array.from({ length: 6 }, () => newSession(server, token)))
  const screens = await Promise.all(ids.map((id) => attach(server, id, token)))
  expect(screens.filter(({ type }) => type === 'attached')).toHaveLength(2)
  expect(server.sessions.live.size).toBe(2)
})

describe('a limit on spending', () => {
  test('rejects prompts after it was reached, and the repetition of one that took effect is no prompt', async () => {
    const server = await start({ model: answering(2) })
    const token = await limited(server, { spend_per_day: 3 })
    const id = await newSession(server, token)
    const prompt = (key: string): Promise<Answer> =>
      server.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'go' }, headers: { 'idempotency-key': key } })
    for (const key of ['one', 'two']) {
      expect((await prompt(key)).status).toBeLessThan(300)
      await untilIdle(server, id)
    }
    expect((await prompt('three')).body).toMatchObject({ status: 403, type: 'spend-limit', limit: 'spend_per_day' })
    expect((await prompt('two')).status).toBeLessThan(300)
    expect((await server.ask('/api/caller', { token })).body).toMatchObject({ usage: { spend_per_day: 4 } })
    const screen = await attach(server, id, token)
    for (const op of ['prompt', 'follow_up']) {
      expect((await command(screen, op, { text: 'go' })).error).toMatchObject({ type: 'spend-limit' })
    }
    expect((await command(screen, 'rename', { name: 'still' })).ok).toBe(true)
    const unlimited = await server.token('drive')
    expect((await server.ask(`/api/sessions/${id}/prompt`, { token: unlimited, json: { text: 'go' } })).status).toBe(
      202,
    )
  })

  test('counts tokens that derive from it, copies once, and what earlier servers stored', async () => {
    const store = memoryStore()
    const first = await start({ store: () => store, model: answering(2) })
    const parent = await limited(first, { spend_per_day: 10 })
    const token = await child(first, parent)
    const id = await newSession(first, token)
    await first.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'go' } })
    await untilIdle(first, id)
    await first.ask(`/api/sessions/${id}/fork`, { token, json: {} })
    const spent = async (): Promise<unknown> =>
      ((await first.ask('/api/caller', { token: parent })).body as { usage: object }).usage
    expect(await spent()).toEqual({ spend_per_day: 2 })
    const sessions = agentSessions({ store, models: onlyModel(answering()), tools: () => [], gate: () => allowAll })
    const { tokens } = first
    const later = new UsageLimits({ tenants: new Map([['default', sessions]]), tokens, clock: systemClock })
    cleanUps.push(() => sessions.close())
    const [, ...records] = tokens.list('default')
    const usages = await Promise.all(records.map((record) => later.usageOf(record)))
    expect(usages).toEqual([{ spend_per_day: 2 }, { spend_per_day: 2 }])
  })

  test('ends a run at the answer that reaches it', async () => {
    const model = scriptedModel([], {
      otherwise: ({ messages }) =>
        script().usage({ inputTokens: 1, outputTokens: 1, cost: 2 }).toolCall(`call-${messages.length}`, 'act', {}),
    })
    const server = await start({ model })
    const token = await limited(server, { spend_per_day: 5 })
    const id = await newSession(server, token)
    await server.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'go' } })
    await untilIdle(server, id)
    const { usage } = (await server.ask('/api/caller', { token })).body as { usage: { spend_per_day: number } }
    expect(usage.spend_per_day).toBeGreaterThanOrEqual(6)
    expect(usage.spend_per_day).toBeLessThanOrEqual(20)
  })

  test('starts again at midnight UTC', async () => {
    const clock = new FakeClock()
    const server = await start({ model: answering(2), clock })
    const token = await limited(server, { spend_per_day: 1 })
    const id = await newSession(server, token)
    const prompt = (): Promise<Answer> => server.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'go' } })
    clock.advance(Math.max(0, Date.now() - clock.now()))
    await prompt()
    await untilIdle(server, id)
    expect((await prompt()).body).toMatchObject({ type: 'spend-limit' })
    clock.advance(24 * 60 * 60_000)
    expect((await prompt()).status).toBeLessThan(300)
  })
})
