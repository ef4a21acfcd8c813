import type { SessionHandle } from '@tapetree/client'
import { text } from '@tapetree/session'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { serveCommands } from '../table/serve.ts'
import { KnownServers } from '../../host/known-servers.ts'
import { openStore } from '../../host/open-store.ts'
import { addressOfServer, pair, parseServerLink, type ServerLink } from '../../host/pair.ts'
import { remoteSource } from '../../host/remote-source.ts'
import { startChild, type Child } from '../../host/testing/child.ts'
import { parse } from '../../command-line/parse.ts'
import { version } from '../../command-line/version.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome, type FakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'
import { attach } from './attach.ts'
import { addressText } from './announce.ts'
import { serveOptions, serve } from './serve.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function start(...args: string[]): Promise<{ home: FakeHome; child: Child; link: ServerLink }> {
  const home = await fakeHome()
  cleanUps.push(() => home[Symbol.asyncDispose]())
  const child = startChild(new URL('../../main.ts', import.meta.url), ['serve', '--json', '--port', '0', ...args], home)
  cleanUps.push(() => child[Symbol.asyncDispose]())
  const told = JSON.parse(await child.line()) as { url: string; pairing_link: string }
  const link = parseServerLink(told.pairing_link)
  if (!link) throw new Error(told.pairing_link)
  expect(link.url).toBe(told.url)
  return { home, child, link }
}

async function until(handle: SessionHandle, holds: () => boolean): Promise<void> {
  if (holds()) return
  await new Promise<void>((resolve) => {
    const stop = handle.subscribe(() => {
      if (!holds()) return
      stop()
      resolve()
    })
  })
}

