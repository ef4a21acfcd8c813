import { FakeClock, script } from '@tapetree/agent/testing'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { TokenStore } from './auth/token-store.ts'
import { bindProblem } from './listen.ts'
import type { ServerOptions } from './server-options.ts'
import { startServer } from './server.ts'
import { ask, TestServer } from './testing/running-server.ts'
import { scriptedSessions } from './testing/scripted-sessions.ts'

const running: TestServer[] = []
afterEach(async () => {
  for (const server of running.splice(0)) await server.close()
})

async function start(options?: Parameters<typeof TestServer.start>[0]): Promise<TestServer> {
  const server = await TestServer.start(options)
  running.push(server)
  return server
}

describe('a server', () => {
  test('admits a token, reports the caller, and rejects requests without one', async () => {
    const server = await start()
    const token = await server.token('queue')
    expect(await server.ask('/api/caller', { token })).toMatchObject({
      status: 200,
      body: { tenant: 'default', role: 'queue' },
    })
    const refused = await server.ask('/api/caller')
    expect(refused).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Bearer', 'content-type': 'application/problem+json' },
      body: { type: 'not-signed-in', status: 401 },
    })
    expect(await server.ask('/api/tokens', { token })).toMatchObject({ status: 403, body: { type: 'role-too-small' } })
    expect(await server.ask('/api/nothing', { token })).toMatchObject({ status: 404 })
  })

  test('answers only to its own names, before it checks anything else', async () => {
    const server = await start(() => ({ allowedHosts: ['tape.example'] }))
    const token = await server.token('drive')
    for (const host of ['evil.example', '0.0.0.0', 'localhost.']) {
      for (const path of ['/api/caller', '/api/sign-out', '/nowhere'])
        expect(await server.ask(path, { token, headers: { host } })).toMatchObject({ status: 421 })
    }
    expect(await server.ask('/api/caller', { token, headers: { host: 'tape.example' } })).toMatchObject({ status: 200 })
    const { port } = server.server.address
    const raw = async (text: string): Promise<string> => {
      const socket = connect(port, '127.0.0.1')
      socket.write(text.replace('\r\n', '\r\nConnection: close\r\n'))
      const chunks: Buffer[] = await socket.toArray()
      return Buffer.concat(chunks).toString().split('\r\n', 1).join('')
    }
    expect(await raw('GET /api/caller HTTP/1.1\r\n\r\n')).toBe('HTTP/1.1 421 Misdirected Request')
    expect(await raw('GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n')).toContain(' 421 ')
    expect(await raw('GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n')).toMatch(/ 4(00|21) /)
    // The response does not wait for the body.
    expect(await raw('POST /api/tokens HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n')).toContain(' 421 ')
  })

  test('sends no header that lets other pages read its responses', async () => {
    const server = await start()
    const token = await server.token('drive')
    const origin = 'http://evil.example'
    const foreign = await server.ask('/api/caller', { token, headers: { origin } })
    const preflight = await server.ask('/api/tokens', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    const own = await server.ask('/api/caller', { token, headers: { origin: server.server.url } })
    expect([foreign.status, preflight.status, own.status]).toEqual([403, 403, 200])
    for (const { headers } of [foreign, preflight, own]) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'private, no-cache',
      })
    }
  })

  test('answers a method that a path does not have with 405 and the methods that it has', async () => {
    const server = await start()
    const { declared } = server.server
    for (const path of new Set(declared.map((route) => route.path))) {
      const target = path.replaceAll(/\{\w+\}/g, 'some-id')
      const methods = declared.filter((route) => route.path === path).map(({ method }) => method.toUpperCase())
      const all = new Set([...methods, 'OPTIONS', ...(methods.includes('GET') ? ['HEAD'] : [])])
      const allow = [...all].sort().join(', ')
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY'].filter((each) => !all.has(each))) {
        const answer = await server.ask(target, { method })
        expect([path, method, answer.status, answer.headers['allow']]).toEqual([path, method, 405, allow])
        expect(answer.body).toMatchObject({ type: 'method-not-allowed', status: 405 })
      }
      const options = await server.ask(target, { method: 'OPTIONS' })
      expect([path, options.status, options.headers['allow'], options.text]).toEqual([path, 204, allow, ''])
    }
    expect(await server.ask('/api/nothing', { method: 'PUT' })).toMatchObject({ status: 404 })
    expect(await server.ask('/api/nothing', { method: 'OPTIONS' })).toMatchObject({ status: 404 })
    const head = await server.ask('/api/health', { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(await server.ask('/api/caller', { method: 'HEAD' })).toMatchObject({ status: 401 })
    const socket = await server.ask('/api/sessions/some-id/ws')
    expect(socket).toMatchObject({ status: 426, body: { type: 'upgrade-required' }, headers: { upgrade: 'websocket' } })
  })

  test('accepts JSON bodies that declare their type and length', async () => {
    const server = await start()
    const token = await server.token('drive')
    const json = { role: 'view' }
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/jsonx',
      '',
    ]) {
      const { status } = await server.ask('/api/tokens', { token, json, headers: { 'content-type': type } })
      expect([type, status]).toEqual([type, 415])
    }
    const { url } = server.server
    const streamed = await fetch(new URL('/api/tokens', url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: new Blob([JSON.stringify(json)]).stream(),
      duplex: 'half',
    })
    expect(streamed.status).toBe(411)
    const huge = { token: 'x'.repeat(70_000) }
    expect(await server.ask('/api/sign-in', { json: huge })).toMatchObject({ status: 413 })
    expect(server.tokens.list('default')).toHaveLength(2)
  })
})

