import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { encodeFrame, PieceSplitter } from './frames.ts'
import { busPath, RelayBus, type RelayBusOptions, type RelayPeer } from './relay-bus.ts'
import { makeCertificate } from '../self-signed.ts'
import { testSessionBus } from './testing/bus-contract.ts'
import { TcpProxy } from './testing/tcp-proxy.ts'

const secret = 'a secret of the tests, with 32 characters and more'
/** For `127.0.0.1`, as `tapetree serve` makes it. */
const certificate = makeCertificate(['127.0.0.1'], Date.now())
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Nodes that reach each other through connections that can be interrupted. */
class Mesh {
  readonly buses: RelayBus[] = []
  readonly problems: string[] = []
  readonly #nodes: string[] = []
  readonly #servers: Server[] = []
  /** From the node of the first number to the node of the second one. */
  readonly #proxies = new Map<string, TcpProxy>()

  async add(node: string, options: Partial<RelayBusOptions> = {}): Promise<RelayBus> {
    const own = this.#nodes.length
    const server = createServer()
    server.on('upgrade', (request, socket, head) => {
      if (request.url === busPath) this.buses[own]?.upgrade(request, socket, head)
      else socket.destroy()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    for (const other of this.#nodes.keys()) {
      for (const [from, to] of [
        [own, other],
        [other, own],
      ] as const) {
        const proxy = await TcpProxy.start(() => this.port(to))
        this.#proxies.set(`${from} ${to}`, proxy)
      }
    }
    this.#nodes.push(node)
    this.#servers.push(server)
    const report = (problem: string): void => void this.problems.push(problem)
    const bus = new RelayBus({ node, peers: async () => this.peersOf(own), secret, report, ...options })
    this.buses.push(bus)
    await bus.connect()
    return bus
  }

  peersOf(own: number): RelayPeer[] {
    return this.#nodes.flatMap((node, index) => {
      const proxy = this.proxy(own, index)
      return proxy ? [{ node, url: `http://127.0.0.1:${proxy.port}` }] : []
    })
  }

  proxy(from: number, to: number): TcpProxy | undefined {
    return this.#proxies.get(`${from} ${to}`)
  }

  /** All connections from and to a node. */
  proxiesOf(index: number): TcpProxy[] {
    return this.#nodes.flatMap((_, other) => [this.proxy(index, other) ?? [], this.proxy(other, index) ?? []].flat())
  }

  port(index: number): number {
    return ((this.#servers[index] as Server).address() as AddressInfo).port
  }

  /** Resolves when every node receives from every other one. */
  async connected(): Promise<void> {
    await vi.waitFor(() => {
      for (const bus of this.buses) expect(bus.connected).toHaveLength(this.buses.length - 1)
    })
  }

  async close(): Promise<void> {
    await Promise.all(this.buses.map((bus) => bus.close()))
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.close()))
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }
}

