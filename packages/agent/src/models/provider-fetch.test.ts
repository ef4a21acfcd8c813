import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { Agent, fetch } from 'undici'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

let server: Server
let seen: string[]
/** Answers that have started, or not even that, and wait for the test to end them. */
let waiting: ServerResponse[]
beforeEach(async () => {
  seen = []
  waiting = []
  server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    if (request.url?.startsWith('/slow')) waiting.push(response)
    else response.end('{}')
    if (request.url === '/slow-body') response.flushHeaders()
    server.emit('seen')
  })
  server.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url}`)
    socket.end('HTTP/1.1 502 no such host\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  vi.resetModules()
})
afterEach(async () => {
  vi.unstubAllEnvs()
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

/** Advances the clock of undici. */
const { tick } = createRequire(import.meta.url)('undici/lib/util/timers.js') as { tick: (ms: number) => void }

test('an answer may be silent for any time, before its headers and after them', async () => {
  const { providerFetch } = await import('./provider-fetch.ts')
  const impatient = new Agent()
  const body = await providerFetch(`${url()}/slow-body`)
  const headers = providerFetch(`${url()}/slow-headers`)
  const usual = fetch(`${url()}/slow-headers`, { dispatcher: impatient }).catch((error: Error) => error.cause)
  while (waiting.length < 3) await once(server, 'seen')
  // The first tick starts the timers, the second one fires them.
  tick(1)
  tick(600_000)
  expect(await usual).toMatchObject({ code: 'UND_ERR_HEADERS_TIMEOUT' })
  for (const response of waiting) response.end('done')
  expect([await body.text(), await (await headers).text()]).toEqual(['done', 'done'])
  await impatient.destroy()
})

test('a server on this machine is called directly, even with a proxy', async () => {
  useProxy('http://127.0.0.1:9')
  const { providerFetch } = await import('./provider-fetch.ts')
  await (await providerFetch(`${url()}/v1/models`)).text()
  expect(seen).toEqual(['GET /v1/models'])
})

test('all other servers are called through the proxy of the environment', async () => {
  useProxy(url())
  const { providerFetch } = await import('./provider-fetch.ts')
  await expect(providerFetch('https://provider.invalid/v1/models')).rejects.toThrow('fetch failed')
  expect(seen).toEqual(['CONNECT provider.invalid:443'])
})

function url(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function useProxy(proxy: string): void {
  for (const name of ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY']) vi.stubEnv(name, proxy)
  for (const name of ['no_proxy', 'NO_PROXY']) vi.stubEnv(name, undefined)
}
