import { once } from 'node:events'
import { createServer as createHttpServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http'
import { connect, createServer, type AddressInfo, type Server as NetServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { noRules, type Rule, type RuleLayers } from '../permissions/rules.ts'
import { isPublicAddress } from '../tools/web/fetch-page.ts'
import { Proxy, type ProxyAnswer, type ProxyEvent, type ProxyTarget } from './proxy.ts'

let upstream: Server
let upstreamPort: number
let entrance: NetServer
let proxy: Proxy
let rules: RuleLayers
let events: ProxyEvent[]
let lookups: string[]
let asked: ProxyTarget[]
let ask: (target: ProxyTarget, signal: AbortSignal) => Promise<ProxyAnswer>
let addresses: Record<string, string[]>

beforeEach(async () => {
  upstream = createHttpServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => void (body += chunk.toString()))
    request.on('end', () => {
      response.writeHead(200, { 'x-method': request.method ?? '' })
      response.end(JSON.stringify({ url: request.url, headers: request.headers, body }))
    })
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  upstreamPort = (upstream.address() as AddressInfo).port
  ;[rules, events, lookups, asked] = [allow('ok.example'), [], [], []]
  ask = () => Promise.resolve('unattended')
  addresses = { 'ok.example': ['127.0.0.1'], 'other.example': ['127.0.0.1'] }
  proxy = new Proxy({
    rules: () => rules,
    ask: (target, signal) => {
      asked.push(target)
      return ask(target, signal)
    },
    onEvent: (event) => events.push(event),
    resolve: (host) => {
      lookups.push(host)
      return Promise.resolve((addresses[host] ?? []).map((address) => ({ address, family: 4 })))
    },
    // The servers of these tests are on loopback, which stands for the internet here.
    isPublic: (address) => address === '127.0.0.1' || isPublicAddress(address),
  })
  entrance = createServer((socket) => proxy.serve(socket)).listen(0, '127.0.0.1')
  await once(entrance, 'listening')
})
afterEach(() => {
  proxy.close()
  entrance.close()
  upstream.close()
  upstream.closeAllConnections()
})

function allow(...hosts: string[]): RuleLayers {
  const user = hosts.map((match): Rule => ({ effect: 'allow', type: 'fetch', match }))
  return { ...noRules, user }
}

/** Sends bytes and reads until the proxy closes, or until the text contains `until`. */
async function exchange(bytes: string | Buffer, until?: string): Promise<string> {
  const socket = connect((entrance.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(bytes)
  let text = ''
  const done = Promise.withResolvers<void>()
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    if (until !== undefined && text.includes(until)) done.resolve()
  })
  socket.on('close', () => done.resolve())
  await done.promise
  socket.destroy()
  return text
}

const get = (url: string, more = ''): Promise<string> =>
  exchange(`GET ${url} HTTP/1.1\r\nHost: lies.example\r\nConnection: close\r\n${more}\r\n`)
const tunnel = (authority: string, more = ''): Promise<string> =>
  exchange(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${more}\r\n`, '\r\n\r\n')
const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])
const callHeader = (callId: string): string =>
  `Proxy-Authorization: Basic ${Buffer.from(`${callId}:`).toString('base64')}\r\n`

describe('an allowed host', () => {
  test('that sends an invalid response is an error of this request only', async () => {
    const broken = createServer((socket) => socket.end('HTTP/1.1 099 No\r\n\r\n')).listen(0, '127.0.0.1')
    await once(broken, 'listening')
    const { port } = broken.address() as AddressInfo
    expect(await get(`http://ok.example:${port}/`)).toContain('ok.example sent an invalid response')
    broken.close()
    expect(statusOf(await get(`http://ok.example:${upstreamPort}/`))).toBe(200)
  })

  test('is reached through a tunnel, and both directions are counted', async () => {
    const bytes = `CONNECT ok.example:${upstreamPort} HTTP/1.1\r\n\r\n`
    const inner = 'GET /inside HTTP/1.1\r\nHost: ok.example\r\nConnection: close\r\n\r\n'
    const text = await exchange(bytes + inner)
    expect(text).toMatch(/^HTTP\/1\.1 200 Connection established\r\n\r\nHTTP\/1\.1 200 OK/)
    await vi.waitFor(() => expect(events.length).toBe(2))
    expect(events).toEqual([
      { host: 'ok.example', port: upstreamPort, type: 'opened', address: '127.0.0.1' },
      {
        host: 'ok.example',
        port: upstreamPort,
        type: 'closed',
        sentBytes: inner.length,
        receivedBytes: text.length - 'HTTP/1.1 200 Connection established\r\n\r\n'.length,
      },
    ])
  })

  test('is reached by plain HTTP, with the host that was judged and without headers for the proxy', async () => {
    const text = await get(
      `http://OK.example.:${upstreamPort}/a?b=1`,
      `Proxy-Connection: keep-alive\r\n${callHeader('call_1')}`,
    )
    const answer = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)) as {
      url: string
      headers: Record<string, string>
    }
    expect(answer.url).toBe('/a?b=1')
    expect(answer.headers).toEqual({ host: `ok.example:${upstreamPort}`, connection: 'close' })
    expect(events[0]).toMatchObject({ type: 'opened', callId: 'call_1' })
  })

  test('gets the body of a request, whether it has a length or comes in chunks', async () => {
    for (const headers of [{ 'content-length': '5' }, { 'transfer-encoding': 'chunked' }]) {
      for (const method of ['POST', 'GET']) {
        const port = (entrance.address() as AddressInfo).port
        const path = `http://ok.example:${upstreamPort}/`
        const request = httpRequest({ host: '127.0.0.1', port, method, path, headers })
        request.end('hello')
        const [response] = (await once(request, 'response')) as [IncomingMessage]
        let text = ''
        for await (const chunk of response) text += String(chunk)
        expect(JSON.parse(text)).toMatchObject({ body: 'hello' })
        expect(response.headers['x-method']).toBe(method)
      }
    }
  })

  test('is looked up once for a connection, so that a second answer of the resolver changes nothing', async () => {
    await get(`http://ok.example:${upstreamPort}/`)
    expect(lookups).toEqual(['ok.example'])
  })

  test('that cannot be reached is a failure with a reason', async () => {
    addresses['ok.example'] = []
    expect(await get('http://ok.example/')).toContain('There is no address for ok.example.')
    expect(events).toEqual([
      { host: 'ok.example', port: 80, type: 'failed', reason: 'There is no address for ok.example.' },
    ])
  })
})

