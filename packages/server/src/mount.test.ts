import { script } from '@tapetree/agent/testing'
import { RemoteSession, RestClient } from '@tapetree/client'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createHandler, type ServerHandler } from './mount.ts'
import { startServer } from './server.ts'
import type { Authenticate } from './auth/gatekeeper.ts'
import { ask } from './testing/running-server.ts'
import { scriptedSessions } from './testing/scripted-sessions.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** The users of the host application, by their session cookie. */
const users = new Map([
  ['sid-ann', { id: 'ann', tenant: 'ann', role: 'drive' as const }],
  ['sid-bob', { id: 'bob', tenant: 'bob', role: 'drive' as const }],
  ['sid-eve', { id: 'eve', tenant: 'ann', role: 'view' as const }],
])

/** Asynchronous, as with a database of sessions. */
const byCookie: Authenticate = async ({ headers }: IncomingMessage) => {
  await Promise.resolve()
  return users.get(/\bsid=([\w-]+)/.exec(headers.cookie ?? '')?.[1] ?? '') ?? null
}

interface Host {
  url: string
  handler: ServerHandler
}

/** An application with its own pages and its own sign-in; the agent is mounted at `/agent`. */
async function hostApplication(authenticate: Authenticate = byCookie): Promise<Host> {
  const tenants = new Map(
    ['ann', 'bob'].map((tenant) => [tenant, scriptedSessions({ says: () => script().text(`Hello, ${tenant}.`) })]),
  )
  const handler = createHandler({ tenants, authenticate, prefix: '/agent' })
  const server = createServer((request, response) => {
    if (!handler.handleRequest(request, response)) response.end('a page of the host')
  })
  server.on('upgrade', (request, socket, head) => {
    if (!handler.handleUpgrade(request, socket, head)) socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUps.push(async () => {
    await handler.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, handler }
}

function clientOf(url: string, sid: string): { rest: RestClient; open: (id: string) => Promise<RemoteSession> } {
  const baseUrl = `${url}/agent`
  const headers = { cookie: `theme=dark; sid=${sid}`, origin: url }
  const withCookie: typeof fetch = (target, init = {}) =>
    fetch(target, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), ...headers } })
  return {
    rest: new RestClient({ baseUrl, fetch: withCookie }),
    open: async (sessionId) => {
      const session = await RemoteSession.open({
        baseUrl,
        sessionId,
        fetch: withCookie,
        connect: (target, protocols) => new WebSocket(target, protocols, { headers }),
      })
      cleanUps.push(() => session.close())
      return session
    },
  }
}