describe('tokens', () => {
  test('are created, listed and revoked by the role drive, within its own tenant', async () => {
    const server = await start((folder) => ({
      tenants: new Map([
        ['default', scriptedSessions()],
        [`other-${folder.length}`, scriptedSessions()],
      ]),
    }))
    const token = await server.token('drive')
    const made = await server.ask('/api/tokens', { token, json: { role: 'view', name: 'phone' } })
    expect(made).toMatchObject({ status: 201, body: { role: 'view', name: 'phone' } })
    const { id, token: phone } = made.body as { id: string; token: string }
    expect(await server.ask('/api/caller', { token: phone })).toMatchObject({ status: 200, body: { role: 'view' } })
    const listed = await server.ask('/api/tokens', { token })
    expect(listed.text).not.toContain(phone.slice(-43))
    expect((listed.body as { tokens: { id: string }[] }).tokens.map((each) => each.id)).toContain(id)
    const stranger = await server.token('drive', `other-${server.folder.length}`)
    expect(await server.ask(`/api/tokens/${id}`, { token: stranger, method: 'DELETE' })).toMatchObject({ status: 404 })
    expect(await server.ask('/api/tokens', { token: stranger })).toMatchObject({ body: { tokens: [{}] } })
    expect(await server.ask(`/api/tokens/${id}`, { token, method: 'DELETE' })).toMatchObject({ status: 204 })
    expect(await server.ask('/api/caller', { token: phone })).toMatchObject({ status: 401 })
    const past = { role: 'view', expires_at: '2020-01-01T00:00:00Z' }
    expect(await server.ask('/api/tokens', { token, json: past })).toMatchObject({ status: 422 })
  })

  test('of a tenant that is not hosted are rejected', async () => {
    const server = await start()
    expect(await server.ask('/api/caller', { token: await server.token('drive', 'elsewhere') })).toMatchObject({
      status: 403,
      body: { type: 'tenant-unknown' },
    })
  })

  test('end streams when they are revoked or expire', async () => {
    const clock = new FakeClock()
    const started = Promise.withResolvers<void>()
    let signal: AbortSignal | undefined
    const server = await start(() => ({
      clock,
      addRoutes: (routes) => {
        routes.add(
          'view',
          { method: 'get', path: '/api/endless', operationId: 'endless', responses: {} },
          (context) => {
            signal = context.get('revoked')
            started.resolve()
            return new Response(new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('x')) })) as never
          },
        )
      },
    }))
    const token = await server.token('view', 'default', clock.now() + 1000)
    const endless = server.ask('/api/endless', { token })
    const failed = expect(endless).rejects.toThrow(/aborted|hang up/)
    await started.promise
    clock.advance(1000)
    await failed
    expect(signal?.aborted).toBe(true)
  })
})