describe('relay between nodes', () => {
  describe('the contract', () => {
    testSessionBus({
      test,
      canInterrupt: true,
      open: async (nodes) => {
        const mesh = new Mesh()
        for (const node of nodes) await mesh.add(node)
        await mesh.connected()
        return {
          buses: mesh.buses,
          interrupt: async (index) => {
            for (const proxy of mesh.proxiesOf(index)) proxy.cut()
            return async () => {
              for (const proxy of mesh.proxiesOf(index)) proxy.restore()
            }
          },
          close: () => mesh.close(),
        }
      },
    })
  })

  const openMesh = async (nodes: readonly string[], options?: Partial<RelayBusOptions>): Promise<Mesh> => {
    const mesh = new Mesh()
    onTestFinished(() => mesh.close())
    for (const node of nodes) await mesh.add(node, options)
    await mesh.connected()
    return mesh
  }

  const gapOf = (bus: RelayBus): Promise<void> => new Promise((resolve) => void bus.onGap(resolve))

  test('a frozen peer is noticed within 3 seconds, and is back after a gap', async () => {
    const mesh = await openMesh(['a', 'b'])
    const [a, b] = mesh.buses as [RelayBus, RelayBus]
    b.answer(async () => new Promise<never>(() => undefined))
    const begin = performance.now()
    for (const proxy of mesh.proxiesOf(1)) proxy.freeze()
    await expect(a.request('b', bytes('one'), { timeoutMs: 60_000 })).rejects.toMatchObject({ code: 'no-answer' })
    expect(performance.now() - begin).toBeLessThan(3000 + slackMs)
    await expect(a.request('b', bytes('two'), { timeoutMs: 60_000 })).rejects.toMatchObject({ code: 'unreachable' })
    const gaps = [gapOf(a), gapOf(b)]
    for (const proxy of mesh.proxiesOf(1)) proxy.restore()
    await Promise.all(gaps)
    b.answer(async (message) => message)
    expect(await a.request('b', bytes('three'))).toEqual(Buffer.from('three'))
  })

  test('a node that joins is reached at once, and tells the others of the gap', async () => {
    const mesh = await openMesh(['a'])
    const [a] = mesh.buses as [RelayBus]
    const received: string[] = []
    await a.subscribe('news', (message, from) => received.push(`${from}: ${Buffer.from(message).toString()}`))
    const gap = gapOf(a)
    const b = await mesh.add('b')
    b.answer(async (message) => message)
    expect(await a.request('b', bytes('one'))).toEqual(Buffer.from('one'))
    await gap
    b.publish('news', bytes('two'))
    await vi.waitFor(() => expect(received).toEqual(['b: two']))
  })

  test('a node that leaves the list is not asked any more', async () => {
    let isListed = true
    const mesh = new Mesh()
    onTestFinished(() => mesh.close())
    const a = await mesh.add('a', { peers: async () => (isListed ? mesh.peersOf(0) : []) })
    const b = await mesh.add('b')
    b.answer(async (message) => message)
    await mesh.connected()
    expect(await a.request('b', bytes('one'))).toEqual(Buffer.from('one'))
    isListed = false
    await vi.waitFor(() => expect(a.connected).toEqual([]))
    await expect(a.request('b', bytes('two'))).rejects.toMatchObject({ code: 'unreachable' })
  })

  test('a peer that receives too slowly is cut off, and connects again after a gap', async () => {
    const mesh = await openMesh(['a', 'b'], { maxWaitingBytes: 8 * 1024 * 1024 })
    const [a, b] = mesh.buses as [RelayBus, RelayBus]
    const received: number[] = []
    await b.subscribe('news', (message) => received.push(message.length))
    const gap = gapOf(b)
    mesh.proxy(1, 0)?.freeze()
    for (let count = 0; mesh.problems.length === 0; count += 1) {
      a.publish('news', randomBytes(1024 * 1024))
      if (count % 4 === 0) await new Promise(setImmediate)
    }
    expect(mesh.problems).toEqual(['The node b was cut off, because it receives too slowly.'])
    mesh.proxy(1, 0)?.restore()
    await gap
    a.publish('news', bytes('end'))
    await vi.waitFor(() => expect(received.at(-1)).toBe(3))
  })

  test('only subscribed topics are sent to a peer', async () => {
    const mesh = await openMesh(['a', 'b'])
    const [a, b] = mesh.buses as [RelayBus, RelayBus]
    const end = await b.subscribe('news', () => undefined)
    const proxy = mesh.proxy(1, 0)
    const before = proxy?.passedBytes ?? 0
    for (let count = 0; count < 10; count += 1) a.publish('other', randomBytes(100_000))
    end()
    const last = new Promise<void>((resolve) => void b.subscribe('last', () => resolve()))
    await b.subscribe('more', () => undefined)
    for (let count = 0; count < 10; count += 1) a.publish('news', randomBytes(100_000))
    a.publish('last', bytes('x'))
    await last
    expect((proxy?.passedBytes ?? 0) - before).toBeLessThan(50_000)
  })

  test('a node with another secret is refused, and the secret is neither sent nor reported', async () => {
    const mesh = new Mesh()
    onTestFinished(() => mesh.close())
    const a = await mesh.add('a')
    const other = 'another secret of the tests, of the same length!!!'
    const b = await mesh.add('b', { secret: other })
    b.answer(async (message) => message)
    await expect(a.request('b', bytes('one'))).rejects.toMatchObject({ code: 'unreachable' })
    expect([...a.connected, ...b.connected]).toEqual([])
    await vi.waitFor(() => expect(mesh.problems.length).toBeGreaterThanOrEqual(2))
    expect(mesh.problems).toContain('The node b cannot be joined: It has another secret.')
    expect(mesh.problems).toContain('A connection to the bus was refused: it has another secret.')
    for (const proxy of mesh.proxiesOf(0)) for (const each of [secret, other]) expect(proxy.saw(each)).toBe(false)
    expect(mesh.problems.join()).not.toMatch(/of the tests/)
  })

  test('a connection is refused if it leads to another node', async () => {
    const mesh = await openMesh(['a', 'b'])
    const wrong = new RelayBus({
      node: 'c',
      peers: async () => [{ node: 'b', url: `http://127.0.0.1:${mesh.port(0)}` }],
      secret,
      report: () => undefined,
    })
    onTestFinished(() => wrong.close())
    await wrong.connect()
    expect(wrong.connected).toEqual([])
  })

  test('a stranger is cut off if it does not prove itself, and cannot take much memory or many connections', async () => {
    const mesh = await openMesh(['a', 'b'])
    const url = `ws://127.0.0.1:${mesh.port(0)}${busPath}`
    const sockets = Array.from({ length: 80 }, () => new WebSocket(url))
    for (const socket of sockets) socket.on('error', () => undefined)
    const until = (socket: WebSocket, event: string): Promise<void> =>
      new Promise((resolve) => void socket.once(event, () => resolve()))
    const closed = sockets.map((socket) => until(socket, 'close'))
    const isRefused = await Promise.all(
      sockets.map((socket, index) =>
        Promise.race([until(socket, 'open').then(() => false), closed[index]?.then(() => true)]),
      ),
    )
    expect(isRefused.filter(Boolean).length).toBeGreaterThanOrEqual(16)
    const large = encodeFrame({ from: 'x', to: 'a', nonce: '', proof: '' }, randomBytes(1024 * 1024))
    for (const socket of sockets.filter(({ readyState }) => readyState === WebSocket.OPEN)) {
      for (const piece of new PieceSplitter(randomBytes(8)).split(large, 60_000)) socket.send(piece)
      socket.send(randomBytes(200_000))
    }
    await Promise.all(closed)
    const [a, b] = mesh.buses as [RelayBus, RelayBus]
    a.answer(async (message) => message)
    expect(await b.request('a', bytes('one'))).toEqual(Buffer.from('one'))
  })

  test('a list that fails is reported once, and connections stay', async () => {
    let isFailing = false
    const mesh = new Mesh()
    onTestFinished(() => mesh.close())
    let calls = 0
    const a = await mesh.add('a', {
      peers: async () => {
        calls += 1
        if (isFailing) throw new Error('The database is away.')
        return mesh.peersOf(0)
      },
    })
    const b = await mesh.add('b')
    b.answer(async (message) => message)
    await mesh.connected()
    isFailing = true
    const before = calls
    await vi.waitFor(() => expect(calls).toBeGreaterThan(before + 2))
    expect(await a.request('b', bytes('one'))).toEqual(Buffer.from('one'))
    expect(mesh.problems).toEqual(['The other nodes cannot be listed: The database is away.'])
  })

  test('a short secret is rejected', () => {
    const open = (): RelayBus => new RelayBus({ node: 'a', peers: async () => [], secret: 'short' })
    expect(open).toThrow('The secret of the bus has fewer than 32 characters.')
  })
})

