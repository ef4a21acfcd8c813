import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { fetch as undiciFetch } from 'undici'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { fetchTool, type FetchOptions } from './fetch.ts'

/** A server on loopback, closed with all its connections after the test. */
class TestServer implements AsyncDisposable {
  readonly #server: Server
  readonly requests: string[] = []

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(listener: RequestListener, host = '127.0.0.1', port = 0): Promise<TestServer> {
    const server: TestServer = new TestServer(
      createServer((request, response) => {
        server.requests.push(`${request.headers.host}${request.url}`)
        listener(request, response)
      }),
    )
    server.#server.listen(port, host)
    await once(server.#server, 'listening')
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  url(path = '/'): string {
    return `http://127.0.0.1:${this.port}${path}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

function answering(
  contentType: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): RequestListener {
  return (_, response) => void response.writeHead(200, { 'content-type': contentType, ...headers }).end(body)
}

async function fetched(url: string, { maxBytes, ...options }: FetchOptions & { maxBytes?: number } = {}) {
  const tool = fetchTool({ allowPrivate: true, ...options })
  const context = testContext({ cwd: '/' })
  return { ...(await callTool(tool, { url, ...(maxBytes !== undefined && { maxBytes }) }, context)), context }
}

describe('a response', () => {
  test('of HTML becomes Markdown', async () => {
    await using server = await TestServer.start(
      answering('text/html; charset=utf-8', '<title>T</title><h1>Hi</h1><script>x</script><a href="/a">ü</a>'),
    )
    const { content, isError } = await fetched(server.url('/page'))
    expect({ content, isError }).toEqual({
      content: `${server.url('/page')} (text/html; charset=utf-8, 64 bytes)\n\nTitle: T\n\n# Hi\n\n[ü](${server.url('/a')})`,
      isError: undefined,
    })
  })

  test.each([
    'application/json',
    'text/plain',
    'application/ld+json',
    'application/xml',
    'text/markdown',
    'text/x-python',
  ])('of type %s is returned unchanged', async (type) => {
    await using server = await TestServer.start(answering(type, '{"a": "<b>"}'))
    expect((await fetched(server.url())).content).toBe(`${server.url()} (${type}, 12 bytes)\n\n{"a": "<b>"}`)
  })

  test.each(['image/png', 'application/pdf', 'application/zip', 'application/octet-stream', 'video/mp4'])(
    'of type %s is rejected with its type',
    async (type) => {
      await using server = await TestServer.start(answering(type, 'x'))
      expect(await fetched(server.url())).toMatchObject({
        content: `${server.url()} is ${type}, which cannot be shown as text.`,
        isError: true,
      })
    },
  )

  test('without a type is text if it looks like text', async () => {
    await using server = await TestServer.start((request, response) => {
      response.end(request.url === '/text' ? 'hello' : Buffer.from([0, 1, 2]))
    })
    expect((await fetched(server.url('/text'))).content).toContain('hello')
    expect(await fetched(server.url('/binary'))).toMatchObject({ isError: true })
  })

  test('is decompressed, and decoded from another encoding', async () => {
    await using server = await TestServer.start((request, response) => {
      if (request.url === '/gzip') {
        answering('text/plain', gzipSync('packed'), { 'content-encoding': 'gzip' })(request, response)
      } else if (request.url === '/latin')
        answering('text/plain; charset=ISO-8859-1', Buffer.from('grün', 'latin1'))(request, response)
      else answering('text/html', Buffer.from('<meta charset="windows-1252"><p>grün €', 'latin1'))(request, response)
    })
    expect((await fetched(server.url('/gzip'))).content).toContain('packed')
    expect((await fetched(server.url('/latin'))).content).toContain('grün')
    expect((await fetched(server.url('/meta'))).content).toContain('grün')
  })

  test('with an error status is an error that shows the body', async () => {
    await using server = await TestServer.start((_, response) => {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('no such page')
    })
    expect(await fetched(server.url())).toMatchObject({
      content: `${server.url()} (404 Not Found, text/plain, 12 bytes)\n\nno such page`,
      isError: true,
    })
  })

  test('without content is reported as empty', async () => {
    await using server = await TestServer.start((_, response) => void response.writeHead(204).end())
    expect((await fetched(server.url())).content).toContain('(The response has no content.)')
  })
})