describe('a host that no rule allows', () => {
  test('gets a 403 that names it and says how to allow it, and is never looked up', async () => {
    for (const text of [await get('http://other.example/secret'), await tunnel('other.example:443')]) {
      expect(statusOf(text)).toBe(403)
      expect(text).toContain('add "fetch other.example" to permissions.allow')
    }
    expect(lookups).toEqual([])
    expect(events.map(({ type, host, port }) => [type, host, port])).toEqual([
      ['refused', 'other.example', 80],
      ['refused', 'other.example', 443],
    ])
  })

  test('is asked about while the request waits', async () => {
    const answered = Promise.withResolvers<ProxyAnswer>()
    const isAsked = Promise.withResolvers<void>()
    ask = () => {
      isAsked.resolve()
      return answered.promise
    }
    const waiting = get(`http://other.example:${upstreamPort}/`)
    await isAsked.promise
    expect(lookups).toEqual([])
    answered.resolve('allow')
    expect(statusOf(await waiting)).toBe(200)
  })

  test('is asked about once for a call, however many connections it opens', async () => {
    ask = () => Promise.resolve('allow')
    const url = `http://other.example:${upstreamPort}/`
    await Promise.all([1, 2, 3].map(() => get(url, callHeader('call_1'))))
    await get(url, callHeader('call_1'))
    expect(asked).toEqual([{ host: 'other.example', port: upstreamPort, callId: 'call_1' }])
    await get(url, callHeader('call_2'))
    await get(url)
    await get(url)
    expect(asked.length).toBe(4)
  })

  test('stays refused for a call whose question was denied', async () => {
    ask = () => Promise.resolve('deny')
    for (let time = 0; time < 2; time += 1)
      expect(await get('http://other.example/', callHeader('call_1'))).toContain(
        'The user has denied the host other.example.',
      )
    expect(asked.length).toBe(1)
  })

  test('is not asked about any more when the command has gone', async () => {
    const withdrawn = Promise.withResolvers<void>()
    const isAsked = Promise.withResolvers<void>()
    ask = (_, signal) => {
      isAsked.resolve()
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          withdrawn.resolve()
          reject(new Error('withdrawn'))
        })
      })
    }
    const socket = connect((entrance.address() as AddressInfo).port, '127.0.0.1')
    socket.write('CONNECT other.example:443 HTTP/1.1\r\n\r\n')
    await isAsked.promise
    socket.destroy()
    await withdrawn.promise
    expect(lookups).toEqual([])
  })

  test('is refused without a question if too many are pending', async () => {
    const isFull = Promise.withResolvers<void>()
    ask = () => {
      if (asked.length === 20) isFull.resolve()
      return new Promise(() => undefined)
    }
    for (let index = 0; index < 20; index += 1) {
      const socket = connect((entrance.address() as AddressInfo).port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write(`CONNECT host${index}.example:443 HTTP/1.1\r\n\r\n`)
    }
    await isFull.promise
    expect(statusOf(await tunnel('another.example:443'))).toBe(503)
  })

  test('is refused without a question by a rule that denies it, even beside one that allows all', async () => {
    rules = { ...allow('*'), project: [{ effect: 'deny', type: 'fetch', match: '*.example' }] }
    expect(await tunnel('other.example:443')).toContain('A rule denies the host other.example.')
    expect(asked).toEqual([])
  })
})

