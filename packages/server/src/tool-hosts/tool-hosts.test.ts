import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RemoteWorkspace, ToolHost } from '@tapetree/agent/tool-host'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LocalNetwork } from '../bus/local-bus.ts'
import { RelayBus, type RelayPeer } from '../bus/relay-bus.ts'
import type { SessionBus } from '../bus/session-bus.ts'
import { connectHost } from './testing/connect-host.ts'
import { runRemotely } from './testing/run-remotely.ts'
import { ToolHosts } from './tool-hosts.ts'

let root: string
let folder: string
const cleanUps: (() => unknown)[] = []

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'tool-hosts-')))
  folder = join(root, 'project')
  mkdirSync(folder)
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  rmSync(root, { recursive: true, force: true })
})

async function openHost(name = 'laptop'): Promise<ToolHost> {
  const host = await ToolHost.open({ dataFolder: join(root, name), name, workspaces: { app: folder }, mode: 'auto' })
  cleanUps.push(() => host.close())
  return host
}

/** Servers of one service. */
function openServers(count: number): ToolHosts[] {
  const network = new LocalNetwork()
  return Array.from({ length: count }, (_, index) => serverOn(network.join(`node${index}`)))
}

function serverOn(bus: SessionBus): ToolHosts {
  const hosts = new ToolHosts({ bus })
  cleanUps.push(async () => {
    hosts.close()
    await bus.close()
  })
  return hosts
}

