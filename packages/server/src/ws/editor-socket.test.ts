import { FakeClock } from '@tapetree/agent/testing'
import { closeCodes, limits } from '@tapetree/client/protocol'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { ServeEditor } from '../editors.ts'
import { TestServer } from '../testing/running-server.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Answers each request with its parameters, except those of the method `never`. */
const echo: ServeEditor = async ({ stream }) => {
  const writer = stream.writable.getWriter()
  for await (const message of stream.readable) {
    const { id, method, params } = message as Record<string, unknown>
    if (method !== 'never') await writer.write({ jsonrpc: '2.0', id, result: params })
  }
}

async function start(editors: ServeEditor = echo, clock?: FakeClock): Promise<TestServer> {
  const server = await TestServer.start(() => ({ editors, ...(clock && { clock }) }))
  cleanUps.push(() => server.close())
  return server
}

async function dial(server: TestServer, token?: string): Promise<WebSocket> {
  const socket = new WebSocket(`${server.server.url.replace('http', 'ws')}/acp`, {
    headers: { authorization: `Bearer ${token ?? (await server.token('drive'))}` },
    maxPayload: 64 * 1024 * 1024,
  })
  cleanUps.push(() => socket.terminate())
  socket.on('error', () => undefined)
  await once(socket, 'open')
  return socket
}

const request = (id: number, method: string, params: unknown = {}): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })

async function answer(socket: WebSocket): Promise<unknown> {
  const [data] = (await once(socket, 'message')) as [Buffer]
  return JSON.parse(data.toString())
}

async function closeCode(socket: WebSocket): Promise<number> {
  const [code] = (await once(socket, 'close')) as [number]
  return code
}

/** Waits until a number no longer changes. */
async function settled(read: () => number): Promise<void> {
  let before = -1
  await expect.poll(() => before === (before = read()), { interval: 200 }).toBe(true)
}

test('each frame is one message, and malformed ones are answered with an error', async () => {
  const socket = await dial(await start())
  socket.send(request(1, 'echo', { text: 'x'.repeat(2 * limits.maxFrameBytes) }))
  expect(await answer(socket)).toMatchObject({ id: 1, result: { text: expect.stringMatching(/^x+$/) } })
  socket.send('{"jsonrpc"')
  expect(await answer(socket)).toMatchObject({ id: null, error: { code: -32_700 } })
  for (const wrong of ['[]', '7', 'null', '"text"', `[${request(2, 'echo')}]`]) {
    socket.send(wrong)
    expect(await answer(socket)).toMatchObject({ id: null, error: { code: -32_600 } })
  }
  socket.send(`{"jsonrpc":"2.0","id":3,"method":"echo","params":${'['.repeat(5000)}${']'.repeat(5000)}}`)
  expect(await answer(socket)).toMatchObject({ id: null, error: { code: -32_600 } })
  socket.send(request(4, 'echo', { text: '['.repeat(5000) }))
  expect(await answer(socket)).toMatchObject({ id: 4 })
})

test('a flood of frames, a binary frame and a frame that is too large end the connection', async () => {
  const server = await start()
  const flood = await dial(server)
  const flooded = closeCode(flood)
  for (let sent = 0; sent < 2000; sent++) flood.send('{"jsonrpc":"2.0","method":"never"}')
  expect(await flooded).toBe(closeCodes.rate)
  const binary = await dial(server)
  binary.send(Buffer.from(request(1, 'echo')))
  expect(await closeCode(binary)).toBe(closeCodes.badFrame)
  const large = await dial(server)
  const rejected = closeCode(large)
  large.send(Buffer.alloc(32 * 1024 * 1024 + 1, 'x'), { binary: false })
  expect(await rejected).toBe(closeCodes.tooLarge)
})

test('a connection holds a limited number of open requests, and answers the others with an error', async () => {
  const socket = await dial(await start())
  for (let id = 0; id < 64; id++) socket.send(request(id, 'never'))
  socket.send(request(64, 'echo'))
  expect(await answer(socket)).toMatchObject({ id: 64, error: { message: expect.stringContaining('64 requests') } })
  socket.send('{"jsonrpc":"2.0","method":"note","params":{}}')
  expect(await answer(socket)).toMatchObject({ result: {} })
})

test('a request with the id of an open one is rejected, and the open one is answered', async () => {
  const socket = await dial(await start())
  socket.send(request(1, 'never'))
  socket.send(request(1, 'echo'))
  expect(await answer(socket)).toMatchObject({ id: null, error: { message: expect.stringContaining('open') } })
  socket.send(request(2, 'echo', { text: 'hi' }))
  expect(await answer(socket)).toMatchObject({ id: 2, result: { text: 'hi' } })
})

