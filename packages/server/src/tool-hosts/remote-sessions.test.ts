import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@tapetree/agent/run'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { ToolHost } from '@tapetree/agent/tool-host'
import { memoryStore } from '@tapetree/session'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCodingSession, openCodingDriver } from '../drivers/coding-driver.ts'
import type { LiveSession } from '../live/live-session.ts'
import { LiveSessions } from '../live/live-sessions.ts'
import { TestServer } from '../testing/running-server.ts'
import { connectHost } from './testing/connect-host.ts'
import { ToolHosts } from './tool-hosts.ts'

const patiently = { timeout: 20_000 }
let root: string
let folder: string
let hosts: ToolHosts
const cleanUps: (() => unknown)[] = []

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'remote-sessions-')))
  folder = join(root, 'project')
  mkdirSync(folder)
  mkdirSync(join(root, 'server'))
  hosts = new ToolHosts()
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  rmSync(root, { recursive: true, force: true })
})

async function openHost(name = 'laptop', at = folder): Promise<ToolHost> {
  const host = await ToolHost.open({ dataFolder: join(root, name), name, workspaces: { app: at }, mode: 'auto' })
  cleanUps.push(() => host.close())
  return host
}

function openSessions(says: ScriptBuilder): LiveSessions {
  const store = memoryStore()
  const models = scriptedModel(says, { clock: systemClock })
  const env = { PATH: process.env['PATH'] }
  const sessions = new LiveSessions({
    store,
    create: (options) => createCodingSession(store, options),
    openDriver: (id) =>
      openCodingDriver(id, {
        store,
        home: join(root, 'home'),
        env,
        models,
        flags: { permissions: { mode: 'auto' } },
        workspaces: hosts.of('default'),
      }),
  })
  cleanUps.push(() => sessions.close())
  return sessions
}

const referenceOf = (host: ToolHost): NonNullable<Parameters<LiveSessions['create']>[0]['workspace']> => {
  const { id: hostId, name: hostName, platform } = host.hello
  return { name: 'app', hostId, hostName, folder, platform }
}

async function results(live: LiveSession): Promise<string[]> {
  const { messages } = await live.session.getContext()
  return messages.flatMap(({ message: { content } }) =>
    content.flatMap((block) => (block.type === 'tool_result' ? [JSON.stringify(block.toolResult.content)] : [])),
  )
}

const untilIdle = (live: LiveSession): Promise<void> =>
  vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)