describe('limits', () => {
  test('an endless response is cut at the requested size', async () => {
    await using server = await TestServer.start((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      const more = (): void => {
        while (response.write('x'.repeat(1000))) {
          // until the connection is full
        }
      }
      response.on('drain', more)
      more()
    })
    const { content } = await fetched(server.url(), { maxBytes: 5000 })
    expect(content).toContain(', 5000 bytes)')
    expect(content).toContain('x'.repeat(5000))
    expect(content).not.toContain('x'.repeat(5001))
    expect(content).toMatch(/\[Only the first 5000 bytes were fetched\.\]$/)
  })

  test('a small response that decompresses to a huge one is cut too', async () => {
    const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024, 'x'))
    await using server = await TestServer.start(answering('text/plain', bomb, { 'content-encoding': 'gzip' }))
    const before = process.memoryUsage().rss
    expect((await fetched(server.url())).content).toContain('[Only the first 1048576 bytes were fetched.]')
    expect(process.memoryUsage().rss - before).toBeLessThan(90 * 1024 * 1024)
  })

  test('a long text loses its middle, and all of it is kept', async () => {
    const text = Array.from({ length: 5000 }, (_, index) => `line ${index}`).join('\n')
    await using server = await TestServer.start(answering('text/plain', text))
    const { content, context } = await fetched(server.url())
    expect(content).toContain('left out here. The whole output is kept as blob')
    expect(Buffer.from([...context.blobs.values()][0]!).toString()).toBe(text)
  })

  test.each(['headers', 'body'])('a server that stops sending is abandoned after the timeout (%s)', async (phase) => {
    await using server = await TestServer.start((_, response) => {
      if (phase === 'body') response.writeHead(200, { 'content-type': 'text/plain' }).write('half')
    })
    expect(await fetched(server.url(), { timeoutMs: 100 })).toMatchObject({
      content: `${server.url()} took longer than 0.1 seconds.`,
      isError: true,
    })
  })

  test('a name that is never resolved is abandoned after the timeout', async () => {
    const lookup = () => new Promise<never>(() => {})
    expect(await fetched('http://slow.test/', { timeoutMs: 100, lookup })).toMatchObject({
      content: 'http://slow.test/ took longer than 0.1 seconds.',
      isError: true,
    })
  })

  test('an abort gives no result', async () => {
    const controller = new AbortController()
    await using server = await TestServer.start(() => controller.abort())
    const context = testContext({ cwd: '/', signal: controller.signal })
    await expect(callTool(fetchTool({ allowPrivate: true }), { url: server.url() }, context)).rejects.toMatchObject({
      name: 'AbortError',
    })
  })

  test('a server that is unreachable, or closes the connection, is an error', async () => {
    await using server = await TestServer.start((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '100' }).write('half')
      response.socket?.destroy()
    })
    expect(await fetched(server.url())).toMatchObject({
      content: expect.stringContaining('could not be fetched'),
      isError: true,
    })
    const gone = server.url()
    await server[Symbol.asyncDispose]().catch(() => undefined)
    expect(await fetched(gone)).toMatchObject({ content: expect.stringContaining('ECONNREFUSED'), isError: true })
    expect(
      await fetched('http://nowhere.invalid/', { lookup: () => Promise.reject(new Error('ENOTFOUND')) }),
    ).toMatchObject({
      content: 'There is no address for nowhere.invalid: ENOTFOUND.',
      isError: true,
    })
  })
})

describe('addresses', () => {
  const noNetwork: FetchOptions = {
    allowPrivate: false,
    fetch: () => Promise.reject(new Error('connected')),
  }

  test.each([
    'http://127.0.0.1/',
    'http://localhost/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://0/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/',
    'http://10.0.0.1/',
    'http://192.168.0.1:8080/',
    'http://100.64.0.1/',
    'http://[fe80::1]/',
    'http://①②⑦.0.0.1/',
    'http://127.0.0.1./',
  ])('%s is rejected without a connection', async (url) => {
    const { content, isError } = await fetched(url, noNetwork)
    expect({ content, isError }).toEqual({
      content: expect.stringContaining('is on this machine or a private network, and is not fetched.'),
      isError: true,
    })
  })

  test('a name is rejected if one of its addresses is private', async () => {
    const lookup = async () => [
      { address: '93.184.216.34', family: 4 },
      { address: '10.0.0.1', family: 4 },
    ]
    expect((await fetched('http://mixed.test/', { ...noNetwork, lookup })).content).toContain('a private network')
  })

  test('a name with public addresses is resolved once and connected to', async () => {
    const lookup = async () => [{ address: '93.184.216.34', family: 4 }]
    expect((await fetched('http://public.test/', { ...noNetwork, lookup })).content).toContain('connected')
  })

  test('the connection goes to the checked address, whatever the name resolves to next', async () => {
    await using checked = await TestServer.start(answering('text/plain', 'checked'))
    await using other = await TestServer.start(answering('text/plain', 'other'), '127.0.0.2', checked.port)
    let lookups = 0
    const lookup = async () => {
      lookups += 1
      return [{ address: lookups === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }]
    }
    expect((await fetched(`http://rebind.test:${checked.port}/`, { lookup })).content).toContain('checked')
    expect([checked.requests, other.requests, lookups]).toEqual([[`rebind.test:${checked.port}/`], [], 1])
  })

  test.each([
    ['ftp://example.com/', 'Only http and https'],
    ['file:///etc/passwd', 'Only http and https'],
    ['javascript:alert(1)', 'Only http and https'],
    ['data:text/plain,x', 'Only http and https'],
    ['gopher://127.0.0.1/', 'Only http and https'],
    ['http://user:secret@example.com/', 'user name or a password'],
    ['http://user@example.com/', 'user name or a password'],
    ['example.com', 'not a valid URL'],
    ['http://', 'not a valid URL'],
    ['http://exa mple.com/', 'not a valid URL'],
  ])('%s is not valid', async (url, reason) => {
    const { content, isError } = await fetched(url, noNetwork)
    expect({ content, isError }).toEqual({ content: expect.stringContaining(reason), isError: true })
  })

  test('a call is judged by its normalized URL', () => {
    expect(accessOf(fetchTool(), { url: 'HTTP://EXAMPLE.com:80/a/../b' }, { cwd: '/' })).toEqual([
      { type: 'fetch', url: 'http://example.com/b' },
    ])
    expect(fetchTool()).toMatchObject({ name: 'fetch', readOnly: false, replay: 'safe' })
  })
})

