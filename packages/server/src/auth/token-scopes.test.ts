import { openFileStore } from '@tapetree/session/stores/file'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { allowAll, onlyModel } from '@tapetree/agent'
import { once } from 'node:events'
import { mkdir, realpath } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { Metrics } from '../observe/metrics.ts'
import { storeInside } from '../live/store-inside.ts'
import { TestServer, type Answer } from '../testing/running-server.ts'
import type { NewToken } from './token-store.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Place {
  server: TestServer
  /** Real. Contains the folders `one` and `two`. */
  root: string
  one: string
  two: string
  drive: string
}

async function start(): Promise<Place> {
  let real = ''
  const server = await TestServer.start((folder) => {
    real = folder
    const store = storeInside(openFileStore({ folder: join(folder, 'sessions') }), [folder])
    const sessions = agentSessions({
      store,
      models: onlyModel(scriptedModel([], { otherwise: () => script().text('Said.') })),
      tools: () => [],
      gate: () => allowAll,
      hasSubagents: false,
    })
    const tenants = new Map([['default', sessions]])
    return { sessions, tenants, metrics: new Metrics(tenants), api: { roots: () => [folder] } }
  })
  cleanUps.push(() => server.close())
  const root = await realpath(real)
  await mkdir(join(root, 'one/deep'), { recursive: true })
  await mkdir(join(root, 'two'))
  return { server, root, one: join(root, 'one'), two: join(root, 'two'), drive: await server.token('drive') }
}

async function create({ server }: Place, token: string, cwd?: string): Promise<string> {
  const { body } = await server.ask('/api/sessions', { token, json: cwd === undefined ? {} : { cwd } })
  return (body as { id: string }).id
}

async function tokenOf({ server }: Place, grant: Partial<NewToken>): Promise<string> {
  return (await server.tokens.create({ tenant: 'default', role: 'drive', ...grant })).token
}

describe('the role metrics', () => {
  test('reads metrics, health and its own description, and nothing else', async () => {
    const place = await start()
    const token = await tokenOf(place, { role: 'metrics' })
    const statuses: Record<string, number> = {}
    for (const path of ['/metrics', '/api/caller', '/api/health', '/api/sessions', '/api/models', '/api/openapi.json'])
      statuses[path] = (await place.server.ask(path, { token })).status
    expect(statuses).toEqual({
      '/metrics': 200,
      '/api/caller': 200,
      '/api/health': 200,
      '/api/sessions': 403,
      '/api/models': 403,
      '/api/openapi.json': 403,
    })
    const socket = place.server.dial(await create(place, place.drive), token)
    socket.on('error', () => undefined)
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
    expect(response.statusCode).toBe(403)
    socket.terminate()
  })

  test('is not included in view, queue or approve', async () => {
    const place = await start()
    for (const role of ['view', 'queue', 'approve'] as const)
      expect((await place.server.ask('/metrics', { token: await tokenOf(place, { role }) })).status).toBe(403)
    expect((await place.server.ask('/metrics', { token: place.drive })).status).toBe(200)
    const scoped = await tokenOf(place, { folder: place.one })
    expect((await place.server.ask('/metrics', { token: scoped })).body).toMatchObject({ type: 'owner-only' })
  })
})

