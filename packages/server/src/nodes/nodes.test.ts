// Several servers of one store, each with clients of its own.
import { allowAll, onlyModel, type Gate } from '@tapetree/agent'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { RemoteSession } from '@tapetree/client'
import { afterEach, expect, test, vi } from 'vitest'
import { LocalNetwork } from '../bus/local-bus.ts'
import type { SessionBus } from '../bus/session-bus.ts'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { TestServer } from '../testing/running-server.ts'
import { NodeStores } from './testing/node-stores.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Node {
  name: string
  server: TestServer
  bus: SessionBus
  /** A client that is connected to this node. */
  client: (id: string) => Promise<RemoteSession>
}

/** Servers of one store, of which the first has created a session. All have the same script. */
async function nodes(
  names: string[],
  says: () => ScriptBuilder,
  { gate = allowAll }: { gate?: Gate } = {},
): Promise<{ nodes: Node[]; stores: NodeStores; network: LocalNetwork; sessionId: string }> {
  const stores = new NodeStores()
  const network = new LocalNetwork()
  let sessionId = ''
  const all: Node[] = []
  for (const name of names) {
    const model = scriptedModel(says())
    const bus = network.join(name)
    const sessions = agentSessions({
      store: stores.open(name),
      models: onlyModel(model),
      tools: () => [model.tool('act')],
      gate: () => gate,
      hasSubagents: false,
    })
    const server = await TestServer.start(() => ({ sessions, bus }))
    cleanUps.push(() => server.close())
    const token = await server.token('drive')
    const client = async (id: string): Promise<RemoteSession> => {
      const opened = await RemoteSession.open({ baseUrl: server.server.url, token, sessionId, client: { id } })
      cleanUps.push(() => opened.close())
      // The node whose client comes first owns the session.
      await opened.ready
      return opened
    }
    all.push({ name, server, bus, client })
  }
  sessionId = (await all[0]?.server.sessions.create({ cwd: '/' })) ?? ''
  return { nodes: all, stores, network, sessionId }
}

/** The texts of the transcript, and what is still streaming. */
function texts({ transcript }: RemoteSession): string[] {
  const said = [...transcript.path.items].flatMap((item) => {
    if (item.type === 'user')
      return item.content.flatMap((block) => (block.type === 'text' ? [block.text.content] : []))
    return item.type === 'assistant' ? item.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : []
  })
  return [...said, ...[...transcript.inFlight.values()].flatMap(({ parts }) => parts.map(({ text }) => text))]
}

const patiently = { timeout: 20_000 }

test('a client of another node sees the answer from its first word, also if it comes late', async () => {
  const goOn = Promise.withResolvers<void>()
  const { nodes: all } = await nodes(['a', 'b', 'c'], () =>
    script()
      .text('Once ', 'upon ')
      .do(() => goOn.promise)
      .text('a time.'),
  )
  const [a, b, c] = all as [Node, Node, Node]
  const first = await a.client('first')
  const other = await b.client('other')
  const answered = first.ask('Tell me.')
  await vi.waitFor(() => expect(texts(other)).toEqual(['Tell me.', 'Once upon ']), patiently)
  const late = await c.client('late')
  await vi.waitFor(() => expect(texts(late)).toEqual(['Tell me.', 'Once upon ']), patiently)
  expect(other.state('run')).toMatchObject({ isBusy: true })
  expect(other.state('read_only')).toBeNull()
  goOn.resolve()
  await answered
  for (const client of [first, other, late]) {
    await vi.waitFor(() => expect(texts(client)).toEqual(['Tell me.', 'Once upon a time.']), patiently)
    await vi.waitFor(() => expect(client.state('run')).toMatchObject({ isBusy: false }), patiently)
  }
})

test('a client of another node sees the language servers of the owner', async () => {
  const { nodes: all, sessionId } = await nodes(['a', 'b'], () => script().text('Done.'))
  const [a, b] = all as [Node, Node]
  const first = await a.client('first')
  const other = await b.client('other')
  const found = [{ name: 'typescript', status: 'running' as const, errors: 2, warnings: 0 }]
  const { driver } = await a.server.sessions.get(sessionId)
  Object.assign(driver, { languageServers: () => found })
  await first.ask('Go.')
  for (const client of [first, other])
    await vi.waitFor(() => expect(client.state('language_servers')).toEqual(found), patiently)
})

test('commands of a client of another node take effect once, and their lines come before the answer', async () => {
  const { nodes: all, sessionId } = await nodes(['a', 'b'], () => script().text('One.').step().text('Two.'))
  const [a, b] = all as [Node, Node]
  const here = await a.client('here')
  const there = await b.client('there')
  expect(await there.ask('First')).toMatchObject({ outcome: 'completed', text: 'One.' })
  const id = 'command-1'
  const command = { op: 'prompt', args: { text: 'Second' } }
  const lives = await Promise.all([a, b].map(({ server }) => server.sessions.get(sessionId)))
  expect(lives.map(({ isWatched }) => isWatched)).toEqual([false, true])
  const acks = await Promise.all(lives.map((live) => live.perform(id, 'there', command)))
  expect(acks).toEqual([expect.objectContaining({ ok: true }), expect.objectContaining({ ok: true })])
  expect(lives[1]?.lines.lastSeq).toBeGreaterThanOrEqual(acks[1]?.seq ?? Infinity)
  for (const client of [here, there]) {
    await vi.waitFor(() => expect(texts(client)).toEqual(['First', 'One.', 'Second', 'Two.']), patiently)
  }
})