describe('a handler mounted into the server of a host application', () => {
  test('serves each user of the host its own sessions, over REST, WebSocket and event streams', async () => {
    const { url } = await hostApplication()
    const [ann, bob] = [clientOf(url, 'sid-ann'), clientOf(url, 'sid-bob')]
    const { id } = await ann.rest.createSession({ name: 'Of Ann' })
    const session = await ann.open(id)
    expect(await session.ask('Hi')).toMatchObject({ text: 'Hello, ann.', outcome: 'completed' })
    expect((await ann.rest.sessions()).sessions.map(({ name }) => name)).toEqual(['Of Ann'])

    expect((await bob.rest.sessions()).sessions).toEqual([])
    await expect(bob.rest.session(id)).rejects.toMatchObject({ status: 404 })
    await expect(bob.rest.prompt(id, { text: 'Hi' })).rejects.toMatchObject({ status: 404 })
    await expect((await bob.open(id)).ready).rejects.toMatchObject({ type: 'closed' })
    const stream = await ask(`/agent/api/sessions/${id}/events/stream`, { url, headers: { cookie: 'sid=sid-bob' } })
    expect(stream.status).toBe(404)
    const wrong = await ask(`/agent/api/sessions/${id}/events/stream`, { url, headers: { cookie: 'sid=unknown' } })
    expect(wrong.status).toBe(401)
  })

  test('answers with the address of a new session below its prefix', async () => {
    const { url } = await hostApplication()
    const headers = { cookie: 'sid=sid-ann', origin: url }
    const created = await ask('/agent/api/sessions', { url, json: {}, headers })
    const { pathname } = new URL(created.headers.location ?? '', `${url}/agent/api/sessions`)
    const { id } = created.body as { id: string }
    expect(await ask(pathname, { url, headers })).toMatchObject({ status: 200, body: { id } })
    const query = await ask('/agent?from=mail', { url, headers })
    expect([query.status, query.headers.location]).toEqual([308, './agent/?from=mail'])
  })

  test('checks the role that the host returns', async () => {
    const { url } = await hostApplication()
    const { id } = await clientOf(url, 'sid-ann').rest.createSession({})
    const eve = clientOf(url, 'sid-eve')
    expect(await eve.rest.session(id)).toMatchObject({ id })
    await expect(eve.rest.prompt(id, { text: 'Hi' })).rejects.toMatchObject({ type: 'role-too-small', status: 403 })
    const screen = await eve.open(id)
    await expect(screen.prompt('Hi')).rejects.toMatchObject({ type: 'role-too-small' })
  })

  test('rejects an upgrade without a user, and one of a foreign page', async () => {
    const { url } = await hostApplication()
    const { id } = await clientOf(url, 'sid-ann').rest.createSession({})
    const statusOf = async (headers: Record<string, string>): Promise<unknown> => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/agent/api/sessions/${id}/ws`, { headers })
      const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
      response.resume()
      socket.on('error', () => undefined)
      return response.statusCode
    }
    expect(await statusOf({ origin: url })).toBe(401)
    expect(await statusOf({ origin: url, cookie: 'sid=unknown' })).toBe(401)
    expect(await statusOf({ origin: 'https://evil.example', cookie: 'sid=sid-ann' })).toBe(403)
    expect(await statusOf({ cookie: 'sid=sid-ann' })).toBe(403)
  })

  test('requires an origin for changes with a cookie, and limits failures of an address', async () => {
    const { url } = await hostApplication()
    const post = (headers: Record<string, string>): ReturnType<typeof ask> =>
      ask('/agent/api/sessions', { url, json: {}, headers })
    expect(await post({ cookie: 'sid=sid-ann' })).toMatchObject({ status: 403, body: { type: 'origin-missing' } })
    expect(await post({ cookie: 'sid=sid-ann', origin: 'https://evil.example' })).toMatchObject({ status: 403 })
    const statuses: number[] = []
    for (let attempt = 0; attempt < 12; attempt++)
      statuses.push((await post({ cookie: `sid=guess-${attempt}`, origin: url })).status)
    expect([statuses[0], statuses.at(-1)]).toEqual([401, 429])
    expect(await post({ cookie: 'sid=sid-ann', origin: url })).toMatchObject({ status: 201 })
  })

  test('leaves other paths to the host, and ends its connections when it closes', async () => {
    const { url, handler } = await hostApplication()
    for (const path of ['/', '/agents', '/api/sessions'])
      expect(await ask(path, { url })).toMatchObject({ status: 200, text: 'a page of the host' })
    const ann = clientOf(url, 'sid-ann')
    const { id } = await ann.rest.createSession({})
    const session = await ann.open(id)
    await session.ready
    const cut = new Promise<void>((resolve) => {
      session.subscribe(() => void (session.status.type !== 'attached' && resolve()))
    })
    await handler.close()
    await cut
    expect(await ask('/', { url })).toMatchObject({ status: 200 })
  })

  test('drops a connection when the sign-in of its user expires', async () => {
    const { url } = await hostApplication(() => ({
      id: 'ann',
      tenant: 'ann',
      role: 'drive',
      expiresAt: Date.now() + 1000,
    }))
    const { id } = await clientOf(url, 'any').rest.createSession({})
    const socket = new WebSocket(`${url.replace('http', 'ws')}/agent/api/sessions/${id}/ws`, ['tapetree.v1'], {
      headers: { origin: url },
    })
    const [code] = (await once(socket, 'close')) as [number]
    expect(code).toBe(4401)
  })
})

test('a server accepts a function instead of tokens, and then has no routes for tokens', async () => {
  const tenants = new Map([['ann', scriptedSessions()]])
  await using server = await startServer({ tenants, authenticate: byCookie })
  const { url } = server
  expect(await ask('/api/caller', { url })).toMatchObject({ status: 401 })
  const known = await ask('/api/caller', { url, headers: { cookie: 'sid=sid-ann' } })
  expect(known.body).toMatchObject({ tenant: 'ann', role: 'drive' })
  expect(await ask('/api/tokens', { url, headers: { cookie: 'sid=sid-ann' } })).toMatchObject({ status: 404 })
  expect(() => server.pairingLink({ tenant: 'ann', role: 'drive' })).toThrow(/tokens/)
  await expect(startServer({ tenants })).rejects.toThrow(/tokens.*authenticate/)
})