describe('a token with a folder', () => {
  test('lists, finds and reads only sessions inside of it', async () => {
    const place = await start()
    const { server, one, two, drive } = place
    const inside = [await create(place, drive, one), await create(place, drive, join(one, 'deep'))]
    const outside = await create(place, drive, two)
    const token = await tokenOf(place, { folder: one })
    const { sessions } = (await server.ask('/api/sessions', { token })).body as { sessions: { id: string }[] }
    expect(sessions.map(({ id }) => id).toSorted()).toEqual(inside.toSorted())
    // Also if it is live.
    await server.sessions.get(outside)
    for (const path of ['', '/events', '/tree', '/queue', '/export', '/files', '/commands']) {
      const { status } = await server.ask(`/api/sessions/${outside}${path}`, { token })
      expect([path, status]).toEqual([path, 404])
    }
    const erased = await server.ask(`/api/sessions/${outside}?erase=true`, { token, method: 'DELETE' })
    expect(erased.status).toBe(404)
    expect((await server.ask(`/api/sessions/${outside}`, { token: drive })).status).toBe(200)
    expect(server.sessions.opened.map(({ session }) => session.id)).toContain(outside)
  })

  test('creates sessions only inside of it, and there by default', async () => {
    const place = await start()
    const { server, one, two } = place
    const token = await tokenOf(place, { folder: one })
    const id = await create(place, token)
    expect((await server.ask(`/api/sessions/${id}`, { token })).body).toMatchObject({ cwd: one })
    for (const cwd of [two, place.root, join(one, '..')]) {
      const { status, body } = await server.ask('/api/sessions', { token, json: { cwd } })
      expect([status, body]).toMatchObject([403, { type: 'outside-roots' }])
    }
    const folders = (await server.ask('/api/folders', { token })).body as { folders: { path: string }[] }
    expect(folders.folders.map(({ path }) => path)).toEqual([one])
    expect((await server.ask(`/api/folders?path=${encodeURIComponent(two)}`, { token })).status).toBe(403)
  })

  test('is told of changes inside of it, and of no other', async () => {
    const place = await start()
    const { server, one, two, drive } = place
    const [inside, outside] = [await create(place, drive, one), await create(place, drive, two)]
    const told: { type: string; id: string }[] = []
    const stream = await follow(server, await tokenOf(place, { folder: one }), (event) => told.push(event))
    cleanUps.push(() => stream.destroy())
    for (const id of [outside, inside]) {
      await server.ask(`/api/sessions/${id}`, { token: drive, method: 'PATCH', json: { name: 'named' } })
      await server.ask(`/api/sessions/${id}?erase=true`, { token: drive, method: 'DELETE' })
    }
    await vi.waitFor(() => expect(told.at(-1)).toEqual({ type: 'session_removed', id: inside }))
    expect(told.filter(({ id }) => id === outside)).toEqual([])
  })

  test('attaches only to sessions inside of it', async () => {
    const place = await start()
    const { server, one, two, drive } = place
    const token = await tokenOf(place, { folder: one, role: 'view' })
    const first = async (id: string): Promise<unknown> => {
      const socket = server.dial(id, token)
      cleanUps.push(() => socket.terminate())
      await once(socket, 'open')
      socket.send(JSON.stringify({ type: 'attach', data: { client: { id: `client-${id}` } } }))
      const [data] = (await once(socket, 'message')) as [Buffer]
      return (JSON.parse(data.toString()) as { type: string }).type
    }
    expect(await first(await create(place, drive, one))).toBe('attached')
    expect(await first(await create(place, drive, two))).toBe('gone')
  })

  test('creates only tokens inside of it, and manages only those', async () => {
    const place = await start()
    const { server, one, two, drive } = place
    const token = await tokenOf(place, { folder: one, role: 'drive' })
    const make = (json: object): Promise<Answer> => server.ask('/api/tokens', { token, json })
    expect((await make({ role: 'view', folder: two })).body).toMatchObject({ type: 'outside-roots' })
    expect((await make({ role: 'view', folder: place.root })).status).toBe(403)
    const child = (await make({ role: 'view', folder: join(one, 'deep') })).body as { id: string; folder: string }
    expect(child.folder).toBe(join(one, 'deep'))
    const listed = (await server.ask('/api/tokens', { token })).body as { tokens: { id: string }[] }
    expect(listed.tokens.map(({ id }) => id)).toEqual([idOf(token), child.id])
    const revoke = (id: string): Promise<Answer> => server.ask(`/api/tokens/${id}`, { token, method: 'DELETE' })
    expect((await revoke(idOf(drive))).status).toBe(404)
    expect((await revoke(child.id)).status).toBe(204)
  })
})

describe('a paired device', () => {
  test('gets at most the rights of the token that paired it, and ends with it', async () => {
    const place = await start()
    const { server, one } = place
    const expiresAt = Date.now() + 3600_000
    const token = await tokenOf(place, { folder: one, expiresAt, limits: { sessions: 2 } })
    const later = new Date(expiresAt + 1000).toISOString()
    const refused = await server.ask('/api/pairing', { token, json: { role: 'view', expires_at: later } })
    expect(refused.body).toMatchObject({ type: 'wider-than-creator', member: 'expires_at' })
    const begun = (await server.ask('/api/pairing', { token, json: { role: 'view' } })).body as { code: string }
    const paired = (await server.ask('/api/pair', { json: { code: begun.code, as: 'token' } })).body as {
      token: string
    }
    expect(paired).toMatchObject({
      role: 'view',
      folder: one,
      expires_at: new Date(expiresAt).toISOString(),
      limits: { sessions: 2 },
      parent_id: idOf(token),
    })
    const open = (await server.ask('/api/pairing', { token, json: { role: 'view' } })).body as { code: string }
    await server.tokens.revoke(idOf(token), 'default')
    expect((await server.ask('/api/caller', { token: paired.token })).status).toBe(401)
    expect((await server.ask('/api/pair', { json: { code: open.code, as: 'token' } })).status).toBe(401)
  })
})

function idOf(token: string): string {
  return token.split('_')[1] ?? ''
}

/** Reads `/api/events` until it is destroyed. Resolves when it is ready. */
function follow(
  { server }: TestServer,
  token: string,
  tell: (event: { type: string; id: string }) => void,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request(`${server.url}/api/events`, { headers: { authorization: `Bearer ${token}` }, agent: false })
    asked.on('error', reject)
    asked.on('response', (response) => {
      response.on('error', () => undefined)
      response.on('data', (chunk: Buffer) => {
        for (const [, data = ''] of chunk.toString().matchAll(/^data: (.*)$/gm)) {
          const event = JSON.parse(data) as { type: string; session_id?: string; session?: { id: string } }
          if (event.type === 'ready') resolve(response)
          else if (event.type.startsWith('session_'))
            tell({ type: event.type, id: event.session_id ?? event.session?.id ?? '' })
        }
      })
    })
    asked.end()
  })
}
