import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ProblemError } from '@tapetree/client'
import { defaultTenant, LiveSessions, startServer, TokenStore, type RunningServer } from '@tapetree/server'
import { ToolHosts } from '@tapetree/server/tool-hosts'
import { RemoteWorkspace, type HostHello } from '@tapetree/agent/tool-host'
import { memoryStore, newId } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { afterEach, expect, test } from 'vitest'
import { parse } from '../../command-line/parse.ts'
import { fakeHome } from '../../testing/fake-home.ts'
import { testIo, type TestIo } from '../../testing/test-io.ts'
import { serveCommands } from '../table/serve.ts'
import { offerHere } from './offer-here.ts'
import { toolHost } from './tool-host.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Place {
  io: TestIo
  leaving: AbortController
  hosts: ToolHosts
  server: RunningServer
  tokens: TokenStore
  token: string
  folder: string
  restart: () => Promise<void>
}

/** A server, and the machine of a user with a folder. */
async function place(): Promise<Place> {
  const home = await fakeHome()
  cleanUps.push(() => home[Symbol.asyncDispose]())
  const folder = join(home.home, 'app')
  mkdirSync(folder)
  writeFileSync(join(folder, 'AGENTS.md'), 'Be brief.')
  const hosts = new ToolHosts()
  const tokens = await TokenStore.open({ file: join(home.home, 'tokens.json'), first: null })
  const none = (): Promise<never> => Promise.reject(new Error('There are no sessions.'))
  const start = (port: number): Promise<RunningServer> => {
    const sessions = new LiveSessions({ store: memoryStore(), create: none, openDriver: none })
    return startServer({ tenants: new Map([[defaultTenant, sessions]]), tokens, toolHosts: hosts, port })
  }
  const parts = { server: await start(0) }
  cleanUps.push(() => parts.server.close())
  const { token } = await tokens.create({ tenant: defaultTenant, role: 'host' })
  const leaving = new AbortController()
  return {
    ...{ io: testIo({ ...home, signal: leaving.signal }), leaving, hosts, tokens, token, folder },
    get server() {
      return parts.server
    },
    restart: async () => {
      const { port } = parts.server.address
      await parts.server.close()
      parts.server = await start(port)
    },
  }
}

function remoteOf(hosts: ToolHosts): RemoteWorkspace {
  const [
    {
      id: hostId,
      name: hostName,
      platform,
      workspaces: [offered],
    },
  ] = hosts.list(defaultTenant) as [HostHello]
  const reference = { name: 'app', hostId, hostName, platform, folder: offered?.folder ?? '' }
  return new RemoteWorkspace(reference, hosts.channel(defaultTenant, hostId))
}

/** A command that the user types. */
function userContext(cwd: string): Parameters<RemoteWorkspace['runForUser']>[1] {
  const nothing = (): never => {
    throw new Error('A command of the user does not need this.')
  }
  return {
    ...{ sessionId: newId(), runId: '', callId: 'call-0001', cwd, clock: systemClock, localFolder: undefined },
    signal: new AbortController().signal,
    append: async () => undefined,
    putBlob: nothing,
    getBlob: nothing,
    observe: () => undefined,
    ask: nothing,
    reach: nothing,
    readmit: nothing,
  }
}

async function run(args: readonly string[], io: TestIo): Promise<unknown> {
  const parsed = parse(['tool-host', ...args], serveCommands)
  if (parsed.type !== 'run') throw new Error(parsed.type)
  return toolHost(parsed.invocation, io)
}

test('a machine offers its folders until it is told to stop, and connects again after the server was away', async () => {
  const { io, leaving, hosts, server, token, folder, restart } = await place()
  const ended = run(['--connect', server.url, '--workspace', `app=${folder}`, '--token', token, '--name', 'laptop'], io)
  cleanUps.push(async () => {
    leaving.abort()
    await ended
  })
  await expect
    .poll(() => hosts.list(defaultTenant), { timeout: 20_000 })
    .toMatchObject([{ name: 'laptop', workspaces: [{ name: 'app', folder, instructions: [{ text: 'Be brief.' }] }] }])
  const remote = remoteOf(hosts)
  const said = await remote.runForUser('pwd; echo made > made.txt; exit 3', userContext(folder))
  expect(said).toMatchObject({ content: expect.stringContaining(folder), exitCode: 3 })
  expect(readFileSync(join(folder, 'made.txt'), 'utf8')).toBe('made\n')
  remote.close()
  await restart()
  await expect.poll(() => io.err().match(/Connected/g)?.length, { timeout: 20_000 }).toBe(2)
  expect(io.err()).toContain(`Lost the connection to ${server.url}.`)
  expect(io.err()).toMatch(/Offers .*app as app, in mode [\w-]+ at most\./)
})

