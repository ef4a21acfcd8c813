import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { ask, TestServer, type Answer } from './testing/running-server.ts'

const running: TestServer[] = []
afterEach(async () => {
  for (const server of running.splice(0)) await server.close()
})

async function start(options?: Parameters<typeof TestServer.start>[0]): Promise<TestServer> {
  const server = await TestServer.start(options)
  running.push(server)
  return server
}

const publicUrl = 'https://tape.example:8443/agents'
const origin = 'https://tape.example:8443'

/** What proxies pass of the address that the client used. */
const proxies: [string, Record<string, string>][] = [
  ['the Host of the client', { host: 'tape.example:8443' }],
  ['the Host without its port', { host: 'tape.example' }],
  ['X-Forwarded-Host and -Proto', { 'x-forwarded-host': 'tape.example:8443', 'x-forwarded-proto': 'https' }],
  ['X-Forwarded-Host', { 'x-forwarded-host': 'tape.example:8443' }],
  ['all of them', { host: 'tape.example:8443', 'x-forwarded-host': 'tape.example', 'x-forwarded-proto': 'https' }],
]

describe('a server with a public URL', () => {
  test.each(proxies)('pairs browsers of its origin behind a proxy that passes %s', async (_, passed) => {
    const server = await start(() => ({ publicUrl, trustedProxies: ['127.0.0.1'] }))
    const link = server.server.pairingLink({ tenant: 'default', role: 'drive' })
    expect(link).toMatch(/^https:\/\/tape\.example:8443\/agents\/#pair=/)
    const code = new URLSearchParams(new URL(link).hash.slice(1)).get('pair')
    for (const prefix of ['/agents', '']) {
      const page = await server.ask(`${prefix}/`, { headers: passed })
      expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    }
    const paired = await server.ask('/agents/api/pair', { json: { code }, headers: { ...passed, origin } })
    expect(paired.status).toBe(201)
    const set = String(paired.headers['set-cookie'])
    expect(set).toMatch(/^__Secure-tapetree-8443=.*; Path=\/agents\/;.*; Secure$/)
    const headers = { ...passed, cookie: set.split(';', 1).join() }
    const created: Answer = await server.ask('/api/sessions', { json: {}, headers: { ...headers, origin } })
    const { id } = created.body as { id: string }
    for (const prefix of ['/agents', '']) {
      expect(await server.ask(`${prefix}/api/caller`, { headers })).toMatchObject({ status: 200 })
      const url = `${server.server.url.replace('http', 'ws')}${prefix}/api/sessions/${id}/ws`
      const socket = new WebSocket(url, ['tapetree.v1'], { headers: { ...headers, origin } })
      await once(socket, 'open')
      socket.close()
      await once(socket, 'close')
    }
    const foreign = { ...headers, origin: 'https://evil.example' }
    expect(await server.ask('/agents/api/sessions', { json: {}, headers: foreign })).toMatchObject({ status: 403 })
  })

  test('still answers on its own address, with a cookie of its own', async () => {
    const server = await start(() => ({ publicUrl }))
    const { url } = server.server
    const token = await server.token('drive')
    expect(await server.ask('/api/caller', { token })).toMatchObject({ status: 200 })
    const signedIn = await server.ask('/api/sign-in', { json: { token }, headers: { origin: url } })
    expect(String(signedIn.headers['set-cookie'])).toMatch(/^tapetree-\d+=.*; Path=\/;(?!.*Secure)/)
  })

  test('rejects other names and other ports of its name', async () => {
    const server = await start(() => ({ publicUrl }))
    for (const host of ['evil.example', 'tape.example:1', 'agents.tape.example', 'tape.example.'])
      expect(await server.ask('/agents/', { headers: { host } })).toMatchObject({ status: 421 })
  })

  test('leads from its path without a slash to the page below it', async () => {
    const server = await start(() => ({ publicUrl }))
    const { status, headers } = await server.ask('/agents', { headers: { host: 'tape.example' } })
    expect([status, headers.location]).toEqual([308, './agents/'])
    expect(await server.ask('/agentsx')).toMatchObject({ status: 404 })
  })

  test('keeps the query when it leads to the page below its path', async () => {
    const server = await start(() => ({ publicUrl }))
    const { status, headers } = await server.ask('/agents?from=mail', { headers: { host: 'tape.example' } })
    expect([status, headers.location]).toEqual([308, './agents/?from=mail'])
  })

  test.each([
    ['keeps', '/agents'],
    ['removes', ''],
  ])('sends only links that stay below its path, if the proxy %s that path', async (_, prefix) => {
    const server = await start(() => ({ publicUrl, trustedProxies: ['127.0.0.1'] }))
    const token = await server.token('drive')
    /** As a browser sees it: every address is that of the proxy. */
    const browse = async (url: URL, json?: unknown): Promise<Answer> => {
      expect(url.href).toMatch(/^https:\/\/tape\.example:8443\/agents\//)
      const path = prefix + url.pathname.slice('/agents'.length) + url.search
      return server.ask(path, { token, headers: { host: 'tape.example:8443' }, ...(json !== undefined && { json }) })
    }
    const create = new URL(`${publicUrl}/api/sessions`)
    const created = await browse(create, {})
    const session = new URL(created.headers.location ?? '', create)
    const { id } = created.body as { id: string }
    expect(await browse(session)).toMatchObject({ status: 200, body: { id } })
    const fork = new URL(`${session.href}/fork`)
    const forked = await browse(fork, {})
    const copy = new URL(forked.headers.location ?? '', fork)
    expect(await browse(copy)).toMatchObject({ status: 200, body: { id: (forked.body as { id: string }).id } })

    const document = new URL(`${publicUrl}/api/openapi.json`)
    const { servers = [] } = (await browse(document)).body as { servers?: { url: string }[] }
    expect(servers.map(({ url }) => new URL(url, document).href.replace(/\/$/, ''))).toEqual([publicUrl])
    const plainGets = server.server.declared.filter(({ method, path }) => method === 'get' && !path.includes('{'))
    let links = 0
    for (const { path } of plainGets.filter((each) => !/events|ws$/.test(each.path))) {
      const page = new URL(publicUrl + path)
      const answer = await browse(page)
      if (!String(answer.headers['content-type']).startsWith('text/html')) continue
      for (const [, link = ''] of answer.text.matchAll(/(?:href|src|action)="([^"#]+)"/g)) {
        links += 1
        expect([link, (await browse(new URL(link, page))).status]).toEqual([link, 200])
      }
    }
    expect(links).toBeGreaterThan(4)
  })

  test('tells the operator if a proxy hides the name that the browser used', async () => {
    const server = await start(() => ({ publicUrl, trustedProxies: ['127.0.0.1'] }))
    const hidden = await server.ask('/api/pair', { json: { code: 'x' }, headers: { origin } })
    expect(hidden).toMatchObject({
      status: 403,
      body: { type: 'origin-not-allowed', detail: expect.stringContaining('X-Forwarded-Host') as string },
    })
  })
})

describe('an allowed origin', () => {
  const page = 'https://app.example'
  const preflight = (from: string, method = 'POST'): { method: string; headers: Record<string, string> } => ({
    method: 'OPTIONS',
    headers: {
      origin: from,
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization',
    },
  })

  test('gets its preflights answered and may read responses; no other may', async () => {
    const server = await start(() => ({ allowedOrigins: [page] }))
    const token = await server.token('drive')
    const allowed = await server.ask('/api/sessions', preflight(page))
    expect(allowed).toMatchObject({
      status: 204,
      headers: {
        'access-control-allow-origin': page,
        'access-control-allow-credentials': 'true',
        'access-control-allow-methods': expect.stringContaining('POST') as string,
        'access-control-allow-headers': expect.stringContaining('authorization') as string,
        vary: 'origin',
      },
    })
    const read = await server.ask('/api/caller', { token, headers: { origin: page } })
    expect(read).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': page, vary: 'origin' } })
    const foreign = ['https://evil.example', 'null', 'https://app.example.evil.example', 'http://app.example', '*']
    for (const other of foreign) {
      for (const answer of [
        await server.ask('/api/sessions', preflight(other)),
        await server.ask('/api/caller', { token, headers: { origin: other } }),
      ]) {
        expect(answer.status).toBeGreaterThanOrEqual(400)
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    }
    const elsewhere = { ...preflight(page).headers, host: 'evil.example' }
    expect(await server.ask('/api/sessions', { method: 'OPTIONS', headers: elsewhere })).toMatchObject({ status: 421 })
  })
})

test('a server on all addresses can be reached by each address of the machine, and prints one of them', async () => {
  const server = await start((folder) => ({ host: '0.0.0.0', tls: { selfSigned: { folder } } }))
  const { url, alsoAt, address } = server.server
  expect(url).not.toMatch(/localhost|127\.0\.0\.1|0\.0\.0\.0/)
  const infos = Object.values(networkInterfaces()).flatMap((each = []) => each)
  const own = infos.filter(({ family, internal }) => family === 'IPv4' && !internal).map((each) => each.address)
  const urls = own.map((each) => `https://${each}:${address.port}`)
  expect([url, ...alsoAt]).toEqual(expect.arrayContaining(urls))
  for (const at of [...urls, `https://localhost:${address.port}`])
    expect(await ask('/', { url: at })).toMatchObject({ status: 200 })
  const elsewhere = { host: `203.0.113.9:${address.port}` }
  expect(await ask('/', { url: `https://localhost:${address.port}`, headers: elsewhere })).toMatchObject({
    status: 421,
  })
})