describe('if every host is allowed', () => {
  beforeEach(() => void (rules = allow('*')))

  test.each([
    ['loopback', '127.0.0.2'],
    ['a private network', '10.1.2.3'],
    ['a private network', '192.168.0.1'],
    ['link-local: the metadata service of a cloud', '169.254.169.254'],
    ['loopback of IPv6', '::1'],
    ['mapped loopback', '::ffff:127.0.0.1'],
    ['mapped metadata', '::ffff:a9fe:a9fe'],
    ['unique local', 'fd00:ec2::254'],
    ['link-local of IPv6', 'fe80::1'],
    ['translated loopback', '64:ff9b::7f00:1'],
    ['6to4 of loopback', '2002:7f00:1::1'],
  ])('an address of %s is refused: %s', async (_, address) => {
    const literal = address.includes(':') ? `[${address}]` : address
    expect(statusOf(await tunnel(`${literal}:443`))).toBe(403)
    expect(statusOf(await get(`http://${literal}/`))).toBe(403)
    addresses['rebound.example'] = ['127.0.0.1', address]
    expect(statusOf(await tunnel('rebound.example:443'))).toBe(403)
    expect(events.filter(({ type }) => type === 'opened')).toEqual([])
  })

  test.each([
    ['ok.example\0.evil.example:443'],
    ['ok.example%00.evil.example:443'],
    ['ok.example%2eevil.example:443'],
    ['ok.example\\@evil.example:443'],
    ['user@ok.example:443'],
    ['ok.example/evil.example:443'],
    ['ok.example#:443'],
    ['localhost:443'],
    ['127.1:443'],
    ['0x7f000001:443'],
    ['0x7f.1:443'],
    ['2130706433:443'],
    ['0177.0.0.1:443'],
    ['127.0.0.2.:443'],
    ['ok.example..:443'],
    ['.ok.example:443'],
    ['-ok.example:443'],
    ['[::1%25lo]:443'],
    ['[fe80::1%eth0]:443'],
    ['::1:443'],
    [`${'a'.repeat(64)}.example:443`],
    [`${'a.'.repeat(130)}example:443`],
    ['ok.exämple:443'],
    ['ok.example'],
    ['ok.example:'],
    ['ok.example:0'],
    ['ok.example:65536'],
    ['ok.example:0443443'],
    [':443'],
    [''],
  ])('the odd host of CONNECT %j reaches nothing', async (authority) => {
    const status = statusOf(await tunnel(authority))
    expect([400, 403]).toContain(status)
    expect(events.filter(({ type }) => type === 'opened')).toEqual([])
  })

  test.each([
    ['/only/a/path'],
    ['https://ok.example/'],
    ['ftp://ok.example/'],
    ['file:///etc/passwd'],
    ['http://user:word@ok.example/'],
    ['http://localhost/'],
    ['http://2130706434/'],
    ['http://0x7f.2/'],
    ['http://0177.0.0.2/'],
    ['http://127.2/'],
    ['http://[::ffff:127.0.0.1]/'],
    ['http://ok.example%00.evil.example/'],
    ['http://ok.example:99999/'],
  ])('the odd URL %j reaches nothing', async (url) => {
    const status = statusOf(await get(url))
    expect([400, 403]).toContain(status)
    expect(events.filter(({ type }) => type === 'opened')).toEqual([])
  })

  test('ports of mail, shells and other services are refused', async () => {
    for (const port of [22, 25, 53, 465, 587])
      expect(await tunnel(`ok.example:${port}`)).toContain(`Port ${port} of ok.example is not reachable`)
  })
})