describe('a browser', () => {
  test('exchanges a token for a cookie that works with its own origin only', async () => {
    const server = await start()
    const { url } = server.server
    const token = await server.token('drive')
    const signedIn = await server.ask('/api/sign-in', { json: { token }, headers: { origin: url } })
    expect(signedIn).toMatchObject({ status: 200, body: { role: 'drive' } })
    const [cookie = ''] = (signedIn.headers['set-cookie'] ?? []).map((each) => each.split(';', 1).join(''))
    expect(signedIn.headers['set-cookie']?.[0]).toContain('HttpOnly; SameSite=Strict')
    const json = { role: 'view' }
    expect(await server.ask('/api/caller', { headers: { cookie } })).toMatchObject({ status: 200 })
    expect(await server.ask('/api/tokens', { json, headers: { cookie } })).toMatchObject({ status: 403 })
    expect(await server.ask('/api/tokens', { json, headers: { cookie, origin: 'null' } })).toMatchObject({
      status: 403,
    })
    const sameSite = { cookie, 'sec-fetch-site': 'same-site' }
    expect(await server.ask('/api/caller', { headers: sameSite })).toMatchObject({ status: 403 })
    expect(await server.ask('/api/tokens', { json, headers: { cookie, origin: url } })).toMatchObject({ status: 201 })
    const evil = { authorization: 'Bearer nonsense', cookie, origin: url }
    expect(await server.ask('/api/caller', { headers: evil })).toMatchObject({ status: 401 })
    const out = await server.ask('/api/sign-out', { method: 'POST', headers: { cookie, origin: url } })
    expect(out.headers['set-cookie']?.[0]).toContain('Max-Age=0')
    expect(await server.ask('/api/sign-in', { json: { token: 'x' }, headers: { origin: url } })).toMatchObject({
      status: 401,
    })
  })

  test('is paired by a link, once', async () => {
    const server = await start()
    const link = new URL(server.server.pairingLink({ tenant: 'default', role: 'approve' }))
    const code = new URLSearchParams(link.hash.slice(1)).get('pair') ?? ''
    const foreign = { origin: 'http://evil.example' }
    expect(await server.ask('/api/pair', { json: { code }, headers: foreign })).toMatchObject({ status: 403 })
    const paired = await server.ask('/api/pair', { json: { code, name: 'tablet' }, headers: { origin: link.origin } })
    expect(paired).toMatchObject({ status: 201, body: { role: 'approve', name: 'tablet' } })
    expect(paired.body).not.toHaveProperty('token')
    expect(paired.headers['set-cookie']?.[0]).toContain('HttpOnly')
    expect(await server.ask('/api/pair', { json: { code } })).toMatchObject({ status: 401 })
    const token = await server.token('drive')
    const begun = await server.ask('/api/pairing', { token, json: { role: 'view' } })
    const again = { code: (begun.body as { code: string }).code, as: 'token' }
    const program = await server.ask('/api/pair', { json: again })
    expect(server.tokens.verify((program.body as { token: string }).token)).toMatchObject({ role: 'view' })
  })
})

describe('failures', () => {
  test('of others from the same address never block a valid token', async () => {
    const clock = new FakeClock()
    const server = await start(() => ({ clock, failures: { max: 3 } }))
    const token = await server.token('view')
    const bad = (): Promise<number> => server.ask('/api/caller', { token: 'wrong' }).then(({ status }) => status)
    expect([await bad(), await bad(), await bad(), await bad()]).toEqual([401, 401, 401, 429])
    expect(await server.ask('/api/caller', { token: 'wrong' })).toMatchObject({ headers: { 'retry-after': '60' } })
    expect(await server.ask('/api/pair', { json: { code: 'guess' } })).toMatchObject({ status: 429 })
    expect(await server.ask('/api/caller')).toMatchObject({ status: 401 })
    expect(await server.ask('/api/caller', { token })).toMatchObject({ status: 200 })
    clock.advance(60_000)
    expect(await bad()).toBe(401)
  })

  test('are counted by the address behind a listed proxy, and by the proxy if it is not listed', async () => {
    const behind = await start(() => ({ failures: { max: 1 }, trustedProxies: ['127.0.0.1'] }))
    const direct = await start(() => ({ failures: { max: 1 } }))
    const bad = async (server: TestServer, from: string): Promise<number> =>
      (await server.ask('/api/caller', { token: 'wrong', headers: { 'x-forwarded-for': from } })).status
    expect([await bad(behind, '1.1.1.1'), await bad(behind, '1.1.1.1'), await bad(behind, '2.2.2.2')]).toEqual([
      401, 429, 401,
    ])
    expect([await bad(direct, '1.1.1.1'), await bad(direct, '2.2.2.2')]).toEqual([401, 429])
  })
})