test('a message is queued and a run is stopped from another node', async () => {
  const asked = Promise.withResolvers<void>()
  const gate: Gate = {
    admit: (_call, signal) => {
      asked.resolve()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    },
  }
  const { nodes: all } = await nodes(['a', 'b'], () => script().text('Let me see.').toolCall('call-1', 'act'), { gate })
  const [a, b] = all as [Node, Node]
  const here = await a.client('here')
  const there = await b.client('there')
  await here.prompt('Do it.')
  await asked.promise
  await vi.waitFor(() => expect(there.state('run')).toMatchObject({ isBusy: true }), patiently)
  await there.run('queue.add', { message: 'And then?' })
  await vi.waitFor(() => expect(here.state('queue')).toMatchObject({ total: 1 }), patiently)
  await there.run('cancel', {})
  for (const client of [here, there]) {
    await vi.waitFor(() => expect(client.state('run')).toMatchObject({ isBusy: false, runId: null }), patiently)
  }
})

test('a rejection by the owner reaches the client of another node', async () => {
  const { nodes: all } = await nodes(['a', 'b'], () => script().text('One.'))
  const [a, b] = all as [Node, Node]
  await a.client('here')
  const there = await b.client('there')
  await expect(there.run('queue.remove', { id: 'unknown' })).rejects.toMatchObject({
    problem: { type: 'message-not-found' },
  })
})

test('a client id belongs to one token at all nodes', async () => {
  const { nodes: all } = await nodes(['a', 'b'], () => script().text('One.').step().text('Two.'))
  const [a, b] = all as [Node, Node]
  const here = await a.client('mine')
  await here.ask('First')
  const impostor = await b.client('mine')
  await expect(impostor.ask('Second')).rejects.toMatchObject({ problem: { type: 'client-id-taken' } })
  const other = await b.client('other')
  await expect(other.ask('Third')).resolves.toMatchObject({ text: 'Two.' })
})

test('every client sees the clients of all nodes, until they leave', async () => {
  const { nodes: all } = await nodes(['a', 'b', 'c'], () => script())
  const clients = await Promise.all(all.map(({ client, name }) => client(`client-${name}`)))
  const present = (client: RemoteSession): string[] => (client.state('presence') ?? []).map(({ id }) => id).toSorted()
  for (const client of clients) {
    await vi.waitFor(() => expect(present(client)).toEqual(['client-a', 'client-b', 'client-c']), patiently)
  }
  await clients[2]?.close()
  for (const client of clients.slice(0, 2)) {
    await vi.waitFor(() => expect(present(client)).toEqual(['client-a', 'client-b']), patiently)
  }
})

test('the list of another node learns of new and changed sessions, each once', async () => {
  const { nodes: all, sessionId } = await nodes(['a', 'b'], () => script().text('One.'))
  const [a, b] = all as [Node, Node]
  const told = { a: [] as string[], b: [] as string[] }
  a.server.sessions.onChange((id) => told.a.push(id))
  b.server.sessions.onChange((id) => told.b.push(id))
  const other = await b.server.sessions.create({ cwd: '/' })
  await vi.waitFor(() => expect(told.a).toContain(other), patiently)
  await (await a.client('here')).ask('First')
  await vi.waitFor(
    () => expect(told.b.filter((id) => id === sessionId)).toHaveLength(told.a.filter((id) => id === sessionId).length),
    patiently,
  )
})

test('if its owner dies, a client of another node goes on there', async () => {
  const { nodes: all, stores } = await nodes(['a', 'b'], () => script().text('One.'))
  const [a, b] = all as [Node, Node]
  await (await a.client('here')).ask('First')
  const there = await b.client('there')
  await vi.waitFor(() => expect(texts(there)).toEqual(['First', 'One.']), patiently)
  await a.bus.close()
  const asked = there.ask('Second')
  // It waits for the lease of the owner.
  await vi.waitFor(() => expect(there.pending).toHaveLength(1), patiently)
  stores.kill('a')
  expect(await asked).toMatchObject({ outcome: 'completed', text: 'One.' })
  expect(texts(there)).toEqual(['First', 'One.', 'Second', 'One.'])
})

test('text that the bus has lost is requested again', async () => {
  const goOn = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { nodes: all } = await nodes(['a', 'b'], () =>
    script()
      .text('One ')
      .do(() => goOn[0]?.promise)
      .text('two ')
      .do(() => goOn[1]?.promise)
      .text('three.'),
  )
  const [a, b] = all as [Node, Node]
  const here = await a.client('here')
  const there = await b.client('there')
  await here.prompt('Count.')
  await vi.waitFor(() => expect(texts(there)).toEqual(['Count.', 'One ']), patiently)
  const publish = a.bus.publish.bind(a.bus)
  a.bus.publish = () => undefined
  goOn[0]?.resolve()
  await vi.waitFor(() => expect(texts(here)).toEqual(['Count.', 'One two ']), patiently)
  a.bus.publish = publish
  goOn[1]?.resolve()
  await vi.waitFor(() => expect(texts(there)).toEqual(['Count.', 'One two three.']), patiently)
})

test('an address that gave wrong tokens to one node waits at all of them', async () => {
  const { nodes: all } = await nodes(['a', 'b'], () => script())
  const [a, b] = all as [Node, Node]
  const statusAt = async ({ server }: Node): Promise<number> =>
    (await server.ask('/api/sessions', { token: 'x' })).status
  const before = await Promise.all(Array.from({ length: 10 }, () => statusAt(a)))
  expect(new Set(before)).toEqual(new Set([401]))
  await vi.waitFor(async () => expect(await statusAt(b)).toBe(429), patiently)
})
