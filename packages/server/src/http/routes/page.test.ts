import { Script } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestServer, type Answer } from '../../testing/running-server.ts'
import { pageScript } from './page-script.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start(() => ({ webApp: false }))
})
afterAll(() => server.close())

function codeFor(role: 'view' | 'approve' | 'drive'): string {
  const link = new URL(server.server.pairingLink({ tenant: 'default', role }))
  return new URLSearchParams(link.hash.slice(1)).get('pair') ?? ''
}

/** As the page sends it. */
function post(path: string, json: unknown, cookie?: string): Promise<Answer> {
  const { url } = server.server
  return server.ask(path, { json, headers: { origin: url, ...(cookie !== undefined && { cookie }) } })
}

async function pair(role: 'view' | 'drive'): Promise<string> {
  const { status, headers } = await post('/api/pair', { code: codeFor(role), name: 'browser on Linux' })
  expect(status).toBe(201)
  return headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
}

describe('the page at /', () => {
  test('is what a pairing link opens, loads only its own files, and cannot be framed', async () => {
    const page = await server.ask('/')
    expect(page).toMatchObject({
      status: 200,
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
      },
    })
    const policy = String(page.headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|\*|https?:|data:/)
    expect(page.text).not.toMatch(/<script>|<style|style="|\son\w+="/)
    const urls = Array.from(page.text.matchAll(/(?:href|src)="([^"]*)"/g), ([, url = '']) => url)
    // Relative, so that it works below the path of a proxy.
    expect(urls.filter((url) => /^(\/|\w+:)/.test(url))).toEqual([])
    for (const url of new Set(urls)) {
      const { status, headers } = await server.ask(`/${url}`)
      expect([url, status]).toEqual([url, url === 'api/docs' ? 401 : 200])
      if (status === 200) expect(headers['content-security-policy']).toBe(policy)
    }
  })

  test('has a script that requests only relative URLs and cannot turn server text into markup', () => {
    expect(() => new Script(pageScript)).not.toThrow()
    expect(pageScript).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(/)
    const requested = Array.from(
      pageScript.matchAll(/(?:ask|fetch|EventSource)\(\s*(['"][^'"]*|\w+)/g),
      ([, to = '']) => to,
    )
    expect(requested.length).toBeGreaterThan(5)
    expect(requested.filter((to) => !to.startsWith("'api/") && to !== 'path')).toEqual([])
  })

  test('gives way to a page of the host application', async () => {
    const own = await TestServer.start(() => ({
      addRoutes: (routes) =>
        routes.add(
          'anyone',
          { method: 'get', path: '/', operationId: 'ownPage', responses: {} },
          (context) => context.text('mine') as never,
        ),
    }))
    try {
      expect(await own.ask('/')).toMatchObject({ status: 200, text: 'mine' })
      expect(await own.ask('/page.js')).toMatchObject({ status: 404 })
    } finally {
      await own.close()
    }
  })
})

describe('pairing in a browser', () => {
  test('shows what a code grants before it is used, and leads to the list and the API explorer by a cookie', async () => {
    const code = codeFor('approve')
    const preview = await post('/api/pair/preview', { code })
    expect(preview).toMatchObject({ status: 200, body: { role: 'approve' } })
    const paired = await post('/api/pair', { code })
    const cookie = paired.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
    expect(paired.text).not.toContain(cookie.split('=')[1])
    for (const path of ['/api/caller', '/api/sessions', '/api/docs', '/api/openapi.json'])
      expect([path, (await server.ask(path, { headers: { cookie } })).status]).toEqual([path, 200])
    for (const path of ['/api/pair/preview', '/api/pair'])
      expect(await post(path, { code })).toMatchObject({
        status: 401,
        body: { detail: expect.stringContaining('already used') as string },
      })
  })

  test('takes a narrower role than the code grants, and refuses a wider one without using the code', async () => {
    const code = codeFor('approve')
    expect(await post('/api/pair', { code, role: 'drive' })).toMatchObject({
      status: 403,
      body: { type: 'role-too-wide', grants: 'approve' },
    })
    expect(await post('/api/pair', { code, role: 'view' })).toMatchObject({ status: 201, body: { role: 'view' } })
  })

  test('is refused to pages of other origins', async () => {
    const code = codeFor('drive')
    for (const path of ['/api/pair/preview', '/api/pair', '/api/sign-out']) {
      const foreign = await server.ask(path, { json: { code }, headers: { origin: 'https://evil.example' } })
      expect(foreign).toMatchObject({ status: 403, body: { type: 'origin-not-allowed' } })
    }
    expect(await post('/api/pair', { code })).toMatchObject({ status: 201 })
  })

  test('ends with signing out, which revokes the token only if asked', async () => {
    const kept = await pair('view')
    const out = await server.ask('/api/sign-out', {
      method: 'POST',
      headers: { cookie: kept, origin: server.server.url },
    })
    expect(out.status).toBe(204)
    expect(String(out.headers['set-cookie'])).toContain('Max-Age=0')
    expect(await server.ask('/api/caller', { headers: { cookie: kept } })).toMatchObject({ status: 200 })
    expect(await post('/api/sign-out', { revoke: true }, kept)).toMatchObject({ status: 204 })
    expect(await server.ask('/api/caller', { headers: { cookie: kept } })).toMatchObject({ status: 401 })
  })
})