describe('behind a proxy that does TLS', () => {
  test('the host and the scheme of the client count, from a listed proxy only', async () => {
    const options = { allowedHosts: ['tape.example'] }
    const listed = await start(() => ({ ...options, trustedProxies: ['127.0.0.0/8'] }))
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'tape.example',
      origin: 'https://tape.example',
    }
    const signIn = async (server: TestServer): Promise<{ status: number; cookie: string | undefined }> => {
      const json = { token: await server.token('view') }
      const { status, headers } = await server.ask('/api/sign-in', { json, headers: forwarded })
      return { status, cookie: headers['set-cookie']?.[0] }
    }
    expect(await signIn(listed)).toMatchObject({ status: 200, cookie: expect.stringContaining('; Secure') as string })
    expect(await signIn(await start(() => options))).toEqual({ status: 403, cookie: undefined })
    const evil = { ...forwarded, 'x-forwarded-host': 'evil.example', origin: 'https://evil.example' }
    expect(await listed.ask('/api/caller', { headers: evil })).toMatchObject({ status: 421 })
  })
})

describe('the address', () => {
  test('is loopback, or has TLS, or is explicitly allowed', async () => {
    const bind = (host: string, more = {}): string | undefined =>
      bindProblem({ host, hasTls: false, allowInsecure: false, ...more })
    for (const host of ['127.0.0.1', '127.3.2.1', '::1', 'localhost']) expect(bind(host)).toBeUndefined()
    for (const host of ['0.0.0.0', '::', '', '192.168.1.2', 'tape.example', '127.0.0.1.evil.example']) {
      expect(bind(host)).toContain('without TLS')
      expect(bind(host, { hasTls: true })).toBeUndefined()
      expect(bind(host, { allowInsecure: true })).toBeUndefined()
    }
    await expect(start(() => ({ host: '0.0.0.0' }))).rejects.toThrow('0.0.0.0 is reachable from other machines')
  })

  test('as a wildcard does not make the wildcard an allowed host', async () => {
    const server = await start(() => ({ host: '0.0.0.0', allowInsecure: true }))
    const token = await server.token('view')
    const { port } = server.server.address
    expect(server.server.url).toBe(`http://localhost:${port}`)
    const headers = { host: `0.0.0.0:${port}` }
    expect(await server.ask('/api/caller', { token, headers })).toMatchObject({ status: 421 })
    expect(await server.ask('/api/caller', { token })).toMatchObject({ status: 200 })
  })

  test('may use TLS with a self-signed certificate, whose fingerprint is in the pairing link', async () => {
    const server = await start((folder) => ({ tls: { selfSigned: { folder } } }))
    const { url, fingerprint } = server.server
    expect(url).toMatch(/^https:/)
    const link = new URL(server.server.pairingLink({ tenant: 'default', role: 'view' }))
    const fragment = new URLSearchParams(link.hash.slice(1))
    expect(fragment.get('fingerprint')).toBe(fingerprint)
    const json = { code: fragment.get('pair') }
    const paired = await server.ask('/api/pair', { json, headers: { origin: link.origin } })
    expect(paired).toMatchObject({ status: 201 })
    expect(paired.headers['set-cookie']?.[0]).toMatch(/^__Host-tapetree-\d+=.*; Secure$/)
    const cookie = paired.headers['set-cookie']?.[0]?.split(';', 1).join('') ?? ''
    expect(await server.ask('/api/caller', { headers: { cookie } })).toMatchObject({ status: 200 })
  })

  test('may be a Unix socket too, which only its owner can open, with the role drive', async () => {
    const server = await start((folder) => ({ unixSocket: join(folder, 'door') }))
    const socketPath = join(server.folder, 'door')
    expect((await stat(socketPath)).mode & 0o777).toBe(0o600)
    const url = 'http://localhost'
    expect(await ask('/api/caller', { url, socketPath })).toMatchObject({ body: { tenant: 'default', role: 'drive' } })
    expect(await ask('/api/caller', { url, socketPath, token: 'wrong' })).toMatchObject({ status: 401 })
    const origin = { origin: 'http://evil.example' }
    expect(await ask('/api/caller', { url, socketPath, headers: origin })).toMatchObject({ status: 403 })
    await server.close()
    await expect(stat(socketPath)).rejects.toThrow('ENOENT')
  })

  test('may be a Unix socket alone, without a port and without tokens', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-socket-'))
    const unixSocket = join(folder, 'a door')
    const sessions = scriptedSessions()
    const server = await startServer({ tenants: new Map([['default', sessions]]), port: null, unixSocket })
    try {
      expect(server.url).toBe(`unix:${folder}/a%20door`)
      expect(server).not.toHaveProperty('address')
      expect((await stat(unixSocket)).mode & 0o777).toBe(0o600)
      const caller = { url: 'http://localhost', socketPath: unixSocket }
      expect(await ask('/api/caller', caller)).toMatchObject({ body: { tenant: 'default', role: 'drive' } })
      expect(await ask('/api/caller', { ...caller, token: 'wrong' })).toMatchObject({ status: 401 })
      expect(await ask('/api/tokens', { ...caller, json: { role: 'drive' } })).toMatchObject({ status: 404 })
      const foreign = { host: 'evil.example' }
      expect(await ask('/api/caller', { ...caller, headers: foreign })).toMatchObject({ status: 421 })
      const id = await sessions.create({ cwd: '/' })
      const createConnection = (): Socket => connect(unixSocket)
      const socket = new WebSocket(`ws://localhost/api/sessions/${id}/ws`, ['tapetree.v1'], { createConnection })
      await once(socket, 'open')
      socket.send(JSON.stringify({ type: 'attach', data: { client: { id: 'me', name: 'me', kind: 'test' } } }))
      const [frame] = (await once(socket, 'message')) as [Buffer]
      expect(JSON.parse(String(frame))).toMatchObject({ type: 'attached', data: { session_id: id } })
      const closed = once(socket, 'close')
      expect(await server.close()).toBe('in time')
      expect((await closed)[0]).toBe(1012)
      await expect(stat(unixSocket)).rejects.toThrow('ENOENT')
    } finally {
      await server.close()
      await rm(folder, { recursive: true })
    }
  })

  test('never replaces a file that is not a socket', async () => {
    const first = await start()
    const unixSocket = join(first.folder, 'notes')
    await writeFile(unixSocket, 'mine')
    await expect(startServer({ tenants: new Map(), port: null, unixSocket })).rejects.toThrow('EADDRINUSE')
    expect(await readFile(unixSocket, 'utf8')).toBe('mine')
  })

  test('may reuse the socket of a dead server, but not of a running one', async () => {
    const first = await start((folder) => ({ unixSocket: join(folder, 'door') }))
    const unixSocket = join(first.folder, 'door')
    await expect(start(() => ({ unixSocket }))).rejects.toThrow('EADDRINUSE')
    expect(await ask('/api/caller', { url: 'http://localhost', socketPath: unixSocket })).toMatchObject({ status: 200 })
  })
})