describe('a session whose tools work on a tool host', () => {
  test('works in the folder of the host, with its instructions', async () => {
    writeFileSync(join(folder, 'AGENTS.md'), 'Always say please.')
    writeFileSync(join(root, 'server', 'AGENTS.md'), 'Never say please.')
    const host = await openHost()
    connectHost(host, hosts)
    const model = scriptedModel(script().toolCall('1', 'bash', { command: 'pwd' }).step().text('done'), {
      clock: systemClock,
    })
    const store = memoryStore()
    const sessions = new LiveSessions({
      store,
      create: (options) => createCodingSession(store, options),
      openDriver: (id) =>
        openCodingDriver(id, {
          ...{ store, home: join(root, 'home'), env: {}, models: model, workspaces: hosts.of('default') },
          flags: { permissions: { mode: 'auto' } },
        }),
    })
    cleanUps.push(() => sessions.close())
    const live = await sessions.get(await sessions.create({ cwd: join(root, 'server'), workspace: referenceOf(host) }))
    expect(live.board.get('config')).toMatchObject({ workspace: { name: 'app', host: 'laptop', folder } })
    await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' } })
    await untilIdle(live)
    expect(await results(live)).toEqual([expect.stringContaining(folder)])
    const said = JSON.stringify(model.requests[0])
    expect(said).toContain(`Working folder: ${folder}`)
    expect(said).toContain('Always say please.')
    expect(said).not.toContain('Never say please.')
    expect(await live.perform('2', 'me', { op: 'bash', args: { command: 'pwd; exit 3' } })).toMatchObject({
      result: { exit_code: 3 },
    })
  })

  test('says on every screen that its host is away, and continues when it is back', async () => {
    const host = await openHost()
    const sessions = openSessions(script().toolCall('1', 'bash', { command: 'echo here' }).step().text('done'))
    const live = await sessions.get(await sessions.create({ cwd: join(root, 'server'), workspace: referenceOf(host) }))
    const away = 'The tool host laptop cannot be reached.'
    expect(live.board.get('config')).toMatchObject({ workspace: { problem: away } })
    expect(await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' } })).toMatchObject({
      result: { outcome: 'queued' },
    })
    expect(live.board.get('run')).toMatchObject({ waiting_for: { type: 'tool_host', reason: away } })
    connectHost(host, hosts)
    await vi.waitFor(() => expect(live.board.get('run')?.waiting_for).toBeNull(), patiently)
    await untilIdle(live)
    expect(await results(live)).toEqual([expect.stringContaining('here')])
    expect(live.board.get('config')?.workspace).not.toHaveProperty('problem')
  })

  test('goes on with its files on another host when the first one has died', async () => {
    const host = await openHost()
    const cut = connectHost(host, hosts)
    const sessions = openSessions(
      script()
        .toolCall('1', 'bash', { command: 'echo one > a.txt' })
        .step()
        .text('done')
        .step()
        .toolCall('2', 'bash', { command: 'cat a.txt' })
        .step()
        .text('done'),
    )
    const live = await sessions.get(await sessions.create({ cwd: join(root, 'server'), workspace: referenceOf(host) }))
    await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' } })
    await vi.waitFor(() => expect(live.session.workspaceFiles).toBeDefined(), patiently)
    cut()
    await live.perform('2', 'me', { op: 'prompt', args: { text: 'go on' } })
    const empty = join(root, 'empty')
    mkdirSync(empty)
    connectHost(await openHost('other', empty), hosts)
    const set = { op: 'set_workspace', args: { host: 'other', workspace: 'app', recreate: true } }
    expect(await live.perform('3', 'me', set)).toMatchObject({ ok: true, result: { folder: empty } })
    await vi.waitFor(async () => expect((await results(live)).at(-1)).toContain('one'), patiently)
    await untilIdle(live)
    const { messages } = await live.session.getContext()
    expect(JSON.stringify(messages)).toContain(`The folder of this session is now ${empty} on other.`)
    const again = { op: 'set_workspace', args: { host: 'other', workspace: 'app', recreate: true } }
    expect(await live.perform('4', 'me', again)).toMatchObject({ error: { type: 'files-not-recreated' } })
  })

  test('stays with its host if a run begins while its files are being recreated on another one', async () => {
    const host = await openHost()
    connectHost(host, hosts)
    const command = 'until test -e go; do sleep 0.02; done; echo done here'
    const sessions = openSessions(
      script()
        .toolCall('1', 'bash', { command: 'echo one > a.txt' })
        .step()
        .text('done')
        .step()
        .toolCall('2', 'bash', { command })
        .step()
        .text('done'),
    )
    const live = await sessions.get(await sessions.create({ cwd: join(root, 'server'), workspace: referenceOf(host) }))
    await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' } })
    await vi.waitFor(() => expect(live.session.workspaceFiles).toBeDefined(), patiently)
    await untilIdle(live)
    const empty = join(root, 'empty')
    mkdirSync(empty)
    const other = await openHost('other', empty)
    connectHost(other, hosts)
    const prompted = Promise.withResolvers<unknown>()
    hosts.channel('default', other.hello.id).subscribe((event) => {
      if (event.type !== 'message' || event.message.type !== 'part') return
      prompted.resolve(live.perform('2', 'me', { op: 'prompt', args: { text: 'go on' } }))
    })
    const set = { op: 'set_workspace', args: { host: 'other', workspace: 'app', recreate: true } }
    expect(await live.perform('3', 'me', set)).toMatchObject({
      error: { type: 'session-busy', detail: expect.stringContaining(`Its files are in ${empty} on other already`) },
    })
    expect(await prompted.promise).toMatchObject({ result: { outcome: 'started' } })
    writeFileSync(join(folder, 'go'), '')
    await untilIdle(live)
    expect((await results(live)).at(-1)).toContain('done here')
    expect(live.board.get('config')).toMatchObject({ workspace: { host: 'laptop' } })
  })

  test('can be attached to a host later, and screens stay connected', async () => {
    const host = await openHost()
    connectHost(host, hosts)
    const sessions = openSessions(script().toolCall('1', 'bash', { command: 'pwd' }).step().text('done'))
    const live = await sessions.get(await sessions.create({ cwd: join(root, 'server') }))
    const frames: string[] = []
    const request = { client: { id: 'screen', kind: 'test' } }
    const prepared = await live.prepare(request)
    const sink = { buffered: 0, send: (frame: Buffer) => frames.push(frame.toString()), close: () => undefined }
    const connection = live.attach(request, sink, prepared)
    expect(connection).not.toBe('not-prepared')
    const set = { op: 'set_workspace', args: { host: 'laptop', workspace: 'app' } }
    expect(await live.perform('1', 'me', set)).toMatchObject({ ok: true, result: { host: 'laptop', folder } })
    expect(await live.perform('1', 'me', set)).toMatchObject({ ok: true, dup: true })
    expect(live.board.get('config')).toMatchObject({ workspace: { name: 'app', host: 'laptop', folder } })
    await live.perform('2', 'me', { op: 'prompt', args: { text: 'go' } })
    await untilIdle(live)
    expect(await results(live)).toEqual([expect.stringContaining(folder)])
    await vi.waitFor(() => expect(frames.join('')).toContain('"type":"run_end"'), patiently)
    expect(live.connections.size).toBe(1)
    const missing = { op: 'set_workspace', args: { host: 'phone', workspace: 'app' } }
    expect(await live.perform('3', 'me', missing)).toMatchObject({ ok: false, error: { type: 'tool-host-not-found' } })
    const unknown = { op: 'set_workspace', args: { host: host.hello.id, workspace: 'x' } }
    expect(await live.perform('4', 'me', unknown)).toMatchObject({ ok: false, error: { type: 'workspace-not-found' } })
  })

  test('moves to another host when its own has died: open calls have an unknown outcome, and the run continues there', async () => {
    const [dead, next] = [await openHost('dead'), await openHost('next')]
    const cut = connectHost(dead, hosts)
    connectHost(next, hosts)
    const sessions = openSessions(
      script()
        .toolCall('1', 'bash', { command: 'echo x >> ledger; sleep 600' })
        .step()
        .toolCall('2', 'bash', { command: 'echo y >> ledger' })
        .step()
        .text('done'),
    )
    const live = await sessions.get(await sessions.create({ cwd: join(root, 'server'), workspace: referenceOf(dead) }))
    await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' } })
    await expect.poll(() => dead.running, patiently).toBe(1)
    await expect.poll(() => readIfThere(join(folder, 'ledger')), patiently).toBe('x\n')
    const set = { op: 'set_workspace', args: { host: 'next', workspace: 'app' } }
    expect(await live.perform('2', 'me', set)).toMatchObject({ ok: false, error: { type: 'session-busy' } })
    cut()
    await expect.poll(() => live.board.get('run')?.waiting_for, patiently).toMatchObject({ type: 'tool_host' })
    expect(await live.perform('3', 'me', set)).toMatchObject({ ok: true })
    await untilIdle(live)
    expect(await results(live)).toEqual([expect.stringContaining('outcome is unknown'), expect.any(String)])
    expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\ny\n')
    expect(live.session.openRun).toBeNull()
  })

  test('is told the place that it uses already: nothing happens, also during a run', async () => {
    const host = await openHost()
    connectHost(host, hosts)
    const sessions = openSessions(
      script().toolCall('1', 'bash', { command: 'echo x >> ledger; sleep 600' }).step().text('done'),
    )
    const live = await sessions.get(await sessions.create({ cwd: join(root, 'server'), workspace: referenceOf(host) }))
    await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' } })
    await expect.poll(() => readIfThere(join(folder, 'ledger')), patiently).toBe('x\n')
    const { driver } = live
    const { seq } = live.session.head
    const set = { op: 'set_workspace', args: { host: host.hello.id, workspace: 'app' } }
    expect(await live.perform('2', 'me', set)).toMatchObject({
      ok: true,
      result: { host: 'laptop', workspace: 'app', folder },
    })
    expect(live.driver).toBe(driver)
    expect(live.session.head.seq).toBe(seq)
    expect([live.driver.isBusy, host.running]).toEqual([true, 1])
    await live.perform('3', 'me', { op: 'cancel', args: {} })
    await untilIdle(live)
    expect(readIfThere(join(folder, 'ledger'))).toBe('x\n')
  })

  test('cannot be opened by a process without tool hosts, and says why', async () => {
    const host = await openHost()
    const store = memoryStore()
    const id = await createCodingSession(store, { cwd: join(root, 'server'), workspace: referenceOf(host) })
    await expect(openCodingDriver(id, { store, models: scriptedModel(script()) })).rejects.toMatchObject({
      problem: { type: 'no-tool-hosts', detail: expect.stringContaining('tool host laptop') },
    })
  })
})