test('what is wrong is said before anything is offered, with what would help', async () => {
  const { io, server, token, tokens, folder } = await place()
  const offer = ['--workspace', `app=${folder}`]
  await expect(run(offer, io)).rejects.toMatchObject({ code: 2, message: expect.stringContaining('--connect') })
  const connect = ['--connect', server.url, '--token', token]
  await expect(run(connect, io)).rejects.toMatchObject({ code: 2, message: expect.stringContaining('--workspace') })
  await expect(run([...connect, '--workspace', 'app'], io)).rejects.toMatchObject({ code: 2 })
  await expect(run([...connect, '--workspace', 'app=nowhere'], io)).rejects.toMatchObject({ type: 'folder-not-found' })
  const { token: viewer } = await tokens.create({ tenant: defaultTenant, role: 'view' })
  for (const wrong of ['wrong', viewer]) {
    await expect(run(['--connect', server.url, ...offer, '--token', wrong], io)).rejects.toMatchObject({
      type: 'not-accepted',
      next: [expect.stringContaining('tokens create --role host')],
    })
  }
  await expect(run(['--connect', 'http://tape.example', ...offer], io)).rejects.toMatchObject({ type: 'insecure-link' })
})

test('a tool host goes on when nobody reads its messages', async () => {
  const { io, leaving, hosts, server, token, folder } = await place()
  const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
  const write: TestIo['stderr']['write'] = (_text, done) => {
    if (done) queueMicrotask(() => done(gone))
    return true
  }
  const args = ['--connect', server.url, '--workspace', `app=${folder}`, '--token', token]
  const ended = run(args, { ...io, stderr: { write } })
  await expect.poll(() => hosts.list(defaultTenant).length, { timeout: 20_000 }).toBe(1)
  leaving.abort()
  await expect(ended).resolves.toBe(0)
})

test('two processes do not offer the same folders to the same server', async () => {
  const { io, leaving, hosts, server, token, folder } = await place()
  const args = ['--connect', server.url, '--workspace', `app=${folder}`, '--token', token]
  const first = run(args, io)
  cleanUps.push(async () => {
    leaving.abort()
    await first
  })
  await expect.poll(() => hosts.list(defaultTenant).length, { timeout: 20_000 }).toBe(1)
  await expect(run(args, io)).rejects.toMatchObject({ type: 'tool-host-in-use' })
})

test('this folder is offered to a session, also if its server hears of the host a moment later', async () => {
  const { io, leaving, hosts, server, token, folder } = await place()
  const asked: unknown[] = []
  const rest: Parameters<typeof offerHere>[0]['rest'] = {
    setWorkspace: async (session, where) => {
      asked.push([session, where])
      if (asked.length === 1) throw problem('tool-host-not-found', 404)
      return { host: 'laptop', workspace: 'app', folder }
    },
  }
  const here = { server: { url: server.url, token, pairedAt: '' }, recreate: false, rest, io: { ...io, cwd: folder } }
  const { ended } = await offerHere({ ...here, sessionId: 'session-1', signal: leaving.signal })
  const [{ id, workspaces }] = hosts.list(defaultTenant) as [HostHello]
  const wanted = ['session-1', { host: id, workspace: 'app', recreate: false }]
  expect(asked).toEqual([wanted, wanted])
  // It is lent: its files stay here.
  expect(workspaces).toMatchObject([{ name: 'app', folder, sharesFiles: false }])
  leaving.abort()
  await ended
  await expect.poll(() => hosts.list(defaultTenant)).toEqual([])

  // A session that does not take it leaves nothing that is offered.
  const { signal } = new AbortController()
  const busy = { setWorkspace: () => Promise.reject(problem('session-busy', 409)) }
  await expect(offerHere({ ...here, rest: busy, sessionId: 'session-1', signal })).rejects.toMatchObject({
    type: 'session-busy',
  })
  await expect.poll(() => hosts.list(defaultTenant)).toEqual([])
  await expect(offerHere({ ...here, sessionId: undefined, signal })).rejects.toMatchObject({ code: 2 })
})

function problem(type: string, status: number): ProblemError {
  return new ProblemError({ type, title: type, status, detail: 'No.' })
}
