import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { OpenAPIHono } from '@hono/zod-openapi'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Routes } from '../app.ts'
import { addPage } from './page.ts'
import { WebApp } from './web-app.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tapetree-web-app-'))
  await mkdir(join(folder, 'assets'))
  await writeFile(join(folder, 'index.html'), '<!doctype html>the app')
  await writeFile(join(folder, 'icon.svg'), '<svg/>')
  await writeFile(join(folder, 'assets/index-abc.js'), 'go()'.repeat(1000))
  await writeFile(join(folder, 'manifest.json'), '{}')
  await writeFile(join(folder, 'sw.js'), 'work()')
  await writeFile(join(folder, 'app.webmanifest'), '{}')
  await writeFile(join(folder, '.built-from'), '1')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function pageWith(app: WebApp | undefined): OpenAPIHono {
  const routes = new Routes(() => [])
  addPage(routes, app)
  return routes.app as unknown as OpenAPIHono
}

test('the built app takes the place of the plain page, and must be asked for again each time', async () => {
  const page = await pageWith(WebApp.in(folder)).request('/')
  expect(await page.text()).toBe('<!doctype html>the app')
  expect(Object.fromEntries(page.headers)).toMatchObject({
    'cache-control': 'no-cache',
    'content-type': 'text/html; charset=utf-8',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
  })
  expect(page.headers.get('content-security-policy')).not.toMatch(/unsafe|\*|https?:/)
})

test('assets are kept forever and are sent compressed to browsers that can read it', async () => {
  const page = pageWith(WebApp.in(folder))
  const plain = await page.request('/assets/index-abc.js')
  expect(await plain.text()).toBe('go()'.repeat(1000))
  expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(plain.headers.get('content-encoding')).toBeNull()
  const packed = await page.request('/assets/index-abc.js', { headers: { 'accept-encoding': 'br, gzip' } })
  expect(packed.headers.get('content-encoding')).toBe('gzip')
  expect(gunzipSync(await packed.bytes()).toString()).toBe('go()'.repeat(1000))
})

test('the service worker and the manifest are served beside the page, so that they apply to all of it', async () => {
  const page = pageWith(WebApp.in(folder))
  for (const [name, type] of [
    ['sw.js', 'text/javascript; charset=utf-8'],
    ['app.webmanifest', 'application/manifest+json'],
  ]) {
    const { status, headers } = await page.request(`/${name}`)
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([200, type, 'no-cache'])
  }
  const policy = (await page.request('/')).headers.get('content-security-policy')
  expect(policy).toContain("manifest-src 'self'")
  expect(policy).toContain('trusted-types service-worker')
})

test('nothing but the files of the app is served', async () => {
  const page = pageWith(WebApp.in(folder))
  for (const name of [
    '..%2Findex.html',
    '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
    'missing.js',
    '.built-from',
    'index-abc.js%00',
  ])
    expect([name, (await page.request(`/assets/${name}`)).status]).toEqual([name, 404])
})

test('without a build there is the plain page and no asset', async () => {
  expect(WebApp.in(join(folder, 'missing'))).toBeUndefined()
  expect(WebApp.in(join(folder, 'assets'))).toBeUndefined()
  const page = pageWith(undefined)
  expect(await (await page.request('/')).text()).toContain('page.js')
  expect((await page.request('/icon.svg')).status).toBe(404)
  expect((await page.request('/assets/index-abc.js')).status).toBe(404)
})