test('tool hosts are listed and chosen by REST, but not with a token for one folder', async () => {
  const host = await openHost()
  connectHost(host, hosts)
  const sessions = openSessions(script().toolCall('1', 'bash', { command: 'pwd' }).step().text('done'))
  const server = await TestServer.start(() => ({
    sessions,
    toolHosts: hosts,
    api: { roots: () => [join(root, 'server')] },
  }))
  cleanUps.push(() => server.close())
  const token = await server.token('drive')
  const asked = await server.ask('/api/tool-hosts', { token })
  expect(asked).toMatchObject({
    status: 200,
    body: {
      tool_hosts: [
        { id: host.hello.id, name: 'laptop', workspaces: [{ name: 'app', folder, mode: 'auto', has_sandbox: false }] },
      ],
    },
  })
  const workspace = { host: 'laptop', workspace: 'app' }
  const made = await server.ask('/api/sessions', { method: 'POST', token, json: { workspace } })
  expect(made).toMatchObject({ status: 201 })
  const { id } = made.body as { id: string }
  const live = await sessions.get(id)
  expect(live.board.get('config')).toMatchObject({ workspace: { name: 'app', host: 'laptop', folder } })
  const again = await server.ask(`/api/sessions/${id}/workspace`, { method: 'PUT', token, json: workspace })
  expect(again).toMatchObject({ status: 200, body: { host: 'laptop', workspace: 'app', folder } })
  const { token: confined } = await server.tokens.create({
    tenant: 'default',
    role: 'drive',
    folder: join(root, 'server'),
  })
  for (const refused of [
    await server.ask('/api/tool-hosts', { token: confined }),
    await server.ask('/api/sessions', { method: 'POST', token: confined, json: { workspace } }),
    await server.ask(`/api/sessions/${id}/workspace`, { method: 'PUT', token: confined, json: workspace }),
  ]) {
    expect(refused).toMatchObject({ status: 403, body: { type: 'folder-only' } })
  }
})