test('messages that are not handled stay with the sender', async () => {
  const release = Promise.withResolvers<void>()
  const handled: unknown[] = []
  const server = await start(async ({ stream }) => {
    await release.promise
    for await (const message of stream.readable) handled.push(message)
  })
  const socket = await dial(server)
  const text = 'x'.repeat(1024 * 1024)
  for (let sent = 0; sent < 60; sent++)
    socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'note', params: { text } }))
  await settled(() => socket.bufferedAmount)
  expect(socket.bufferedAmount).toBeGreaterThan(20 * text.length)
  release.resolve()
  await expect.poll(() => handled.length).toBe(60)
})

test('a write waits for an editor that does not read', async () => {
  let written = 0
  const server = await start(async ({ stream }) => {
    const writer = stream.writable.getWriter()
    const text = 'x'.repeat(1024 * 1024)
    for (; written < 200; written++) await writer.write({ jsonrpc: '2.0', method: 'note', params: { text } })
  })
  const socket = await dial(server)
  socket.send(request(1, 'never'))
  socket.pause()
  await settled(() => written)
  expect(written).toBeLessThan(100)
  socket.resume()
  expect(await closeCode(socket)).toBe(1000)
  expect(written).toBe(200)
})

test('an editor that says nothing or is gone is cut off', async () => {
  const clock = new FakeClock()
  let ended = 0
  const server = await start(async (link) => {
    await echo(link)
    ended++
  }, clock)
  const silent = await dial(server)
  const closed = closeCode(silent)
  await expect.poll(() => (clock.advance(limits.attachMs), silent.readyState)).not.toBe(WebSocket.OPEN)
  expect(await closed).toBe(closeCodes.noAttach)
  const gone = await dial(server)
  gone.send(request(1, 'echo'))
  await answer(gone)
  gone.pause()
  await expect.poll(() => (clock.advance(15_000), ended)).toBe(2)
})

test('the connection ends with its token and with the server, and nothing is done for it afterwards', async () => {
  const link = Promise.withResolvers<Parameters<ServeEditor>[0]>()
  const server = await start(async (given) => {
    link.resolve(given)
    for await (const _ of given.stream.readable);
  })
  const { token, record } = await server.tokens.create({ tenant: 'default', role: 'drive' })
  const id = await server.sessions.create({ cwd: '/' })
  const socket = await dial(server, token)
  const { fetch, baseUrl, openSession, stream } = await link.promise
  const handle = await openSession({ sessionId: id, clientName: 'test' })
  expect((await fetch(`${baseUrl}/api/sessions/${id}`)).status).toBe(200)
  const closed = closeCode(socket)
  await server.tokens.revoke(record.id, 'default')
  expect(await closed).toBe(closeCodes.auth)
  await expect(fetch(`${baseUrl}/api/sessions/${id}`)).rejects.toMatchObject({ type: 'not-signed-in' })
  await expect(handle.prompt('hi')).rejects.toMatchObject({ type: 'not-signed-in' })
  await expect(openSession({ sessionId: id, clientName: 'test' })).rejects.toMatchObject({ type: 'not-signed-in' })
  await expect(stream.writable.getWriter().write({})).rejects.toThrow('closed')
  const last = await dial(server)
  const restarted = closeCode(last)
  await server.close()
  expect(await restarted).toBe(closeCodes.restart)
})

test('a token for one folder is confined to it, and its commands count towards its limits', async () => {
  const link = Promise.withResolvers<Parameters<ServeEditor>[0]>()
  const server = await start(async (given) => {
    link.resolve(given)
    for await (const _ of given.stream.readable);
  })
  const outside = await server.sessions.create({ cwd: '/elsewhere' })
  const inside = await server.sessions.create({ cwd: '/here/project' })
  const { token } = await server.tokens.create({
    tenant: 'default',
    role: 'queue',
    folder: '/here',
    limits: { requests_per_minute: 5 },
  })
  await dial(server, token)
  const { openSession, fetch, baseUrl } = await link.promise
  await expect(openSession({ sessionId: outside, clientName: 'test' })).rejects.toMatchObject({ status: 404 })
  expect((await fetch(`${baseUrl}/api/sessions/${outside}`)).status).toBe(404)
  const handle = await openSession({ sessionId: inside, clientName: 'test' })
  await expect(handle.prompt('hi')).rejects.toMatchObject({ type: 'role-too-small' })
  const commands = Array.from({ length: 6 }, () => handle.run('rename', { name: 'x' }))
  const failed = (await Promise.allSettled(commands)).filter(({ status }) => status === 'rejected')
  expect(failed).toMatchObject(failed.map(() => ({ reason: { type: 'too-many-requests' } })))
  expect(failed.length).toBeGreaterThan(0)
})

test('without the option there is no such path', async () => {
  const server = await TestServer.start()
  cleanUps.push(() => server.close())
  expect((await server.ask('/acp', { token: await server.token('drive') })).status).toBe(404)
  const withEditors = await start()
  expect((await withEditors.ask('/acp', { token: await withEditors.token('drive') })).status).toBe(426)
})
