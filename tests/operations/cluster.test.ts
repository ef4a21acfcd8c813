// Several servers on one database, connected by NATS: real processes, as a team would run them.
import { RemoteSession } from '@tapetree/client'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { missingNats, NatsProcess } from '../../packages/server/src/bus/testing/nats-process.ts'
import { missingPostgres, PostgresServer } from '../../packages/session/src/testing/postgres-server.ts'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { serve, type Served } from './served.ts'

const missing = missingPostgres ?? missingNats
if (missing !== undefined) console.log(missing)

const patiently = { timeout: 30_000 }

describe.skipIf(missing !== undefined)('servers that form one service', () => {
  let database: PostgresServer
  let nats: NatsProcess
  let url: string

  beforeAll(async () => {
    database = await PostgresServer.start()
    await database.admin('create database sessions')
    await migratePostgres(database.urlFor('admin', 'sessions'))
    await database.admin('create role app login in role tapetree_app')
    url = database.urlFor('app', 'sessions')
    nats = await NatsProcess.start()
  })

  afterAll(async () => {
    await nats.stop()
    await database.remove()
  })

  async function home(mode: string): Promise<FakeHome> {
    const made = await fakeHome({ settings: { permissions: { mode } } })
    onTestFinished(() => made[Symbol.asyncDispose]())
    return made
  }

  const start = (at: FakeHome, node: string): Promise<Served> =>
    serve(at, '--store', url, '--bus', nats.url, '--node', node, '--root', at.cwd)

  /** A server that others reach at its own port, without NATS. */
  async function startRelay(at: FakeHome, node: string): Promise<Served> {
    const port = await freePort()
    const bus = `http://127.0.0.1:${port}`
    return serve(at, '--port', String(port), '--store', url, '--bus', bus, '--node', node, '--root', at.cwd)
  }

  async function client({ url: baseUrl, token }: Served, sessionId: string): Promise<RemoteSession> {
    const opened = await RemoteSession.open({ baseUrl, token, sessionId })
    onTestFinished(() => opened.close())
    // The node whose client comes first owns the session.
    await opened.ready
    return opened
  }

  /** What is streaming, and the last words of the transcript. */
  const lastWords = ({ transcript }: RemoteSession): string => {
    const streaming = [...transcript.inFlight.values()].flatMap(({ parts }) => parts.map(({ text }) => text)).at(-1)
    const said = [...transcript.path.items].flatMap((item) =>
      item.type === 'assistant' ? item.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
    )
    return streaming ?? said.at(-1) ?? ''
  }

  test('a client of one steers, answers and watches a session that another one runs', async () => {
    const at = await home('ask')
    at.provider.script(
      call({ id: 'call-1', name: 'write', input: { path: 'a.txt', content: 'a' } }),
      sayAndWait(['Half ', 'an answer '], 'go', ['and the rest.']),
      say('Another one.'),
    )
    const [first, second] = [await start(at, 'first'), await start(at, 'second')]
    const { id } = (await first.ask('/api/sessions', { cwd: at.cwd, prompt: 'First' })) as { id: string }
    const there = await client(second, id)
    await vi.waitFor(() => expect(there.state('permissions')).toHaveLength(1), patiently)
    const requestId = there.state('permissions')?.[0]?.requestId ?? ''
    await there.run('permission.answer', { request_id: requestId, outcome: 'allowed' })
    await vi.waitFor(() => expect(lastWords(there)).toBe('Half an answer '), patiently)
    const late = await client(second, id)
    await vi.waitFor(() => expect(lastWords(late)).toBe('Half an answer '), patiently)
    at.provider.release('go')
    await vi.waitFor(() => expect(lastWords(there)).toBe('Half an answer and the rest.'), patiently)
    expect(await there.ask('Second')).toMatchObject({ outcome: 'completed', text: 'Another one.' })
    const owner = await database.admin(
      `select n.host from tapetree.session s join tapetree.node n on n.id = s.node where s.id = '${id}'`,
      'sessions',
    )
    expect(owner).toEqual([{ host: 'first' }])
    for (const served of [first, second]) expect((await served.stop()).code).toBe(0)
  })

  test('without NATS they connect to each other, also one that comes later', async () => {
    const at = await home('auto')
    at.provider.script(sayAndWait(['Half ', 'an answer '], 'go', ['and the rest.']), say('Another one.'))
    const [first, second] = [await startRelay(at, 'first'), await startRelay(at, 'second')]
    const { id } = (await first.ask('/api/sessions', { cwd: at.cwd })) as { id: string }
    const here = await client(first, id)
    const there = await client(second, id)
    const asked = here.ask('First')
    await vi.waitFor(() => expect(lastWords(there)).toBe('Half an answer '), patiently)
    const third = await startRelay(at, 'third')
    const late = await client(third, id)
    await vi.waitFor(() => expect(lastWords(late)).toBe('Half an answer '), patiently)
    await vi.waitFor(() => expect(here.state('presence')).toHaveLength(3), patiently)
    at.provider.release('go')
    expect(await asked).toMatchObject({ outcome: 'completed' })
    expect(await late.ask('Second')).toMatchObject({ outcome: 'completed', text: 'Another one.' })
    await vi.waitFor(() => expect(lastWords(there)).toBe('Another one.'), patiently)
    for (const served of [first, second, third]) expect((await served.stop()).code).toBe(0)
  })

  test('the door of the servers for each other admits nobody without the secret', async () => {
    const at = await home('auto')
    const served = await startRelay(at, 'first')
    const socket = new WebSocket(`${served.url.replace('http', 'ws')}/internal/bus`)
    const closed = once(socket, 'close')
    await once(socket, 'open')
    socket.send(JSON.stringify({ type: 'hello', from: 'stranger' }))
    await closed
    expect((await served.stop()).code).toBe(0)
  })

  test('if the owner is killed, a command of a client of another one is carried out there, once', async () => {
    const at = await home('auto')
    at.provider.script(say('One.'), say('Two.'))
    const [first, second] = [await start(at, 'first'), await start(at, 'second')]
    const { id } = (await first.ask('/api/sessions', { cwd: at.cwd })) as { id: string }
    const here = await client(first, id)
    const there = await client(second, id)
    expect(await here.ask('First')).toMatchObject({ text: 'One.' })
    await vi.waitFor(() => expect(lastWords(there)).toBe('One.'), patiently)
    first.child.process.kill('SIGKILL')
    expect(await there.ask('Second')).toMatchObject({ outcome: 'completed', text: 'Two.' })
    const lines = await database.admin(
      `select line from tapetree.entry e join tapetree.session s on s.key = e.key where s.id = '${id}' order by n`,
      'sessions',
    )
    expect(
      lines
        .map(({ line }) => String(line))
        .join('\n')
        .split('"content":"Second"'),
    ).toHaveLength(2)
    expect((await second.stop()).code).toBe(0)
  })

  test('without the bus, lines still arrive, and what was lost is made good when it is back', async () => {
    const at = await home('auto')
    at.provider.script(say('One.'), say('Two.'))
    const [first, second] = [await start(at, 'first'), await start(at, 'second')]
    const { id } = (await first.ask('/api/sessions', { cwd: at.cwd })) as { id: string }
    const here = await client(first, id)
    const there = await client(second, id)
    await vi.waitFor(() => expect(there.state('presence')).toHaveLength(2), patiently)
    await nats.stop()
    expect(await here.ask('First')).toMatchObject({ text: 'One.' })
    await vi.waitFor(() => expect(lastWords(there)).toBe('One.'), patiently)
    // Its link to the owner is lost.
    await vi.waitFor(() => expect(there.state('presence')).toHaveLength(1), patiently)
    await nats.resume()
    await vi.waitFor(() => expect(there.state('presence')).toHaveLength(2), patiently)
    await nats.stop()
    const asked = there.ask('Second')
    await nats.resume()
    expect(await asked).toMatchObject({ outcome: 'completed', text: 'Two.' })
    await vi.waitFor(() => expect(there.state('presence')).toHaveLength(2), patiently)
    for (const served of [first, second]) expect((await served.stop()).code).toBe(0)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