test('REST says where the tools of a session work, and whether they can be used', async () => {
  const host = await openHost()
  const cut = connectHost(host, hosts)
  const sessions = openSessions(script())
  const api = { roots: () => [join(root, 'server')] }
  const server = await TestServer.start(() => ({ sessions, toolHosts: hosts, api }))
  cleanUps.push(() => server.close())
  const token = await server.token('drive')
  const workspace = { host: 'laptop', workspace: 'app' }
  const made = await server.ask('/api/sessions', { method: 'POST', token, json: { workspace } })
  const there = { name: 'app', host: 'laptop', folder }
  expect(made.body).toMatchObject({ workspace: there })
  const { id } = made.body as { id: string }
  const asked = async (): Promise<unknown> =>
    ((await server.ask(`/api/sessions/${id}`, { token })).body as { workspace?: unknown }).workspace
  const listed = async (): Promise<unknown> =>
    ((await server.ask('/api/sessions', { token })).body as { sessions: { workspace?: unknown }[] }).sessions[0]
      ?.workspace
  expect(await asked()).toEqual(there)
  const away = { ...there, problem: 'The tool host laptop cannot be reached.' }
  cut()
  expect(await asked()).toEqual(away)
  await sessions.get(id)
  expect(await asked()).toEqual(away)
  expect(await listed()).toEqual(away)
  connectHost(host, hosts)
  expect(await listed()).toEqual(there)
  const local = await server.ask('/api/sessions', { method: 'POST', token, json: {} })
  expect(local.body).not.toHaveProperty('workspace')
})

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
