// Tokens and their limits on several servers of one service.
import { allowAll, onlyModel } from '@tapetree/agent'
import { FakeClock, script, scriptedModel } from '@tapetree/agent/testing'
import type { Limits } from '@tapetree/client/protocol'
import { once } from 'node:events'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { DatabaseDocument, type DocumentTable } from '../auth/shared-document.ts'
import { TokenStore } from '../auth/token-store.ts'
import { LocalNetwork } from '../bus/local-bus.ts'
import type { SessionBus } from '../bus/session-bus.ts'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { TestServer } from '../testing/running-server.ts'
import { NodeStores } from './testing/node-stores.ts'

const patiently = { timeout: 20_000 }

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

class Table implements DocumentTable {
  #row: { version: number; content: string } | undefined

  async read(): Promise<{ version: number; content: string } | undefined> {
    return this.#row
  }

  async write(content: string, version: number): Promise<boolean> {
    if ((this.#row?.version ?? 0) !== version) return false
    this.#row = { version: version + 1, content }
    return true
  }
}

interface Node {
  server: TestServer
  bus: SessionBus
  tokens: TokenStore
  /** The document with the tokens is read each second of this clock. */
  clock: FakeClock
}

/** Servers of one database. They learn of changed tokens from each other alone, since no time passes. */
async function nodes(...names: [string, ...string[]]): Promise<[Node, ...Node[]]> {
  const stores = new NodeStores()
  const network = new LocalNetwork()
  const table = new Table()
  const closing = new AbortController()
  cleanUps.push(() => closing.abort())
  const start = async (name: string): Promise<Node> => {
    const bus = network.join(name)
    const clock = new FakeClock()
    const file = await DatabaseDocument.open({ name: 'tokens', table, clock, closing: closing.signal })
    const tokens = await TokenStore.open({ file, first: null })
    const model = scriptedModel([], { otherwise: () => script().text('Said.') })
    const sessions = agentSessions({
      store: stores.open(name),
      models: onlyModel(model),
      gate: () => allowAll,
      hasSubagents: false,
    })
    const server = await TestServer.start(() => ({ sessions, bus, tokens, api: { roots: () => ['/'] } }))
    cleanUps.push(() => server.close())
    return { server, bus, tokens, clock }
  }
  return Promise.all(names.map(start)) as Promise<[Node, ...Node[]]>
}

async function tokenOf({ tokens }: Node, limits?: Limits): Promise<{ token: string; id: string }> {
  const { token, record } = await tokens.create({ tenant: 'default', role: 'drive', ...(limits && { limits }) })
  return { token, id: record.id }
}

async function statusAt({ server }: Node, token: string): Promise<number> {
  return (await server.ask('/api/caller', { token })).status
}

async function attach(
  { server }: Node,
  sessionId: string,
  token: string,
): Promise<{ type: string; socket: WebSocket }> {
  const socket = server.dial(sessionId, token)
  cleanUps.push(() => socket.terminate())
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'attach', data: { client: { id: `c-${sessionId}` } } }))
  const [frame] = (await once(socket, 'message')) as [Buffer]
  return { type: (JSON.parse(frame.toString()) as { type: string }).type, socket }
}

describe('a token that one node', () => {
  test('creates is accepted by the others at once, and one that it revokes is rejected, with its sockets', async () => {
    const [a, b] = (await nodes('a', 'b')) as [Node, Node]
    const { token, id } = await tokenOf(a)
    await vi.waitFor(async () => expect(await statusAt(b, token)).toBe(200), patiently)
    const sessionId = await b.server.sessions.create({ cwd: '/' })
    const { socket } = await attach(b, sessionId, token)
    const closed = once(socket, 'close')
    expect(await a.tokens.revoke(id, 'default')).toBe(true)
    expect((await closed)[0]).toBe(4401)
    expect(await statusAt(b, token)).toBe(401)
  })

  test('revokes is rejected by a node without a bus after a second', async () => {
    const [a, b] = (await nodes('a', 'b')) as [Node, Node]
    const { token, id } = await tokenOf(a)
    await vi.waitFor(async () => expect(await statusAt(b, token)).toBe(200), patiently)
    await b.bus.close()
    await a.tokens.revoke(id, 'default')
    expect(await statusAt(b, token)).toBe(200)
    b.clock.advance(1000)
    await vi.waitFor(async () => expect(await statusAt(b, token)).toBe(401), patiently)
  })
})

describe('a limit of a token', () => {
  test('on requests holds for all nodes together', async () => {
    const [a, b] = (await nodes('a', 'b')) as [Node, Node]
    const { token } = await tokenOf(a, { requests_per_minute: 10 })
    await vi.waitFor(() => expect(b.tokens.verify(token)).toBeDefined(), patiently)
    for (let request = 0; request < 10; request++) expect(await statusAt(a, token)).toBe(200)
    expect(await statusAt(a, token)).toBe(429)
    await vi.waitFor(async () => expect(await statusAt(b, token)).toBe(429), { ...patiently, interval: 10 })
  })

  test('on requests holds for each node if the bus is lost', async () => {
    const [a, b] = (await nodes('a', 'b')) as [Node, Node]
    const { token } = await tokenOf(a, { requests_per_minute: 3 })
    await vi.waitFor(() => expect(b.tokens.verify(token)).toBeDefined(), patiently)
    await b.bus.close()
    for (const node of [a, b]) {
      for (let request = 0; request < 3; request++) expect(await statusAt(node, token)).toBe(200)
      expect(await statusAt(node, token)).toBe(429)
    }
  })

  test('on live sessions holds for all nodes together, and one that two of them show counts once', async () => {
    const [a, b] = (await nodes('a', 'b')) as [Node, Node]
    const { token } = await tokenOf(a, { live_sessions: 2 })
    await vi.waitFor(() => expect(b.tokens.verify(token)).toBeDefined(), patiently)
    const ids = []
    for (let count = 0; count < 3; count++) ids.push(await a.server.sessions.create({ cwd: '/' }))
    const [one, two, three] = ids as [string, string, string]
    const first = await attach(a, one, token)
    expect((await attach(a, two, token)).type).toBe('attached')
    const refusedAt = async (node: Node): Promise<unknown> =>
      (await node.server.ask(`/api/sessions/${three}`, { token, method: 'PATCH', json: { name: 'n' } })).body
    expect(await refusedAt(a)).toMatchObject({ status: 409, type: 'live-session-limit' })
    await vi.waitFor(async () => expect(await refusedAt(b)).toMatchObject({ status: 409 }), patiently)
    expect((await attach(b, two, token)).type).toBe('attached')
    first.socket.close()
    await once(first.socket, 'close')
    await a.server.sessions.release(one)
    await vi.waitFor(async () => expect(await refusedAt(b)).not.toMatchObject({ status: 409 }), patiently)
  })
})
