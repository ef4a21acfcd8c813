import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { boundedFetch, foreignUrlProblem } from './bounded-fetch.ts'

test.each([
  ['https://login.example.com/', 'https://example.com/mcp', true],
  ['http://login.example.com/', 'https://example.com/mcp', false],
  ['http://169.254.169.254/latest/', 'https://example.com/mcp', false],
  ['http://127.0.0.1:2375/', 'https://example.com/mcp', false],
  ['https://localhost/', 'https://example.com/mcp', false],
  ['http://127.0.0.1:9000/', 'http://localhost:8000/mcp', true],
  ['file:///etc/passwd', 'http://localhost:8000/mcp', false],
])('whether %s may be fetched if the server %s names it: %s', async (url, server, isAsked) => {
  const serverUrl = new URL(server)
  expect(foreignUrlProblem(new URL(url), serverUrl) === undefined).toBe(isAsked)
  if (isAsked) return
  const bounded = boundedFetch({ serverUrl, headers: {}, maxMessageBytes: 1 })
  await expect(bounded(url)).rejects.toThrow('No request was sent')
})

test.each(['GET', 'POST'])('a redirect is not followed, with its headers or without them: %s', async (method) => {
  const requests: string[] = []
  await using elsewhere = await listen((request, response) => {
    requests.push(`${request.method} ${request.url} ${String(request.headers['x-api-key'])}`)
    response.end()
  })
  await using server = await listen((_, response) => {
    response.writeHead(307, { location: `${elsewhere.url}admin` }).end()
  })
  const bounded = boundedFetch({
    serverUrl: new URL(server.url),
    headers: { 'x-api-key': 'secret' },
    maxMessageBytes: 100,
  })
  for (const redirect of [undefined, 'follow' as const]) {
    const response = await bounded(server.url, { method, ...(redirect && { redirect }) })
    expect([response.status, response.headers.get('location')]).toEqual([307, `${elsewhere.url}admin`])
  }
  expect(requests).toEqual([])
})

test('a server may be silent for any time, before its headers and after them', async () => {
  const waiting: ServerResponse[] = []
  const arrived = Promise.withResolvers<void>()
  await using server = await listen((request, response) => {
    if (request.url === '/body') response.flushHeaders()
    if (waiting.push(response) === 2) arrived.resolve()
  })
  const bounded = boundedFetch({ serverUrl: new URL(server.url), headers: {}, maxMessageBytes: 100 })
  const body = await bounded(`${server.url}body`)
  const headers = bounded(`${server.url}headers`)
  await arrived.promise
  // The first tick starts the timers, the second one fires them.
  tick(1)
  tick(600_000)
  for (const response of waiting) response.end('done')
  expect([await body.text(), await (await headers).text()]).toEqual(['done', 'done'])
})

/** Advances the clock of undici. */
const { tick } = createRequire(import.meta.url)('undici/lib/util/timers.js') as { tick: (ms: number) => void }

async function listen(answer: RequestListener): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