describe('an unauthenticated client', () => {
  test('a silent client is disconnected after a while', async () => {
    const clock = new FakeClock()
    const server = await start(() => ({ clock }))
    const socket = connect(server.server.address.port, '127.0.0.1')
    await once(socket, 'connect')
    while (!clock.waits.includes(10_000)) await clock.waited().then(() => new Promise(setImmediate))
    clock.advance(10_000)
    await once(socket, 'close')
  })

  test('in great numbers does not block a client with a token', async () => {
    const server = await start(() => ({ unauthenticated: { max: 4 } }))
    const token = await server.token('view')
    const idle = Array.from({ length: 4 }, () => connect(server.server.address.port, '127.0.0.1'))
    await Promise.all(idle.map((socket) => once(socket, 'connect')))
    const closed = once(idle[0] as Socket, 'close')
    const known = connect(server.server.address.port, '127.0.0.1')
    const heard = once(known, 'data')
    known.write(`GET /api/caller HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`)
    expect(String((await heard)[0])).toContain('200 OK')
    await closed
    const more = Array.from({ length: 8 }, () => connect(server.server.address.port, '127.0.0.1'))
    await Promise.all(more.slice(0, 4).map((socket) => once(socket, 'close')))
    expect(known.destroyed).toBe(false)
    for (const socket of [...idle, ...more, known]) socket.destroy()
  })
})

