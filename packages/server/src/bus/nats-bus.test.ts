import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { makeCertificate } from '../self-signed.ts'
import { NatsBus, parseNatsUrl, subjectToken, type NatsBusOptions } from './nats-bus.ts'
import { BusError } from './session-bus.ts'
import { testSessionBus } from './testing/bus-contract.ts'
import { missingNats, NatsProcess } from './testing/nats-process.ts'
import { TcpProxy } from './testing/tcp-proxy.ts'

if (missingNats !== undefined) console.log(missingNats)

const silent = (): void => undefined
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe.skipIf(missingNats !== undefined)('bus over NATS', () => {
  let server: NatsProcess
  beforeAll(async () => void (server = await NatsProcess.start()))
  afterAll(() => server.stop())

  describe('the contract', () => {
    let services = 0
    testSessionBus({
      test,
      canInterrupt: true,
      open: async (nodes) => {
        const prefix = `service-${(services += 1)}`
        const proxies: TcpProxy[] = []
        const buses: NatsBus[] = []
        for (const node of nodes) {
          const proxy = await TcpProxy.start(() => server.port)
          proxies.push(proxy)
          buses.push(await NatsBus.open({ node, url: `nats://127.0.0.1:${proxy.port}`, prefix, report: silent }))
        }
        return {
          buses,
          interrupt: async (index) => {
            proxies[index]?.cut()
            return async () => proxies[index]?.restore()
          },
          close: async () => {
            await Promise.all(buses.map((bus) => bus.close()))
            await Promise.all(proxies.map((proxy) => proxy.close()))
          },
        }
      },
    })
  })

  /** Opens a bus that ends with the test. */
  const openBus = async (options: Partial<NatsBusOptions> & { node: string }): Promise<NatsBus> => {
    const bus = await NatsBus.open({ url: server.url, prefix: 'own', report: silent, ...options })
    onTestFinished(() => bus.close())
    return bus
  }

  const ownServer = async (options: readonly string[] = []): Promise<NatsProcess> => {
    const own = await NatsProcess.start(options)
    onTestFinished(() => own.stop())
    return own
  }

  const fileWith = (content: string): string => {
    const folder = mkdtempSync(join(tmpdir(), 'tt-nats-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const path = join(folder, 'file')
    writeFileSync(path, content)
    return path
  }

  const gapOf = (bus: NatsBus): Promise<void> => new Promise((resolve) => void bus.onGap(resolve))

  test('after a crash of the server both nodes learn of the gap, and go on', async () => {
    const own = await ownServer()
    const problems: string[] = []
    const a = await openBus({ node: 'a', url: own.url, report: (problem) => problems.push(problem) })
    const b = await openBus({ node: 'b', url: own.url })
    const received: string[] = []
    await b.subscribe('news', (message) => received.push(Buffer.from(message).toString()))
    b.answer(async (message) => message)
    const gaps = [gapOf(a), gapOf(b)]
    await own.stop()
    await expect(a.request('b', bytes('one'), { timeoutMs: 500 })).rejects.toThrow(BusError)
    await own.resume()
    await Promise.all(gaps)
    a.publish('news', bytes('two'))
    await vi.waitFor(() => expect(received).toEqual(['two']))
    expect(await a.request('b', bytes('three'))).toEqual(Buffer.from('three'))
    expect(problems).toEqual([expect.stringContaining(`Lost the NATS server 127.0.0.1:${own.port}`)])
  })

  test('a frozen server is noticed within 4 seconds, even if much waits to be sent to it', async () => {
    const own = await ownServer()
    const lost = Promise.withResolvers<void>()
    const a = await openBus({ node: 'a', url: own.url, report: () => lost.resolve() })
    const b = await openBus({ node: 'b', url: own.url })
    const received: number[] = []
    await b.subscribe('news', (message) => received.push(message.length))
    b.answer(async (message) => message)
    own.signal('SIGSTOP')
    onTestFinished(() => own.signal('SIGCONT'))
    const begin = performance.now()
    // More than the buffers of the system hold.
    for (let count = 0; count < 8; count += 1) a.publish('news', randomBytes(4 * 1024 * 1024))
    await expect(a.request('b', bytes('one'), { timeoutMs: 60_000 })).rejects.toMatchObject({ code: 'no-answer' })
    await lost.promise
    expect(performance.now() - begin).toBeLessThan(4000 + slackMs)
    await expect(a.request('b', bytes('two'), { timeoutMs: 60_000 })).rejects.toMatchObject({ code: 'unreachable' })
    const gaps = [gapOf(a), gapOf(b)]
    own.signal('SIGCONT')
    await Promise.all(gaps)
    a.publish('news', bytes('end'))
    await vi.waitFor(() => expect(received.at(-1)).toBe(3))
  })

  test('a bus can be closed while the server is frozen', async () => {
    const own = await ownServer()
    const lost = Promise.withResolvers<void>()
    const first = await openBus({ node: 'a', url: own.url })
    const second = await openBus({ node: 'b', url: own.url, report: () => lost.resolve() })
    own.signal('SIGSTOP')
    onTestFinished(() => own.signal('SIGCONT'))
    await first.close()
    await lost.promise
    await second.close()
  })

  test('a connection on which too much waits is cut', async () => {
    const own = await ownServer()
    const problems: string[] = []
    const bus = await openBus({ node: 'a', url: own.url, report: (problem) => problems.push(problem) })
    own.signal('SIGSTOP')
    onTestFinished(() => own.signal('SIGCONT'))
    const large = new Uint8Array(16 * 1024 * 1024)
    for (let count = 0; count < 10; count += 1) bus.publish('news', large)
    await vi.waitFor(() => expect(problems).toEqual([expect.stringContaining('bytes wait to be sent')]))
    own.signal('SIGCONT')
    await gapOf(bus)
  })

  test('a message is split for a server that takes only small ones', async () => {
    const own = await ownServer(['-c', fileWith('max_payload: 1024\n')])
    const a = await openBus({ node: 'a', url: own.url })
    const b = await openBus({ node: 'b', url: own.url })
    b.answer(async (message) => message)
    const large = randomBytes(300_000)
    expect(Buffer.from(await a.request('b', large)).equals(large)).toBe(true)
  })

  test('services with different prefixes do not meet', async () => {
    const [a, b, other] = [
      await openBus({ node: 'a', prefix: 'one' }),
      await openBus({ node: 'b', prefix: 'one' }),
      await openBus({ node: 'b', prefix: 'two.x' }),
    ]
    const received: string[] = []
    for (const [name, bus] of Object.entries({ b, other })) {
      await bus.subscribe('news', () => received.push(name))
      bus.answer(async () => bytes(name))
    }
    a.publish('news', bytes('x'))
    expect(Buffer.from(await a.request('b', bytes('who'))).toString()).toBe('b')
    expect(received).toEqual(['b'])
    await expect(openBus({ node: 'a', prefix: 'a.*' })).rejects.toThrow('The prefix a.* is no NATS subject.')
  })

  test('messages of others on our subjects are ignored', async () => {
    const stranger = await connect({ servers: `127.0.0.1:${server.port}` })
    onTestFinished(() => stranger.close())
    const [a, b] = [await openBus({ node: 'a' }), await openBus({ node: 'b' })]
    const received: string[] = []
    await b.subscribe('news', (message, from) => received.push(`${from}: ${Buffer.from(message).toString()}`))
    b.answer(async (message) => message)
    for (const subject of ['own.t.news', 'own.n.b', 'own.n.a']) {
      for (const junk of ['', 'x', randomBytes(100), Buffer.concat([Buffer.alloc(16), Buffer.from([0, 0, 0, 1])])]) {
        stranger.publish(subject, junk)
      }
    }
    await stranger.flush()
    a.publish('news', bytes('one'))
    expect(await a.request('b', bytes('two'))).toEqual(Buffer.from('two'))
    expect(received).toEqual(['a: one'])
  })

  test.each([
    ['a user and a password', ['--user', 'so me', '--pass', 'p@ss:w/rd'], 'so%20me:p%40ss%3Aw%2Frd@'],
    ['a token', ['--auth', 's3cret/token'], 's3cret%2Ftoken@'],
  ])('a URL with %s is accepted, and errors show no password', async (_, options, credentials) => {
    const own = await ownServer(options)
    const bus = await openBus({ node: 'a', url: `nats://${credentials}127.0.0.1:${own.port}` })
    bus.answer(async (message) => message)
    const asking = await openBus({ node: 'b', url: `nats://${credentials}127.0.0.1:${own.port}` })
    expect(await asking.request('a', bytes('one'))).toEqual(Buffer.from('one'))
    const wrong = NatsBus.open({ node: 'c', url: `nats://wrong:pa55word@127.0.0.1:${own.port}`, report: silent })
    const error = await wrong.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(String(error)).toContain(`The NATS server 127.0.0.1:${own.port} did not accept a connection: `)
    expect(String(error)).not.toContain('pa55word')
  })

  test('tls:// refuses a server without TLS', async () => {
    const open = NatsBus.open({ node: 'a', url: server.url.replace('nats:', 'tls:'), report: silent })
    await expect(open).rejects.toThrow('tls')
  })

  test('TLS is used with a certificate that can be checked, and refused with another one', async () => {
    const { cert, key } = makeCertificate(['127.0.0.1', 'localhost'], Date.now())
    const own = await ownServer(['--tls', '--tlscert', fileWith(cert), '--tlskey', fileWith(key)])
    for (const host of ['127.0.0.1', 'localhost']) {
      const url = `tls://${host}:${own.port}`
      const [a, b] = [await openBus({ node: 'a', url, ca: cert }), await openBus({ node: 'b', url, ca: cert })]
      b.answer(async (message) => message)
      expect(await a.request('b', bytes('one'))).toEqual(Buffer.from('one'))
      await Promise.all([a.close(), b.close()])
      for (const scheme of ['nats', 'tls']) {
        await expect(openBus({ node: 'c', url: `${scheme}://${host}:${own.port}` })).rejects.toThrow('certificate')
      }
    }
  })

  test('of several servers the next one is used when one is gone', async () => {
    const servers = [await ownServer(), await ownServer()]
    const bus = await openBus({ node: 'a', url: servers.map(({ url }) => url) })
    const gap = gapOf(bus)
    await servers[0]?.stop()
    await gap
    const other = await openBus({ node: 'b', url: servers[1]?.url ?? '' })
    bus.answer(async (message) => message)
    expect(await other.request('a', bytes('one'))).toEqual(Buffer.from('one'))
  })
})

/** A busy machine is slow, not wrong. */
const slackMs = 6000

test('a URL of another kind is rejected, without showing it', () => {
  for (const url of ['http://user:pa55word@host', 'nats://', 'pa55word', '']) {
    expect(() => parseNatsUrl(url)).toThrow(
      'The URL of a NATS server has the form nats://host:4222 or tls://host:4222.',
    )
  }
  expect(parseNatsUrl('nats://[::1]').name).toBe('[::1]:4222')
})

test('names become parts of subjects that differ', () => {
  expect(subjectToken('run-1')).toBe('run-1')
  expect(subjectToken('a.b*>_ ü')).toBe('a_002eb_002a_003e_005f_0020_00fc')
  expect(subjectToken('')).toBe('_')
  expect(subjectToken('x'.repeat(201))).toMatch(/^__[0-9a-f]{64}$/)
  expect(subjectToken(`${'x'.repeat(300)}\ud800`)).not.toBe(subjectToken(`${'x'.repeat(300)}\ud801`))
})
