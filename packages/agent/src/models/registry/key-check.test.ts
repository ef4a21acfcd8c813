import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createModelRegistry, type ModelRegistry } from './model-registry.ts'

const key = ['test', 'key', 'of', 'nobody'].join('-')

let answer: (request: IncomingMessage, response: ServerResponse) => void
let requests: IncomingMessage[]
let url: string
const server = createServer((request, response) => {
  requests.push(request)
  answer(request, response)
})
beforeEach(async () => {
  requests = []
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})

describe('validateKey', () => {
  test.each([
    ['anthropic', '/models', { 'x-api-key': key, 'anthropic-version': '2023-06-01' }],
    ['openai', '/models', { authorization: `Bearer ${key}` }],
    ['google', '/models', { 'x-goog-api-key': key }],
    ['groq', '/models', { authorization: `Bearer ${key}` }],
    ['openrouter', '/key', { authorization: `Bearer ${key}` }],
  ])('requests a path of %s that requires a key', async (provider, path, headers) => {
    answer = (_, response) => void response.end('{}')
    expect(await registry().validateKey(provider)).toEqual({ type: 'ok' })
    expect(requests.map(({ method, url: asked }) => [method, asked])).toEqual([['GET', path]])
    expect(requests[0]?.headers).toMatchObject(headers)
  })

  test.each([
    [401, '{}', 'refused'],
    [403, '{}', 'refused'],
    [400, '{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}', 'refused'],
    [400, '{"error":"something else"}', 'unreachable'],
    [400, 'x'.repeat(200_000), 'unreachable'],
    [404, '', 'unreachable'],
    [429, '', 'unreachable'],
    [503, '', 'unreachable'],
  ])('status %i with this body is interpreted', async (status, body, type) => {
    answer = (_, response) => void response.writeHead(status).end(body)
    expect(await registry().validateKey('google')).toMatchObject({ type })
  })

  test('the key does not follow a redirect', async () => {
    answer = (_, response) => void response.writeHead(302, { location: `${url}/elsewhere` }).end()
    expect(await registry().validateKey('openai')).toEqual({
      type: 'unreachable',
      message: 'OpenAI answered with status 302, so the key could not be checked.',
    })
    expect(requests).toHaveLength(1)
  })

  test('no answer in time says nothing about the key', async () => {
    answer = () => {}
    expect(await registry().validateKey('openai', { timeoutMs: 20 })).toEqual({
      type: 'unreachable',
      message: 'OpenAI did not answer in time.',
    })
  })

  test('neither does a failed connection, and its message does not contain the key', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    expect(await registry(`http://127.0.0.1:${port}`).validateKey('openai')).toEqual({
      type: 'unreachable',
      message: 'OpenAI cannot be reached (ECONNREFUSED).',
    })
  })

  test('without a key no request is sent', async () => {
    expect(await createModelRegistry({ env: {} }).validateKey('openai')).toEqual({
      type: 'missing',
      message:
        'There is no key for OpenAI. Set the environment variable OPENAI_API_KEY, or store a key for openai in the system keyring or credentials.json.',
    })
    await expect(createModelRegistry({ env: {} }).validateKey('nobody')).rejects.toMatchObject({
      code: 'unknown-provider',
    })
  })

  test('an abort is passed on', async () => {
    const controller = new AbortController()
    answer = () => controller.abort(new Error('enough'))
    await expect(registry().validateKey('openai', { signal: controller.signal })).rejects.toThrow('enough')
  })

  test('a server without keys is requested too', async () => {
    answer = (_, response) => void response.end('{}')
    const mine = createModelRegistry({ env: {}, providers: { mine: { baseUrl: url } } })
    expect(await mine.validateKey('mine')).toEqual({ type: 'ok' })
    expect(requests[0]?.headers.authorization).toBeUndefined()
  })
})

function registry(baseUrl = url): ModelRegistry {
  const variables = ['ANTHROPIC', 'OPENAI', 'GEMINI', 'GROQ', 'OPENROUTER'].map((name) => [`${name}_API_KEY`, key])
  const ids = ['anthropic', 'openai', 'google', 'groq', 'openrouter']
  return createModelRegistry({
    env: Object.fromEntries(variables) as Record<string, string>,
    providers: Object.fromEntries(ids.map((id) => [id, { baseUrl }])),
  })
}