test('hundreds of clients that come back at the same moment are let in, also if their requests come some time later', async () => {
  const clock = new FakeClock()
  const server = await start(() => ({ clock }))
  const token = await server.token('view')
  const sockets = Array.from({ length: 500 }, () => connect(server.server.address.port, '127.0.0.1'))
  await vi.waitFor(() => expect(clock.waits.filter((ms) => ms === 10_000).length).toBe(500))
  const answers = sockets.map(async (socket) => {
    socket.write(`GET /api/caller HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`)
    return String((await once(socket, 'data'))[0])
  })
  for (const answer of await Promise.all(answers)) expect(answer).toContain('200 OK')
  for (const socket of sockets) socket.destroy()
})

describe('going down', () => {
  test('leaves runs open with their text on disk, and does not delay clients for long', async () => {
    const sessions = scriptedSessions({ says: () => script().text('a long ').wait(3_600_000).text('answer') })
    const server = await start(() => ({ sessions }))
    const id = await sessions.create({ cwd: '/' })
    const live = await sessions.get(id)
    const said = new Promise<void>((resolve) => {
      live.driver.subscribe(({ type }) => {
        if (type === 'delta') resolve()
      })
    })
    await live.perform('c', 'me', { op: 'prompt', args: { text: 'go' } })
    await said
    const idle = connect(server.server.address.port, '127.0.0.1')
    await once(idle, 'connect')
    const before = performance.now()
    const [outcome] = await Promise.all([server.server.close(), once(idle, 'close')])
    expect(performance.now() - before).toBeLessThan(5000)
    expect(outcome).toBe('in time')
    const session = await sessions.store.open(id, { readOnly: true })
    const lines: string[] = []
    for await (const line of session.lines({ after: 0 })) lines.push('text' in line ? line.text : '')
    expect(lines.some((line) => line.includes('a long '))).toBe(true)
    expect(lines.filter((line) => line.includes('"run_end"'))).toEqual([])
    expect(session.openRun).not.toBeNull()
  })

  test('answers requests that are under way, and waits for no connection that a client keeps alive', async () => {
    const slow = Promise.withResolvers<Response>()
    const asked = Promise.withResolvers<void>()
    const addRoutes: ServerOptions['addRoutes'] = (routes) =>
      routes.add('view', { method: 'get', path: '/api/slow', operationId: 'slow', responses: {} }, () => {
        asked.resolve()
        return slow.promise as never
      })
    const server = await start(() => ({ addRoutes }))
    const socket = connect(server.server.address.port, '127.0.0.1')
    const answer = socket.toArray()
    socket.write(
      `GET /api/slow HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${await server.token('view')}\r\n\r\n`,
    )
    await asked.promise
    const closed = server.server.close()
    await expect(server.ask('/api/health')).rejects.toThrow('ECONNREFUSED')
    slow.resolve(new Response('at last'))
    expect(await closed).toBe('in time')
    expect(Buffer.concat(await answer).toString()).toMatch(/^HTTP\/1\.1 200 [\s\S]*at last/)
  })

  test('destroys connections that do not close', async () => {
    const stuck = Promise.withResolvers<Response>()
    const asked = Promise.withResolvers<void>()
    const addRoutes: ServerOptions['addRoutes'] = (routes) =>
      routes.add('view', { method: 'get', path: '/api/stuck', operationId: 'stuck', responses: {} }, () => {
        asked.resolve()
        return stuck.promise as never
      })
    const server = await start(() => ({ addRoutes, graceMs: 50 }))
    const answer = server
      .ask('/api/stuck', { token: await server.token('view') })
      .catch((error: Error) => error.message)
    await asked.promise
    expect(await server.server.close()).toBe('cut')
    expect(await answer).toBe('socket hang up')
    stuck.resolve(new Response(''))
  })
})

test('an undeclared route keeps the server from starting', async () => {
  const sneak: ServerOptions['addRoutes'] = ({ app }) =>
    void app.post('/api/sneaky/:id', (context) => context.text('in'))
  await expect(start(() => ({ addRoutes: sneak }))).rejects.toThrow('No access is declared for POST /api/sneaky/{id}')
})

test('a port in use is reported at once, and nothing stays open', async () => {
  const first = await start()
  const tokens = await TokenStore.open({ file: join(first.folder, 'tokens.json') })
  const { port } = first.server.address
  await expect(startServer({ tenants: new Map(), tokens, port })).rejects.toThrow('EADDRINUSE')
})