/** A busy machine is slow, not wrong. */
const slackMs = 6000

describe('nodes that reach each other over TLS', () => {
  /** Two nodes whose servers have a certificate that nobody has signed but themselves. */
  async function pair(options: Partial<RelayBusOptions>): Promise<{ buses: [RelayBus, RelayBus]; problems: string[] }> {
    const problems: string[] = []
    const buses: RelayBus[] = []
    const peers: RelayPeer[] = []
    for (const node of ['a', 'b']) {
      const server = createTlsServer(certificate)
      server.on('upgrade', (request, socket, head) => {
        buses.find((bus) => bus.node === node)?.upgrade(request, socket, head)
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      onTestFinished(() => {
        server.closeAllConnections()
        server.close()
      })
      peers.push({ node, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` })
      const others = (): RelayPeer[] => peers.filter((peer) => peer.node !== node)
      const report = (problem: string): void => void problems.push(problem)
      const bus = new RelayBus({ node, peers: async () => others(), secret, report, ...options })
      onTestFinished(() => bus.close())
      buses.push(bus)
    }
    for (const bus of buses) await bus.connect()
    return { buses: buses as [RelayBus, RelayBus], problems }
  }

  test('exchange messages and requests if they trust the certificate', async () => {
    const { buses } = await pair({ ca: certificate.cert })
    const [a, b] = buses
    await vi.waitFor(() => expect([a.connected, b.connected]).toEqual([['b'], ['a']]), { timeout: 20_000 })
    const heard = Promise.withResolvers<string>()
    await b.subscribe('t', (message, from) => heard.resolve(`${from}: ${Buffer.from(message).toString()}`))
    await vi.waitFor(
      () => {
        a.publish('t', bytes('hello'))
        return Promise.race([heard.promise, Promise.reject(new Error('not yet'))])
      },
      { timeout: 20_000 },
    )
    expect(await heard.promise).toBe('a: hello')
    b.answer(async (message) => bytes(`${Buffer.from(message).toString()}!`))
    expect(Buffer.from(await a.request('b', bytes('ping'))).toString()).toBe('ping!')
  })

  test('do not connect if they do not trust it, and say so', async () => {
    const { buses, problems } = await pair({})
    await vi.waitFor(() => expect(problems.join()).toMatch(/self.signed certificate/), { timeout: 20_000 })
    for (const bus of buses) expect(bus.connected).toEqual([])
    const [a] = buses
    await expect(a.request('b', bytes('ping'), { timeoutMs: 500 })).rejects.toMatchObject({ code: 'unreachable' })
  })
})
