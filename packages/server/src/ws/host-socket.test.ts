import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { once } from 'node:events'
import { ToolHost, RemoteWorkspace } from '@tapetree/agent/tool-host'
import { FakeClock } from '@tapetree/agent/testing'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { Role } from '../auth/operation-roles.ts'
import { TestServer } from '../testing/running-server.ts'
import { runRemotely } from '../tool-hosts/testing/run-remotely.ts'
import { ToolHosts } from '../tool-hosts/tool-hosts.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function start(clock?: FakeClock): Promise<{ server: TestServer; toolHosts: ToolHosts }> {
  const toolHosts = new ToolHosts(clock && { clock })
  const server = await TestServer.start(() => ({ toolHosts, ...(clock && { clock }) }))
  cleanUps.push(() => server.close())
  return { server, toolHosts }
}

function dial(server: TestServer, token: string): WebSocket {
  const url = `${server.server.url.replace('http', 'ws')}/api/tool-hosts/ws`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } })
  socket.on('error', () => undefined)
  cleanUps.push(() => socket.terminate())
  return socket
}

async function connectHost(
  server: TestServer,
  token: string,
): Promise<{ host: ToolHost; socket: WebSocket; folder: string }> {
  const folder = join(server.folder, 'project')
  mkdirSync(folder, { recursive: true })
  const dataFolder = join(server.folder, 'host')
  const host = await ToolHost.open({ dataFolder, name: 'laptop', workspaces: { app: folder }, mode: 'auto' })
  cleanUps.push(() => host.close())
  const socket = dial(server, token)
  await once(socket, 'open')
  const link = { send: (text: string) => socket.send(text) }
  socket.on('message', (data) => host.take((data as Buffer).toString(), link))
  socket.on('close', () => host.leave(link))
  host.join(link)
  return { host, socket, folder }
}

test('a host connects with a token of its role, and a session runs a command on it', async () => {
  const { server, toolHosts } = await start()
  const { host, folder } = await connectHost(server, await server.token('host'))
  const { id: hostId, name: hostName, platform } = host.hello
  const channel = toolHosts.channel('default', hostId)
  const remote = new RemoteWorkspace({ name: 'app', hostId, hostName, folder, platform }, channel)
  await remote.ready(AbortSignal.timeout(20_000))
  const { output } = runRemotely(remote, 'pwd; exit 3')
  expect(await output).toMatchObject({ content: expect.stringMatching(/project[^]*3/), isError: true })
})

test.each<Role>(['view', 'queue', 'approve', 'metrics'])('a token of the role %s connects no host', async (role) => {
  const { server } = await start()
  const socket = dial(server, await server.token(role))
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
  expect(response.statusCode).toBe(403)
})

test('a token of a host opens no session', async () => {
  const { server } = await start()
  const token = await server.token('host')
  expect(await server.ask('/api/sessions', { token })).toMatchObject({ status: 403 })
})

test('revoking the token of a host ends its connection', async () => {
  const { server, toolHosts } = await start()
  const { token, record } = await server.tokens.create({ tenant: 'default', role: 'host' })
  const { socket } = await connectHost(server, token)
  await expect.poll(() => toolHosts.list('default').length).toBe(1)
  const closed = once(socket, 'close')
  await server.tokens.revoke(record.id, 'default')
  await closed
  await expect.poll(() => toolHosts.list('default')).toEqual([])
})

test('a host that does not answer is gone', async () => {
  const clock = new FakeClock()
  const { server, toolHosts } = await start(clock)
  const { socket } = await connectHost(server, await server.token('host'))
  await expect.poll(() => toolHosts.list('default').length).toBe(1)
  socket.pause()
  for (let passed = 0; passed < 5; passed++) clock.advance(5000)
  await expect.poll(() => toolHosts.list('default')).toEqual([])
})
