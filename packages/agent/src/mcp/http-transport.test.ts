import { z } from 'zod'
import { expect, test, vi } from 'vitest'
import { callTool, testContext } from '../testing/tool-context.ts'
import type { Tool } from '../tools/tool.ts'
import { HttpTestServer } from './testing/http-server.ts'
import { startServers, type TestServers } from './testing/test-servers.ts'

test('an HTTP server is listed and called with the headers of its settings, and notified on close', async () => {
  await using server = await HttpTestServer.open()
  {
    await using started = await ready(server, { headers: { 'X-Team': 'blue' } })
    expect(await call(started, 'echo', { text: 'hello' })).toEqual({ content: 'hello' })
    expect(server.sessions.size).toBe(1)
  }
  expect(server.sessions.size).toBe(0)
  expect(new Set(server.requests.map(({ headers }) => headers['x-team']))).toEqual(new Set(['blue']))
  expect(server.requests.at(-1)?.method).toBe('DELETE')
})

test('a stopped call is cancelled at the server, and its stream is closed', async () => {
  await using server = await HttpTestServer.open()
  await using started = await ready(server)
  const stop = new AbortController()
  const calling = callTool(toolOf(started, 'hang'), {}, testContext({ cwd: '/', signal: stop.signal }))
  await vi.waitFor(() => expect(server.notes).toEqual(['hanging']))
  stop.abort()
  await expect(calling).rejects.toThrow('aborted')
  await vi.waitFor(() => expect(server.notes).toEqual(['hanging', 'cancelled']))
  expect(await call(started, 'echo', { text: 'on' })).toEqual({ content: 'on' })
})

test.each([{ isJson: true }, { isJson: false }])(
  'an answer beyond the limit is an error, and affects only its call: %o',
  async (options) => {
    await using server = await HttpTestServer.open(options)
    await using started = await ready(server, {}, { maxMessageBytes: 100_000 })
    expect(await call(started, 'huge', { bytes: 200_000 })).toMatchObject({ isError: true })
    expect(await call(started, 'echo', { text: 'on' })).toEqual({ content: 'on' })
  },
)

test('a server that disappears during a call is an immediate error, not a wait', async () => {
  await using server = await HttpTestServer.open()
  await using started = await ready(server)
  const calling = call(started, 'hang', {})
  await vi.waitFor(() => expect(server.notes).toEqual(['hanging']))
  server.dropConnections()
  expect(await calling).toEqual({
    content: 'test ended before it answered; the call may have taken effect.',
    isError: true,
  })
})

test('a call over HTTP whose connection breaks says that it may have taken effect', async () => {
  let breaks = false
  await using server = await HttpTestServer.open({
    before: (request) => {
      if (breaks) request.socket.destroy()
      return breaks
    },
  })
  await using started = await ready(server)
  breaks = true
  expect(await call(started, 'echo', { text: 'hello' })).toEqual({
    content: expect.stringMatching(/^The connection to test broke: .+; the call may have taken effect\.$/) as string,
    isError: true,
  })
})

test('an unreachable server is reported in a sentence', async () => {
  const server = await HttpTestServer.open()
  const { url } = server
  await server[Symbol.asyncDispose]()
  await using started = startServers({ test: { type: 'http', url } }, { limits: { maxRestarts: 0 } })
  expect((await started.reached('test', 'failed')).reason).toMatch(/^test could not be reached: .*ECONNREFUSED/)
})

test('if the server has dropped the session, a new one is started and the call is made there', async () => {
  await using server = await HttpTestServer.open()
  await using started = await ready(server)
  server.sessions.clear()
  expect(await call(started, 'echo', { text: 'again' })).toEqual({ content: 'again' })
})

test('two clients of one server get only their own answers', async () => {
  await using server = await HttpTestServer.open({
    addMore: (mcp) =>
      void mcp.registerTool('slow', { inputSchema: z.object({ text: z.string() }) }, async ({ text }) => {
        await new Promise((resolve) => setImmediate(resolve))
        return { content: [{ type: 'text', text }] }
      }),
  })
  await using left = await ready(server)
  await using right = await ready(server)
  const asked = Array.from({ length: 40 }, (_, index) => [`left ${index}`, `right ${index}`] as const)
  const answers = await Promise.all(
    asked.map(async ([one, other]) => [
      (await call(left, 'slow', { text: one })).content,
      (await call(right, 'slow', { text: other })).content,
    ]),
  )
  expect(answers).toEqual(asked)
})

test('a redirect to another origin is not followed, and a rejection is reported in a sentence', async () => {
  await using elsewhere = await HttpTestServer.open()
  await using moved = await HttpTestServer.open({
    before: (_, response) => {
      response.writeHead(307, { location: elsewhere.url }).end()
      return true
    },
  })
  await using closed = await HttpTestServer.open({
    before: (_, response) => {
      response.writeHead(401).end()
      return true
    },
  })
  const settings = { moved: { type: 'http', url: moved.url }, closed: { type: 'http', url: closed.url } }
  await using started = startServers(settings, { limits: { maxRestarts: 0 } })
  expect(await started.reached('moved', 'failed')).toMatchObject({
    reason: expect.stringContaining('not followed') as string,
  })
  expect(await started.reached('closed', 'failed')).toEqual({
    type: 'failed',
    reason: 'closed requires authentication: add `oauth` or a header to its settings.',
    isGivenUp: true,
  })
  expect(elsewhere.requests).toEqual([])
})

async function ready(server: HttpTestServer, settings: object = {}, limits: object = {}): Promise<TestServers> {
  const started = startServers({ test: { type: 'http', url: server.url, ...settings } }, { limits })
  await started.reached('test', 'ready')
  return started
}

function toolOf({ servers }: TestServers, name: string): Tool {
  const tool = servers.tools().find((each) => each.name === `mcp__test__${name}`)
  if (!tool) throw new Error(`There is no tool ${name}.`)
  return tool
}

function call(started: TestServers, name: string, input: object) {
  return callTool(toolOf(started, name), input, testContext({ cwd: '/' }))
}
