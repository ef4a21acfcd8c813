import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { RemoteSession } from '@tapetree/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { runCli } from '../../packages/cli/src/cli.ts'
import { runBundle } from '../../packages/cli/src/testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { testIo } from '../../packages/cli/src/testing/test-io.ts'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import { missingPostgres, PostgresServer } from '../../packages/session/src/testing/postgres-server.ts'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { serve, untilLine, type Served } from './served.ts'

if (missingPostgres !== undefined) console.log(missingPostgres)

/** A PNG of one pixel. */
const redDot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
)

describe.skipIf(missingPostgres !== undefined)('tapetree with a PostgreSQL store', () => {
  let server: PostgresServer
  let url: string

  beforeAll(async () => {
    server = await PostgresServer.start()
    await server.admin('create database sessions')
    await migratePostgres(server.urlFor('admin', 'sessions'))
    await server.admin('create role app login in role tapetree_app')
    url = server.urlFor('app', 'sessions')
  })

  afterAll(() => server.remove())

  async function home(): Promise<FakeHome> {
    const made = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
    onTestFinished(() => made[Symbol.asyncDispose]())
    return made
  }

  async function run(at: FakeHome, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const io = testIo({ cwd: at.cwd, home: at.home, env: at.env })
    const code = await runCli(args, io)
    return { code, out: io.out(), err: io.err() }
  }

  /** What doctor says about the store. */
  async function storeCheck(at: FakeHome, ...args: string[]): Promise<unknown> {
    const { out } = await run(at, 'doctor', '--json', ...args)
    return (JSON.parse(out) as { checks: { name: string }[] }).checks.find(({ name }) => name === 'store')
  }

  const linesOf = async (id: string): Promise<string[]> => {
    const rows = await server.admin(
      `select line from tapetree.entry e join tapetree.session s on s.key = e.key where s.id = '${id}' order by n`,
      'sessions',
    )
    return rows.map(({ line }) => String(line))
  }

  const method = (served: Served, name: string, path: string): Promise<Response> =>
    fetch(new URL(path, served.url), { method: name, headers: { authorization: `Bearer ${served.token}` } })

  test('the schema is created by a command, and doctor and serve say what is missing', async () => {
    const at = await home()
    await server.admin('create database fresh')
    const admin = server.urlFor('admin', 'fresh')
    expect(await storeCheck(at)).toBeUndefined()
    expect(await storeCheck(at, '--store', admin)).toMatchObject({ status: 'failed', says: /version 0 of the schema/ })
    const refused = await run(at, 'serve', '--store', admin)
    expect([refused.code, refused.err]).toEqual([3, expect.stringContaining('is missing or too old')])
    expect((await run(at, 'store', 'migrate', admin)).err).toMatch(/now has version \d+ of the schema/)
    expect((await run(at, 'store', 'migrate', admin)).err).toMatch(/already had version \d+ of the schema/)
    expect((await run(at, 'store', 'migrate')).code).toBe(2)
    expect((await run(at, 'store', 'migrate', server.urlFor('nobody', 'fresh'))).err).toContain('could not be changed')
    const check = { status: 'ok', says: /is reachable \(PostgreSQL 15[\d.]*\), with version \d+ of the schema/ }
    expect(await storeCheck(at, '--store', server.urlFor('app', 'fresh'))).toMatchObject(check)
    const unreachable = await run(at, 'serve', '--store', 'postgres://app@127.0.0.1:1/sessions')
    expect([unreachable.code, unreachable.err]).toEqual([3, expect.stringContaining('ECONNREFUSED')])
    expect((await run(at, 'serve', '--store', 'postgres://app:hidden-word@localhost/x')).err).toContain(
      'has a password',
    )
  })

  test('a server over a database lists, searches, forks, archives and erases, and keeps files of the node apart', async () => {
    const at = await home()
    at.provider.script(
      call({ id: 'call-1', name: 'write', input: { path: 'notes.txt', content: 'leeks and potatoes\n'.repeat(5000) } }),
      say('The soup is ready.'),
    )
    const served = await serve(at, '--store', url, '--root', at.cwd)
    const { id } = (await served.ask('/api/sessions', { cwd: at.cwd, prompt: 'Cook a soup' })) as { id: string }
    await untilLine(served, id, { type: 'run_end' })
    expect(await served.ask('/api/sessions')).toMatchObject({ sessions: [{ id, status: 'idle' }] })
    expect(await served.ask('/api/search?q=soup')).toMatchObject({ hits: [{ session_id: id }, { session_id: id }] })
    expect(await served.ask(`/api/sessions/${id}/context`)).toMatchObject({ messages: expect.any(Array) })

    const [, sha256 = ''] = /"sha256_after":"([\da-f]{64})"/.exec((await linesOf(id)).join('')) ?? []
    const blob = await method(served, 'GET', `/api/sessions/${id}/blobs/${sha256}`)
    expect(await blob.text()).toBe('leeks and potatoes\n'.repeat(5000))

    const fork = (await served.ask(`/api/sessions/${id}/fork`, {})) as { id: string }
    expect(await served.ask(`/api/sessions/${fork.id}/tree`)).toMatchObject({ nodes: expect.any(Array) })
    await served.ask(`/api/sessions/${fork.id}/archive`, {})
    expect(await served.ask('/api/sessions?place=archive')).toMatchObject({ sessions: [{ id: fork.id }] })
    await served.ask(`/api/sessions/${fork.id}/unarchive`, {})

    expect(await readdir(join(at.env['TAPETREE_HOME'] ?? '', 'sessions')).catch(() => [])).toEqual([])
    const nodes = join(at.env['TAPETREE_HOME'] ?? '', 'nodes')
    const [node = ''] = await readdir(nodes)
    expect(await readdir(join(nodes, node, 'sessions'))).toContain(id)
    expect((await method(served, 'DELETE', `/api/sessions/${id}?erase=true`)).ok).toBe(true)
    expect(await linesOf(id)).toEqual([])
    expect(await readdir(join(nodes, node, 'sessions'))).not.toContain(id)
    expect((await served.stop()).code).toBe(0)
  })

  test('images, queued messages, background commands and rewinds of files work over a database', async () => {
    const at = await home()
    at.provider.script(
      sayAndWait(['A red dot', '.'], 'dot', []),
      call(
        { id: 'call-1', name: 'write', input: { path: 'notes.txt', content: 'first' } },
        { id: 'call-2', name: 'bash', input: { command: 'echo started; sleep 600', background: true } },
      ),
      say('Written.'),
      call({ id: 'call-3', name: 'write', input: { path: 'notes.txt', content: 'second' } }),
      say('Written again.'),
    )
    const served = await serve(at, '--store', url, '--root', at.cwd)
    const { id } = (await served.ask('/api/sessions', { cwd: at.cwd })) as { id: string }
    const path = `/api/sessions/${id}`
    const upload = await fetch(new URL(`${path}/images`, served.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${served.token}`, 'content-type': 'image/png' },
      body: redDot,
    })
    const image = (await upload.json()) as { id: string }
    await using client = await RemoteSession.open({ baseUrl: served.url, token: served.token, sessionId: id })
    await client.prompt('What is this?', { imageIds: [image.id] })
    await untilLine(served, id, { type: 'run_start' })
    expect(await served.ask(`${path}/queue`, { message: 'Write the first note' })).toMatchObject({
      id: expect.any(String),
    })
    at.provider.release('dot')
    const first = await untilLine(served, id, {
      type: 'run_end',
      after: await untilLine(served, id, { type: 'run_end' }),
    })
    expect(JSON.stringify(at.provider.requests[0]?.body)).toContain(redDot.toString('base64'))
    expect(await readFile(join(at.cwd, 'notes.txt'), 'utf8')).toBe('first')
    const { jobs } = (await served.ask(`${path}/jobs`)) as { jobs: { id: string }[] }
    await vi.waitFor(async () =>
      expect(await served.ask(`${path}/jobs/${jobs[0]?.id}`)).toMatchObject({ output: 'started\n' }),
    )
    await served.ask(`${path}/jobs/${jobs[0]?.id}/stop`, {})

    await client.ask('Write the second note')
    expect(await readFile(join(at.cwd, 'notes.txt'), 'utf8')).toBe('second')
    const entry = (await linesOf(id)).map((line) => JSON.parse(line) as { seq: number; type: string; id: string })
    const target = entry.find(({ seq, type }) => seq > first && type === 'message')
    expect(await served.ask(`${path}/rewind`, { entry_id: target?.id, what: 'both' })).toMatchObject({
      text: 'Write the second note',
    })
    expect(await readFile(join(at.cwd, 'notes.txt'), 'utf8')).toBe('first')
    expect((await served.stop()).code).toBe(0)
  })

  test('a database that stops is waited for: every screen says so, and the run goes on', async () => {
    const at = await home()
    at.provider.script(sayAndWait(['Half ', 'an answer'], 'rest', [' and the rest.']))
    const served = await serve(at, '--store', url, '--root', at.cwd)
    const { id } = (await served.ask('/api/sessions', { cwd: at.cwd })) as { id: string }
    await using client = await RemoteSession.open({ baseUrl: served.url, token: served.token, sessionId: id })
    const waits: unknown[] = []
    client.subscribe((change) => {
      if (change.type === 'state' && change.key === 'run') waits.push(client.state('run')?.waitingFor?.type)
    })
    const answered = client.ask('Go')
    await untilLine(served, id, { type: 'run_start' })
    await server.stop('SIGQUIT')
    at.provider.release('rest')
    await vi.waitFor(() => expect(waits).toContain('storage'))
    await server.resume()
    expect(await answered).toMatchObject({ outcome: 'completed', text: 'Half an answer and the rest.' })
    await vi.waitFor(() => expect(client.state('run')).toMatchObject({ isBusy: false, waitingFor: null }))
    expect((await linesOf(id)).filter((line) => line.includes('Half an answer and the rest.'))).toHaveLength(1)
    expect((await served.stop()).code).toBe(0)
  })

  test('a session whose server is killed goes on with neither gap nor double', async () => {
    const at = await home()
    at.provider.script(
      call({ id: 'call-1', name: 'write', input: { path: 'a.txt', content: 'a' } }),
      sayAndWait(['Half ', 'an answer '], 'never', ['.']),
      say('The whole answer.'),
      say('Another one.'),
    )
    const args = ['--store', url, '--root', at.cwd]
    const first = await serve(at, ...args)
    const { id } = (await first.ask('/api/sessions', { cwd: at.cwd })) as { id: string }
    await using client = await RemoteSession.open({ baseUrl: first.url, token: first.token, sessionId: id })
    const answered = client.ask('First')
    await untilStreamed(at, id, 'Half')
    const before = await linesOf(id)
    await killed(first)

    // The client comes back by itself.
    const second = await serve(at, ...args, '--port', new URL(first.url).port)
    expect(await answered).toMatchObject({ outcome: 'completed', text: 'The whole answer.' })
    expect(await client.ask('Second')).toMatchObject({ outcome: 'completed', text: 'Another one.' })
    await client.close()
    expect((await second.stop()).code).toBe(0)

    const after = await linesOf(id)
    expect(after.slice(0, before.length)).toEqual(before)
    const lines = after.map((line) => JSON.parse(line) as { seq: number; type: string; id: string })
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => index + 1))
    expect(new Set(lines.map((line) => line.id)).size).toBe(lines.length)
    const text = after.join('\n')
    for (const said of ['First', 'Second', 'The whole answer.', 'Another one.']) {
      expect(text.split(`"content":"${said}"`)).toHaveLength(2)
    }
    expect(lines.filter(({ type }) => type === 'tool_start')).toHaveLength(1)
  })

  test.each([
    { ends: 'is killed', end: killed },
    { ends: 'is stopped', end: stopped },
  ])('a run whose server $ends goes on at another server, in front of those who watched it there', async ({ end }) => {
    const at = await home()
    at.provider.script(
      call({ id: 'call-1', name: 'write', input: { path: 'a.txt', content: 'a' } }),
      sayAndWait(['Half ', 'an answer '], 'never', ['.']),
      say('The whole answer.'),
      say('Another one.'),
    )
    const args = ['--store', url, '--root', at.cwd]
    const [first, second] = [await serve(at, ...args), await serve(at, ...args)]
    const { id } = (await first.ask('/api/sessions', { cwd: at.cwd, prompt: 'First' })) as { id: string }
    await untilStreamed(at, id, 'Half')
    await using watcher = await RemoteSession.open({ baseUrl: second.url, token: second.token, sessionId: id })
    await vi.waitFor(() => expect(watcher.state('run')).toMatchObject({ runId: expect.any(String) }), {
      timeout: 20_000,
    })
    const before = await linesOf(id)
    await end(first)
    await untilLine(second, id, { type: 'run_end' })
    expect(await watcher.ask('Second')).toMatchObject({ outcome: 'completed', text: 'Another one.' })
    expect((await second.stop()).code).toBe(0)
    const after = await linesOf(id)
    expect(after.slice(0, before.length)).toEqual(before)
    const lines = after.map((line) => JSON.parse(line) as { seq: number; type: string })
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => index + 1))
    expect(lines.filter(({ type }) => ['tool_start', 'run_end'].includes(type)).map(({ type }) => type)).toEqual([
      'tool_start',
      'run_end',
      'run_end',
    ])
    expect(after.join('\n').split('"content":"The whole answer."')).toHaveLength(2)
  })

  /** The partial answer is in a folder of the node, where a restart finds it. */
  async function untilStreamed(at: FakeHome, id: string, words: string): Promise<void> {
    const nodes = join(at.env['TAPETREE_HOME'] ?? '', 'nodes')
    for (let text = ''; !text.includes(words); await pause(20)) {
      const [node = ''] = await readdir(nodes)
      text = await readFile(join(nodes, node, 'sessions', id, 'draft.jsonl'), 'utf8').catch(() => '')
    }
  }

  test('servers of one database accept the same tokens and pairing codes, until they are revoked', async () => {
    const at = await home()
    const args = ['--store', url, '--root', at.cwd]
    const [first, second] = [await serve(at, ...args), await serve(at, ...args)]
    const statusOf = async (served: Served, token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(new URL('/api/sessions', served.url), { headers })).status
    }
    // Each knows the tokens of the other within a second. Ten wrong ones in a minute would be too many.
    const patiently = { timeout: 10_000, interval: 700 }
    await vi.waitFor(async () => expect(await statusOf(second, first.token)).toBe(200), patiently)
    await vi.waitFor(async () => expect(await statusOf(first, second.token)).toBe(200), patiently)
    const made = await run(at, 'tokens', 'create', '--role', 'view', '--store', url, '--json')
    const { id, token } = JSON.parse(made.out) as { id: string; token: string }
    for (const served of [first, second]) {
      await vi.waitFor(async () => expect(await statusOf(served, token)).toBe(200), patiently)
    }
    expect((await run(at, 'tokens', 'list', '--store', url)).out).toContain(id)
    expect((await run(at, 'tokens', 'list')).out).not.toContain(id)
    const begun = (await first.ask('/api/pairing', { role: 'view' })) as { code: string }
    const exchange = (served: Served): Promise<Response> =>
      fetch(new URL('/api/pair', served.url), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code: begun.code }),
      })
    const statuses = await Promise.all([exchange(first), exchange(second)])
    expect(statuses.filter(({ ok }) => ok)).toHaveLength(1)
    expect((await run(at, 'tokens', 'revoke', id, '--store', url)).out).toContain(id)
    for (const served of [first, second]) {
      await vi.waitFor(async () => expect(await statusOf(served, token)).toBe(401), patiently)
      expect((await served.stop()).code).toBe(0)
    }
  })

  test('a password from the environment or a file shows in no process list, log or error', async () => {
    const at = await home()
    const secret = url.replace('app@', 'app:hidden-word@')
    const file = join(at.cwd, 'store')
    await writeFile(file, secret, { mode: 0o600 })
    for (const store of [secret, `@${file}`]) {
      const served = await serve({ ...at, env: { ...at.env, TAPETREE_STORE: store } }, '--log-level', 'debug')
      expect(await served.ask('/api/sessions')).toMatchObject({ sessions: expect.any(Array) })
      expect(await readFile(`/proc/${served.child.process.pid}/cmdline`, 'utf8')).not.toContain('hidden-word')
      const { code, log } = await served.stop()
      expect(code).toBe(0)
      expect(log).not.toContain('hidden-word')
    }
    const gone = { ...at, env: { ...at.env, TAPETREE_STORE: 'postgres://app:hidden-word@127.0.0.1:1/x' } }
    for (const args of [['serve'], ['doctor', '--json'], ['store', 'migrate']]) {
      const { out, err } = await run(gone, ...args)
      expect(out + err).toContain('postgres://app@127.0.0.1:1/x')
      expect(out + err).not.toContain('hidden-word')
    }
  })

  test('sessions are copied between the user, a database and a folder by the command', async () => {
    const at = await home()
    at.provider.script(say('Hello.'))
    const served = await serve(at, '--root', at.cwd)
    const { id } = (await served.ask('/api/sessions', { cwd: at.cwd, prompt: 'Hi' })) as { id: string }
    await untilLine(served, id, { type: 'run_end' })
    expect((await served.stop()).code).toBe(0)
    // The bundle has the client of the database inside.
    const copied = await runBundle(at, ['sessions', 'copy', '--all', '--to', url])
    expect(copied.stderr).toContain('Copied 1 session to postgres://')
    expect((await run(at, 'sessions', 'copy', '--all', '--to', url)).err).toContain('1 was there already')
    expect((await run(at, 'sessions', 'copy', id, '--from', url, '--to', 'back')).code).toBe(0)
    const own = await readFile(join(at.env['TAPETREE_HOME'] ?? '', 'sessions', id, 'events.jsonl'), 'utf8')
    expect(await readFile(join(at.cwd, 'back', id, 'events.jsonl'), 'utf8')).toBe(own)
    expect(`${(await linesOf(id)).join('\n')}\n`).toBe(own)
  })
})

async function killed({ child }: Served): Promise<void> {
  child.process.kill('SIGKILL')
  await child.ended
}

async function stopped(served: Served): Promise<void> {
  expect((await served.stop()).code).toBe(0)
}