describe('serve', () => {
  test('admits a paired screen over TLS with the certificate of its link, and shuts down cleanly', async () => {
    const { home, child, link } = await start('--self-signed')
    const wrong = { ...link, fingerprint: link.fingerprint?.replace(/^../, '00') ?? '' }
    await expect(pair(wrong)).rejects.toMatchObject({ code: 3, type: 'wrong-certificate' })
    const server = await pair(link)
    await expect(pair(link)).rejects.toMatchObject({ type: 'link-used-up' })
    const pinned = { certificate: server.pinned?.certificate ?? '', fingerprint: wrong.fingerprint }
    const refused = remoteSource({ address: addressOfServer({ ...server, pinned }), where: link.url })
    await expect(refused.list({})).rejects.toMatchObject({ type: 'unreachable' })
    const servers = new KnownServers(placesOf(home))
    await servers.remember(server)
    expect((await stat(join(placesOf(home).state, 'servers.json'))).mode & 0o777).toBe(0o600)

    const attached = (...args: string[]): Promise<unknown> => {
      const parsed = parse(['attach', ...args], serveCommands)
      if (parsed.type !== 'run') throw new Error(parsed.type)
      return attach(parsed.invocation, testIo({ ...home, isTTY: true }))
    }
    // All errors appear before a screen is drawn.
    await expect(attached(link.url, '--token', 'wrong')).rejects.toMatchObject({ type: 'not-signed-in' })
    await expect(attached(link.url, 'last')).rejects.toMatchObject({ code: 5, type: 'session-not-found' })
    await servers.forget(link.url)
    const untrusted = { code: 3, type: 'untrusted-certificate' }
    await expect(attached(link.url, '--token', server.token)).rejects.toMatchObject(untrusted)
    await expect(attached(`${link.url}/#pair=abc`)).rejects.toMatchObject(untrusted)

    const source = remoteSource({ address: addressOfServer(server), where: link.url })
    home.provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['A porcupine.'] }] })
    await writeFile(join(home.cwd, 'notes.txt'), '')
    const { handle, access, cwd } = await source.create()
    expect([access, cwd]).toEqual([{ type: 'attached', where: link.url }, home.cwd])
    await handle.prompt('Which animal?')
    await until(handle, () => [...handle.transcript.path.items].at(-1)?.type === 'assistant')
    expect(await source.list({})).toMatchObject([{ id: handle.sessionId, cwd: home.cwd, firstText: 'Which animal?' }])
    expect(await source.search('porcupine')).toMatchObject([{ sessionId: handle.sessionId }])
    expect(await source.files('no')).toEqual(['notes.txt'])
    expect((await source.models()).some(({ reference }) => reference === 'fake/model-1')).toBe(true)
    const tree = await source.tree(handle.sessionId)
    expect(tree[0]?.entry.parentId).toBeNull()
    const fork = await source.fork(handle.sessionId)
    expect(fork.handle.sessionId).not.toBe(handle.sessionId)
    await servers.remember(server)
    await expect(attached(link.url, handle.sessionId.slice(0, 4))).rejects.toMatchObject({
      code: 2,
      type: 'session-ambiguous',
      next: [`tapetree attach ${link.url}`],
    })

    for (const each of [handle, fork.handle]) await each.close()
    await source.rename(fork.handle.sessionId, 'a copy')
    expect((await source.list({})).map(({ name }) => name)).toContain('a copy')
    await source.archive(fork.handle.sessionId)
    await source.delete(handle.sessionId)
    expect(await source.list({})).toEqual([])
    child.process.kill('SIGTERM')
    expect(await child.ended).toBe(0)
  })

  test('logs every request at the level info, and tells its version', async () => {
    const { home, child, link } = await start('--log-level', 'info')
    const logged = createInterface({ input: child.process.stderr })[Symbol.asyncIterator]()
    const server = await pair(link)
    const headers = { authorization: `Bearer ${server.token}`, 'x-request-id': 'request-7' }
    const answer = await fetch(new URL('/api/version', link.url), { headers })
    expect(await answer.json()).toEqual({ name: 'tapetree', version, protocol: 'tapetree.v1' })
    const lines: unknown[] = []
    while (lines.length < 2) lines.push(JSON.parse(String((await logged.next()).value)))
    expect(lines).toMatchObject([
      { level: 'info', route: '/api/pair', status: 201, address: '127.0.0.1' },
      {
        route: '/api/version',
        status: 200,
        requestId: 'request-7',
        tenant: 'default',
        caller: expect.stringMatching(/^[\da-f]{16}$/),
      },
    ])
    expect(JSON.stringify(lines)).not.toContain(server.token.slice(-40))
    const told = startChild(new URL('../../main.ts', import.meta.url), ['--version'], home)
    cleanUps.push(() => told[Symbol.asyncDispose]())
    expect(await told.line()).toBe(version)
  })

  test('reports an invalid address or port in one sentence', async () => {
    const home = await fakeHome()
    cleanUps.push(() => home[Symbol.asyncDispose]())
    const blocker = createServer().listen(0, '127.0.0.1')
    cleanUps.push(() => blocker.close())
    await new Promise((resolve) => blocker.once('listening', resolve))
    const { port } = blocker.address() as { port: number }
    const run = (...args: string[]): Promise<unknown> => {
      const parsed = parse(['serve', ...args], serveCommands)
      if (parsed.type !== 'run') throw new Error(parsed.type)
      return serve(parsed.invocation, testIo({ ...home }))
    }
    await expect(run('--port', String(port))).rejects.toMatchObject({ code: 3, type: 'port-taken' })
    await expect(run('--host', '0.0.0.0')).rejects.toMatchObject({
      code: 2,
      next: expect.arrayContaining(['tapetree serve --host 0.0.0.0 --self-signed']) as string[],
    })
    await expect(run('--port', '99999')).rejects.toMatchObject({ code: 2 })
    await expect(run('--root', 'nowhere')).rejects.toMatchObject({ code: 5 })
    await expect(run('--tls-cert', 'cert.pem')).rejects.toMatchObject({ code: 2 })
  })

  test('hides sessions outside its roots and does not resume their runs', async () => {
    const home = await fakeHome()
    cleanUps.push(() => home[Symbol.asyncDispose]())
    const [inside, outside] = [join(home.cwd, 'inside'), join(home.cwd, 'outside')]
    for (const folder of [inside, outside]) await mkdir(folder)
    const places = placesOf(home)
    const leave = async (id: string, cwd: string): Promise<void> => {
      const session = await store.create({ id, cwd, name: id })
      const leafId = await session.appendMessage('user', [text('work on it')], { with: { runId: 'r' } })
      await session.append({ type: 'run_start', runStart: { runId: 'r', leafId, owner: 'server' } })
    }
    const store = await openStore(places)
    await leave('within', inside)
    await leave('elsewhere', outside)
    await store.close()
    const before = await readFile(join(places.sessions, 'elsewhere', 'events.jsonl'), 'utf8')
    home.provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }] })
    const child = startChild(
      new URL('../../main.ts', import.meta.url),
      ['serve', '--json', '--port', '0', '--root', inside],
      home,
    )
    cleanUps.push(() => child[Symbol.asyncDispose]())
    const { pairing_link } = JSON.parse(await child.line()) as { pairing_link: string }
    const { token, url } = await pair(parseServerLink(pairing_link) as ServerLink)
    const ask = async (path: string, method = 'GET'): Promise<{ status: number; body: unknown }> => {
      const response = await fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
      const body = await response.text()
      return { status: response.status, body: body === '' ? undefined : JSON.parse(body) }
    }
    await vi.waitFor(
      async () => expect(await ask('/api/sessions/within')).toMatchObject({ body: { status: 'idle' } }),
      { timeout: 20_000 },
    )
    expect((await ask('/api/sessions')).body).toMatchObject({ sessions: [{ id: 'within' }] })
    expect((await ask('/api/search?q=work')).body).toMatchObject({ hits: [{ session_id: 'within' }] })
    for (const [path, method] of [
      ['', 'GET'],
      ['', 'DELETE'],
      ['/events', 'GET'],
      ['/export', 'GET'],
      ['/archive', 'POST'],
      ['/restore', 'POST'],
      ['/tree', 'GET'],
    ] as const) {
      expect(await ask(`/api/sessions/elsewhere${path}`, method)).toMatchObject({ status: 404 })
    }
    expect(await readFile(join(places.sessions, 'elsewhere', 'events.jsonl'), 'utf8')).toBe(before)
  })

  test('works only inside its roots', async () => {
    const home = await fakeHome()
    cleanUps.push(() => home[Symbol.asyncDispose]())
    await mkdir(join(home.cwd, 'inside'))
    const parsed = parse(['serve', '--root', 'inside'], serveCommands)
    if (parsed.type !== 'run') throw new Error(parsed.type)
    const { roots, checkFolder } = await serveOptions(parsed.invocation, testIo({ ...home }))
    expect(roots).toEqual([join(home.cwd, 'inside')])
    await checkFolder(join(home.cwd, 'inside'))
    await expect(checkFolder(home.cwd)).rejects.toMatchObject({ problem: { type: 'outside-roots' } })
  })

  test('prints address, link, code and instructions for a phone', async () => {
    const printed = await servedInTerminal({ args: ['--port', '0'], stdin: '' })
    expect(printed).toMatch(/^Serving at http:\/\/127\.0\.0\.1:\d+\n/)
    expect(printed).toMatch(
      /with the role drive .*\n {2}http:\/\/127\.0\.0\.1:\d+\/#pair=(\S+)\n[^]*type the code \1\n/,
    )
    expect(printed).toMatch(/[▀▄█]/)
    expect(printed).toContain('A phone needs a tunnel')
  })

  test('asks for the role of the next link after Enter', async () => {
    const stdin = '\napprove\n\nq\n\nadmin\n\n'
    const printed = await servedInTerminal({ args: ['--port', '0', '--pair-role', 'view'], stdin, links: 4 })
    const roles = Array.from(printed.matchAll(/pairs one device with the role (\w+)/g), ([, role]) => role)
    // The answer `admin` is no role, so it is asked again and Enter is the usual one.
    expect(roles).toEqual(['view', 'approve', 'queue', 'view'])
  })

  test('grants the role of the link, below the path of its public URL', async () => {
    const home = await fakeHome()
    cleanUps.push(() => home[Symbol.asyncDispose]())
    const args = [
      '--public-url',
      'https://tape.example/agents/',
      '--trusted-proxy',
      '127.0.0.1',
      '--pair-role',
      'approve',
    ]
    const child = startChild(
      new URL('../../main.ts', import.meta.url),
      ['serve', '--json', '--port', '0', ...args],
      home,
    )
    cleanUps.push(() => child[Symbol.asyncDispose]())
    const told = JSON.parse(await child.line()) as Record<'url' | 'pairing_link' | 'role' | 'listening', string>
    expect(told).toMatchObject({ url: 'https://tape.example/agents', role: 'approve' })
    const link = parseServerLink(told.pairing_link)
    expect(link).toEqual({ url: told.url, code: expect.any(String) as string })
    // The proxy of this test is missing, so the terminal asks the server itself, with the path kept.
    const url = `${told.listening}/agents`
    const server = await pair({ ...link, url })
    expect(server.url).toBe(url)
    const source = remoteSource({ address: addressOfServer(server), where: url })
    expect(await source.list({})).toEqual([])
    const mine = await fetch(`${url}/api/caller`, { headers: { authorization: `Bearer ${server.token}` } })
    expect(await mine.json()).toMatchObject({ role: 'approve' })
    child.process.kill('SIGTERM')
    expect(await child.ended).toBe(0)
  })

  test.each([
    [['--public-url', 'tape.example'], 'must start with https'],
    [['--public-url', 'https://tape.example/api'], 'routes'],
    [['--public-url', 'http://tape.example'], 'must start with https://'],
    [['--trusted-proxy', 'nginx'], 'neither an address nor a network'],
    [['--trusted-proxy', '10.0.0.0/99'], 'neither an address nor a network'],
    [['--allowed-origin', '*'], 'must be a scheme'],
    [['--allowed-origin', 'https://app.example/'], 'must be a scheme'],
    [['--allowed-origin', 'null'], 'must be a scheme'],
  ])('refuses %j before it listens', async (args, why) => {
    const home = await fakeHome()
    cleanUps.push(() => home[Symbol.asyncDispose]())
    const parsed = parse(['serve', ...args], serveCommands)
    if (parsed.type !== 'run') throw new Error(parsed.type)
    const refused = { code: 2, message: expect.stringContaining(why) as string }
    await expect(serve(parsed.invocation, testIo({ ...home }))).rejects.toMatchObject(refused)
  })
})