describe('redirects', () => {
  const redirecting: RequestListener = (request, response) => {
    const to = new URL(request.url ?? '', 'http://x').searchParams.get('to')
    if (to === null) response.writeHead(200, { 'content-type': 'text/plain' }).end('arrived')
    else response.writeHead(302, { location: to }).end()
  }

  test('within a site are followed', async () => {
    await using server = await TestServer.start(redirecting)
    const { content } = await fetched(server.url(`/?to=${encodeURIComponent('/a?to=/b')}`))
    expect(content).toBe(`${server.url('/b')} (text/plain, 7 bytes)\n\narrived`)
  })

  test('to another site are not followed but named, because that site was not judged', async () => {
    await using server = await TestServer.start(redirecting)
    const target = `http://127.0.0.2:${server.port}/`
    const { content, isError } = await fetched(server.url(`/?to=${target}`))
    expect({ content, isError, requests: server.requests.length }).toEqual({
      content: `${server.url(`/?to=${target}`)} redirects to another site: ${target}. Fetch that URL if you want it.`,
      isError: undefined,
      requests: 1,
    })
  })

  test('to a forbidden URL are rejected', async () => {
    await using server = await TestServer.start(redirecting)
    for (const to of ['file:///etc/passwd', `http://a:b@127.0.0.1:${server.port}/`]) {
      expect(await fetched(server.url(`/?to=${to}`))).toMatchObject({
        content: expect.stringContaining(`redirects to ${to}`),
        isError: true,
      })
    }
    expect(await fetched(server.url('/?to=http://['))).toMatchObject({
      content: expect.stringContaining('redirects to an invalid URL'),
      isError: true,
    })
  })

  test('are checked again, so that a public name cannot lead to a private one', async () => {
    await using server = await TestServer.start(redirecting)
    const lookups: string[] = []
    const { content, isError } = await fetched('http://www.public.test/?to=http://public.test/', {
      allowPrivate: false,
      lookup: async (host) => {
        lookups.push(host)
        return [{ address: host === 'www.public.test' ? '93.184.216.34' : '127.0.0.1', family: 4 }]
      },
      // The server on loopback acts as the public address.
      fetch: (url, init) => {
        const { dispatcher: _, ...rest } = init
        return undiciFetch(new URL(new URL(url).search, server.url()), rest)
      },
    })
    expect({ content, isError }).toEqual({
      content: 'http://public.test/ is on this machine or a private network, and is not fetched.',
      isError: true,
    })
    expect(lookups).toEqual(['www.public.test', 'public.test'])
    expect(server.requests).toHaveLength(1)
  })

  test('end after five', async () => {
    await using server = await TestServer.start(
      (_, response) => void response.writeHead(301, { location: '/again' }).end(),
    )
    expect(await fetched(server.url())).toMatchObject({
      content: `${server.url()} redirects more than 5 times.`,
      isError: true,
    })
    expect(server.requests).toHaveLength(6)
  })

  test('may change from http to https but not back, and keep the port', async () => {
    const locationOf = async (from: string, to: string) => {
      const visited: string[] = []
      await fetched(from, {
        lookup: async () => [{ address: '127.0.0.1', family: 4 }],
        fetch: async (url) => {
          visited.push(url)
          const { Response } = await import('undici')
          return visited.length === 1
            ? new Response(null, { status: 301, headers: { location: to } })
            : new Response('x', { headers: { 'content-type': 'text/plain' } })
        },
      })
      return visited.length === 2
    }
    expect(await locationOf('http://a.test/', 'https://a.test/')).toBe(true)
    expect(await locationOf('http://a.test/', 'https://www.a.test/')).toBe(true)
    expect(await locationOf('https://a.test/', 'http://a.test/')).toBe(false)
    expect(await locationOf('http://a.test/', 'http://a.test:8080/')).toBe(false)
    expect(await locationOf('http://a.test:8080/', 'https://a.test/')).toBe(false)
    expect(await locationOf('https://a.test/', 'https://a.test.evil.test/')).toBe(false)
    expect(await locationOf('https://a.test/', '//b.test/')).toBe(false)
  })
})
