import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from '@tapetree/session'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ModelError } from '../model.ts'
import { createModelRegistry } from '../registry/model-registry.ts'

let near: Server
let foreign: Server
let arrived: string[]
beforeEach(async () => {
  arrived = []
  foreign = createServer((request, response) => {
    arrived.push(`${request.method} ${request.url}`)
    response.end('{}')
  })
  near = createServer((request: IncomingMessage, response) => {
    request.resume()
    response.writeHead(307, { location: `${urlOf(foreign)}/v1/elsewhere` }).end()
  })
  for (const server of [near, foreign]) await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterEach(async () => {
  for (const server of [near, foreign]) {
    server.closeAllConnections()
    await once(server.close(), 'close')
  }
})

test.each(['anthropic', 'openai', 'google', 'openai-compatible'] as const)(
  'neither the key nor the messages of a request follow a redirect to another origin: %s',
  async (api) => {
    const { model } = await createModelRegistry({
      env: { MY_KEY: ['test', 'key', 'of', 'nobody'].join('-') },
      providers: { mine: { api, baseUrl: urlOf(near), keyVariable: 'MY_KEY' } },
    }).open('mine/anything')
    const call = model.prepare({
      system: 'Be brief.',
      tools: [],
      messages: [{ role: 'user', content: [text('go')] }],
      thinkingLevel: 'off',
    })
    const parts = call.stream(new AbortController().signal)[Symbol.asyncIterator]()
    const error = await parts.next().catch((thrown: ModelError) => thrown)
    expect(arrived).toEqual([])
    expect(error).toMatchObject({
      kind: 'invalid-request',
      status: 307,
      message: `${hostOf(near)} redirects requests to ${hostOf(foreign)}, and requests to models follow no redirects. If you trust that server, change the base URL.`,
    })
  },
)

function hostOf(server: Server): string {
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

function urlOf(server: Server): string {
  return `http://${hostOf(server)}`
}
