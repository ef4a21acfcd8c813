// Several servers of one store, each with clients of its own.
import { AgentSession, allowAll, onlyModel, type Gate } from '@tapetree/agent'
import { FakeClock, script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { RemoteSession } from '@tapetree/client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { LocalNetwork } from '../bus/local-bus.ts'
import { BusError, type MessageListener, type SessionBus } from '../bus/session-bus.ts'
import { AgentDriver } from '../drivers/agent-driver.ts'
import { agentSessions } from '../drivers/agent-sessions.ts'
import type { LiveSession } from '../live/live-session.ts'
import { LiveSessions } from '../live/live-sessions.ts'
import type { RelayTarget } from '../live/owner-link.ts'
import { TestServer } from '../testing/running-server.ts'
import { decode, encode, type ShownState } from './messages.ts'
import { RelayedSession } from './relayed-session.ts'
import { SharedSessions } from './shared-sessions.ts'
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

/** A session that one node owns and another one watches, without clients. Time moves by hand. */
async function watchedSession(
  clock: FakeClock,
): Promise<{ owned: LiveSession; watching: LiveSession; bus: SessionBus }> {
  const stores = new NodeStores()
  const network = new LocalNetwork()
  const node = (name: string): { sessions: LiveSessions; bus: SessionBus } => {
    const store = stores.open(name)
    const bus = network.join(name)
    const sessions = new LiveSessions({
      store,
      clock,
      create: () => Promise.reject(new Error('not here')),
      openDriver: async (sessionId) => {
        const models = onlyModel(scriptedModel(script()))
        const options = { store, sessionId, models, cwd: '/', tools: () => [], gate: () => allowAll }
        return new AgentDriver({ agent: await AgentSession.open({ ...options, hasSubagents: false }) })
      },
    })
    const shared = new SharedSessions({ bus, clock, tenants: new Map([['default', sessions]]) })
    sessions.useRelay(
      (sessionId, owner, target) =>
        new RelayedSession({ bus, clock, tenant: 'default', sessionId, node: owner, target }),
    )
    cleanUps.push(() => sessions.close().finally(() => shared.close()))
    return { sessions, bus }
  }
  const [a, b] = [node('a'), node('b')]
  const { id } = await a.sessions.store.create({ cwd: '/' })
  return { owned: await a.sessions.get(id), watching: await b.sessions.get(id), bus: b.bus }
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

test('a stream of the list ends after an interruption of the bus: changes may have been missed', async () => {
  const listeners = new Set<() => void>()
  const onGap = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const bus = Object.assign(new LocalNetwork().join('a'), { onGap })
  const server = await TestServer.start(() => ({ bus }))
  cleanUps.push(() => server.close())
  const others = listeners.size
  const headers = { authorization: `Bearer ${await server.token('view')}` }
  const stream = await fetch(`${server.server.url}/api/events`, { headers })
  for (const listener of listeners) listener()
  expect(await stream.text()).toContain('event: ready')
  expect(listeners.size).toBe(others)
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

test('a node that lost its link to the owner connects again, though its clients send nothing', async () => {
  const { nodes: all, sessionId } = await nodes(['a', 'b'], () => script().text('One.'))
  const [a, b] = all as [Node, Node]
  await a.client('here')
  const there = await b.client('there')
  await vi.waitFor(() => expect(there.state('presence')).toHaveLength(2), patiently)
  const request = b.bus.request.bind(b.bus)
  b.bus.request = () => Promise.reject(new BusError('unreachable', 'The bus is down.'))
  await vi.waitFor(() => expect(there.state('presence')).toHaveLength(1), patiently)
  b.bus.request = request
  await vi.waitFor(() => expect(there.state('presence')).toHaveLength(2), patiently)
  expect((await b.server.sessions.get(sessionId)).isWatched).toBe(true)
})

test('a node asks for an owner that it cannot reach once each time it looks at the log', async () => {
  const clock = new FakeClock()
  const { watching, bus } = await watchedSession(clock)
  let requests = 0
  bus.request = () => {
    requests++
    return Promise.reject(new BusError('unreachable', 'The bus is down.'))
  }
  for (let look = 1; look <= 5; look++) {
    await vi.waitFor(() => expect(clock.waits).toContain(1000), patiently)
    clock.advance(1000)
  }
  await vi.waitFor(() => expect(clock.waits).toContain(1000), patiently)
  expect(requests).toBeGreaterThan(2)
  expect(requests).toBeLessThanOrEqual(6)
  expect(watching.isWatched).toBe(true)
})

test('a state frame that arrives before the subscription resolves is not overwritten by the answer before it', async () => {
  const shown: unknown[] = []
  const state = [
    { key: 'run', value: 'older', rev: 5 },
    { key: 'queue', value: 'first', rev: 4 },
  ]
  const answers = [
    { instance: 'i', head: 1, state, texts: [] },
    { instance: 'i', head: 1, state: [{ key: 'queue', value: 'second', rev: 6 }, ...state], texts: [] },
  ]
  const asked: unknown[] = []
  const bus = Object.assign(new LocalNetwork().join('b'), {
    request: async (_: string, message: Uint8Array) => {
      asked.push((decode(message) as { known: { rev: number } }).known.rev)
      const [answer] = answers.length > 1 ? answers.splice(0, 1) : answers
      return encode({ type: 'watched', shown: answer as ShownState })
    },
    subscribe: async (_: string, listener: MessageListener) => {
      const frame = { type: 'state', data: { key: 'run', value: 'newer' }, rev: 7 }
      listener(Buffer.from(JSON.stringify(frame)), 'a')
      return () => undefined
    },
  })
  const target: RelayTarget = {
    texts: () => [],
    takeText: () => undefined,
    takeState: (values) => shown.push(values),
    takeHead: () => undefined,
    clients: () => [],
    onLost: () => undefined,
  }
  const relayed = new RelayedSession({ bus, clock: new FakeClock(), tenant: 't', sessionId: 's', node: 'a', target })
  cleanUps.push(() => relayed.close())
  await vi.waitFor(() => expect(Object.assign({}, ...shown)).toEqual({ run: 'newer', queue: 'second' }), patiently)
  // The frame of revision 6 was published before the subscription.
  expect(asked).toEqual([0, 5])
})

describe('a command that takes long', () => {
  const command = { op: 'rename', args: { name: 'done' } }
  const unreachable = { ok: false, error: { type: 'node-unreachable' } }

  test('is waited for as long as its owner says that it is at work, and takes effect once', async () => {
    const clock = new FakeClock()
    const { owned, watching } = await watchedSession(clock)
    const finished = Promise.withResolvers<void>()
    const perform = vi.fn<() => Promise<void>>(() => finished.promise)
    Object.assign(owned.driver, { perform })
    const answered = watching.perform('command-1', 'there', command)
    for (let seconds = 0; seconds < 60; seconds += 4) {
      await vi.waitFor(() => expect(clock.waits).toContain(4000), patiently)
      clock.advance(4000)
    }
    finished.resolve()
    expect(await answered).toMatchObject({ ok: true })
    expect(perform).toHaveBeenCalledOnce()
  })

  test('fails at a node of the previous build after 15 seconds, and takes effect once', async () => {
    const clock = new FakeClock()
    const { owned, watching, bus } = await watchedSession(clock)
    const perform = vi.fn<() => Promise<void>>(() => new Promise(() => undefined))
    Object.assign(owned.driver, { perform })
    const request = bus.request.bind(bus)
    bus.request = async (...args) => {
      const reply = await request(...args)
      return (decode(reply) as { type: string }).type === 'working' ? encode({ type: 'elsewhere' }) : reply
    }
    const answered = watching.perform('command-1', 'there', command)
    for (const waitMs of [4000, 200, 4000, 200, 4000, 200, 4000]) {
      await vi.waitFor(() => expect(clock.waits).toContain(waitMs), patiently)
      clock.advance(waitMs)
    }
    expect(await answered).toMatchObject(unreachable)
    expect(perform).toHaveBeenCalledOnce()
  })

  test('fails after 15 seconds if its owner is of the previous build, and says nothing meanwhile', async () => {
    const clock = new FakeClock()
    const { watching, bus } = await watchedSession(clock)
    bus.request = () => Promise.reject(new BusError('no-answer', 'It is at work.'))
    const answered = watching.perform('command-1', 'there', command)
    for (let waits = 0; waits <= 15_000 / 200; waits++) {
      await vi.waitFor(() => expect(clock.waits).toContain(200), { ...patiently, interval: 1 })
      clock.advance(200)
    }
    expect(await answered).toMatchObject(unreachable)
  })
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