/** Servers that are connected with each other. */
async function openRelayed(count: number): Promise<ToolHosts[]> {
  const peers: RelayPeer[] = []
  const buses: RelayBus[] = []
  for (let index = 0; index < count; index++) {
    const node = `node${index}`
    const bus = new RelayBus({ node, peers: async () => peers, secret: 'x'.repeat(32) })
    const server = createServer().on('upgrade', (...request) => bus.upgrade(...request))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanUps.push(() => server.close())
    peers.push({ node, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
    buses.push(bus)
  }
  await Promise.all(buses.map((bus) => bus.connect()))
  return buses.map(serverOn)
}

function workspaceOn(host: ToolHost, hosts: ToolHosts): RemoteWorkspace {
  const { id: hostId, name: hostName, platform } = host.hello
  const reference = { name: 'app', hostId, hostName, folder, platform }
  const remote = new RemoteWorkspace(reference, hosts.channel('default', hostId))
  cleanUps.push(() => remote.close())
  return remote
}

const ready = (remote: RemoteWorkspace): Promise<void> => remote.ready(AbortSignal.timeout(20_000))

test('a session uses a host that is connected to its server', async () => {
  const hosts = new ToolHosts()
  const host = await openHost()
  connectHost(host, hosts)
  const remote = workspaceOn(host, hosts)
  await ready(remote)
  expect(hosts.list('default')).toEqual([host.hello])
  expect(await runRemotely(remote, 'echo here; exit 3').output).toMatchObject({
    content: expect.stringMatching(/here[^]*3/),
  })
})

test('a session uses a host that is connected to another server', async () => {
  const [first, second] = openServers(2) as [ToolHosts, ToolHosts]
  const host = await openHost()
  connectHost(host, first)
  const remote = workspaceOn(host, second)
  await ready(remote)
  expect(second.list('default')).toEqual([host.hello])
  const { output, observed } = runRemotely(remote, 'echo here; exit 3')
  expect(await output).toMatchObject({ content: expect.stringMatching(/here[^]*3/) })
  expect(observed.join('')).toBe('here\n')
})

test('a server that starts later hears of the hosts of the others', async () => {
  const network = new LocalNetwork()
  const open = (node: string): ToolHosts => {
    const hosts = new ToolHosts({ bus: network.join(node) })
    cleanUps.push(() => hosts.close())
    return hosts
  }
  const host = await openHost()
  connectHost(host, open('first'))
  await ready(workspaceOn(host, open('second')))
})

test.each([
  ['on a bus', openServers],
  ['that are connected with each other', openRelayed],
])('a command goes on while its host changes the server, and its result arrives: servers %s', async (_, open) => {
  const [first, second, third] = (await open(3)) as [ToolHosts, ToolHosts, ToolHosts]
  const host = await openHost()
  const cut = connectHost(host, first)
  const remote = workspaceOn(host, third)
  await ready(remote)
  const command = 'echo x >> ledger; echo begun; until test -e go; do sleep 0.02; done; exit 4'
  const { output, observed } = runRemotely(remote, command)
  await expect.poll(() => observed.join('')).toBe('begun\n')
  cut()
  await expect.poll(() => remote.problem).toBe('The tool host laptop cannot be reached.')
  connectHost(host, second)
  await ready(remote)
  writeFileSync(join(folder, 'go'), '')
  expect(await output).toMatchObject({ content: expect.stringMatching(/begun[^]*4/), isError: true })
  expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\n')
})

test('a call that was lost on the way to the server of its host is sent again', async () => {
  const network = new LocalNetwork()
  const bus = network.join('first')
  const lost = Promise.withResolvers<void>()
  let isCut = false
  let tellGap = (): void => undefined
  const first = serverOn({
    node: bus.node,
    publish: (topic, message) => bus.publish(topic, message),
    subscribe: (topic, listener) =>
      bus.subscribe(topic, (...message) => (isCut ? lost.resolve() : listener(...message))),
    request: (...request) => bus.request(...request),
    answer: (handler) => bus.answer(handler),
    onGap: (listener) => {
      tellGap = listener
      return () => undefined
    },
    close: () => bus.close(),
  })
  const host = await openHost()
  connectHost(host, first)
  const remote = workspaceOn(host, serverOn(network.join('second')))
  await ready(remote)
  isCut = true
  const { output } = runRemotely(remote, 'echo here; exit 3')
  await lost.promise
  isCut = false
  tellGap()
  expect(await output).toMatchObject({ content: expect.stringMatching(/here[^]*3/) })
})

test('a host belongs to its tenant', async () => {
  const hosts = new ToolHosts()
  const host = await openHost()
  connectHost(host, hosts, 'other')
  await expect.poll(() => hosts.list('other')).toEqual([host.hello])
  expect(hosts.list('default')).toEqual([])
  expect(hosts.channel('default', host.hello.id).hello).toBeUndefined()
})

test('a host that begins with anything but its introduction is refused', () => {
  const closed: string[] = []
  const hosts = new ToolHosts()
  for (const text of ['{"type":"done","id":"12345678","outcome":{"output":"x","records":[],"blobs":[]}}']) {
    hosts.accept('default', { send: () => undefined, close: (reason) => closed.push(reason) }).take(text)
  }
  expect(closed).toEqual([expect.stringContaining('version')])
  expect(hosts.list('default')).toEqual([])
})

const helloOf = (index: number, more: object = {}): string =>
  JSON.stringify({
    ...{ type: 'hello', protocol: 1, key: index.toString(16).padStart(64, '0'), name: `host ${index}` },
    ...{ platform: 'linux', workspaces: [], ...more },
  })

test('a tenant has at most 64 hosts, and one that comes back is not counted twice', () => {
  const hosts = new ToolHosts()
  const closed: string[] = []
  const connect = (tenant: string, index: number): ReturnType<ToolHosts['accept']> => {
    const connected = hosts.accept(tenant, { send: () => undefined, close: (reason) => closed.push(reason) })
    connected.take(helloOf(index))
    return connected
  }
  const [first] = Array.from({ length: 64 }, (_, index) => connect('default', index))
  connect('default', 64)
  expect(closed.splice(0)).toEqual(['This tenant has 64 tool hosts, the most that a server takes.'])
  expect(hosts.list('default')).toHaveLength(64)
  connect('other', 64)
  expect(hosts.list('other')).toHaveLength(1)
  connect('default', 1)
  expect(closed.splice(0)).toEqual(['the host has connected again'])
  first?.end()
  connect('default', 64)
  expect(closed).toEqual([])
  expect(hosts.list('default')).toHaveLength(64)
})

test('connections that do not introduce themselves are limited, too', () => {
  const hosts = new ToolHosts()
  const closed: string[] = []
  const open = (): ReturnType<ToolHosts['accept']> =>
    hosts.accept('default', { send: () => undefined, close: (reason) => closed.push(reason) })
  const [first] = Array.from({ length: 64 }, open)
  open().take(helloOf(1))
  expect(closed.splice(0)).toEqual(['Too many tool hosts of this tenant have not introduced themselves.'])
  expect(hosts.list('default')).toEqual([])
  first?.end()
  open().take(helloOf(1))
  expect(closed).toEqual([])
  expect(hosts.list('default')).toHaveLength(1)
})

test('an introduction of more than 256 KiB is refused', () => {
  const hosts = new ToolHosts()
  const closed: string[] = []
  const workspace = { name: 'app', folder: '/app', mode: 'auto', tools: [] }
  const instructions = [1, 2].map((path) => ({ path: `${path}`, text: 'x'.repeat(150_000) }))
  hosts
    .accept('default', { send: () => undefined, close: (reason) => closed.push(reason) })
    .take(helloOf(1, { workspaces: [{ ...workspace, instructions }] }))
  expect(closed).toEqual(['The introduction of this tool host has more than 262144 bytes.'])
  expect(hosts.list('default')).toEqual([])
})

test('a host cannot take the place of another one', async () => {
  const hosts = new ToolHosts()
  const host = await openHost()
  connectHost(host, hosts)
  await expect.poll(() => hosts.list('default')).toEqual([host.hello])
  const taken: string[] = []
  const impostor = hosts.accept('default', { send: (text) => taken.push(text), close: () => undefined })
  const { id, name, platform, workspaces } = host.hello
  impostor.take(
    JSON.stringify({ type: 'hello', protocol: 1, key: id.slice(5).padEnd(64, '0'), id, name, platform, workspaces }),
  )
  expect(hosts.list('default')).toHaveLength(2)
  hosts.channel('default', id).send({ type: 'cancel', id: '12345678' })
  expect(taken).toEqual([])
})