/** What `serve` prints to a terminal until it has printed this many links. */
async function servedInTerminal(options: { args: string[]; stdin: string; links?: number }): Promise<string> {
  const { args, stdin, links = 1 } = options
  const home = await fakeHome()
  cleanUps.push(() => home[Symbol.asyncDispose]())
  const parsed = parse(['serve', ...args], serveCommands)
  if (parsed.type !== 'run') throw new Error(parsed.type)
  const stop = new AbortController()
  const io = testIo({ ...home, isTTY: true, stdin, signal: stop.signal })
  const served = serve(parsed.invocation, io)
  const printed = (): number => io.out().split('type the code').length - 1
  await vi.waitFor(() => expect(printed()).toBe(links), { timeout: 20_000 })
  stop.abort()
  expect(await served).toBe(0)
  return io.out()
}

test('an address text says why a certificate was replaced, and names all addresses', () => {
  const server = { url: 'https://192.0.2.7:8787', alsoAt: ['https://laptop.local:8787'], fingerprint: 'AA:BB' }
  const text = addressText({ ...server, renewed: 'new-name' }, 'network')
  expect(text).toContain('Also at https://laptop.local:8787\n')
  expect(text).toContain('Fingerprint AA:BB\n')
  expect(text).toContain('new certificate')
  expect(addressText({ ...server, publicUrl: 'https://tape.example' }, 'proxy')).toMatch(
    /^Serving at https:\/\/tape\.example\nListening for the proxy at https:\/\/192/,
  )
})
