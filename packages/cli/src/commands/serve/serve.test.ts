import type { SessionHandle } from '@tapetree/client'
import { text } from '@tapetree/session'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { serveCommands } from '../table/serve.ts'
import { KnownServers } from '../../host/known-servers.ts'
import { openStore } from '../../host/open-store.ts'
import { addressOfServer, pair, parseServerLink, type ServerLink } from '../../host/pair.ts'
import { remoteSource } from '../../host/remote-source.ts'
import { startChild, type Child } from '../../host/testing/child.ts'
import { parse } from '../../command-line/parse.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome, type FakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'
import { attach } from './attach.ts'
import { serveOptions, serveText, serve } from './serve.ts'

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

  test('prints address, link, code and instructions for a phone', () => {
    const printed = serveText({
      url: 'http://localhost:8787',
      fingerprint: undefined,
      link: 'http://localhost:8787/#pair=abc',
      reach: 'this-machine',
      isTerminal: true,
    })
    expect(printed).toContain('Serving at http://localhost:8787\n')
    expect(printed).toMatch(/[▀▄█]/)
    expect(printed).toContain('A phone needs a tunnel')
  })
})
