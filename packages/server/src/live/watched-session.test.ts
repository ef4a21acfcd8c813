// Sessions that another process owns: a child process acts as a terminal, a server watches, screens connect to
// the server.
import { onlyModel, allowAll } from '@tapetree/agent'
import { RemoteSession } from '@tapetree/client'
import { script, scriptedModel } from '@tapetree/agent/testing'
import type { SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { TestServer } from '../testing/running-server.ts'
import { WireScreen } from '../testing/wire-screen.ts'
import type { Order } from './testing/owning-process.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Allows for a busy machine. */
const patiently = { timeout: 30_000 }

interface Owned {
  owner: ChildProcess
  sessionId: string
  server: TestServer
  token: string
  order: (order: Order) => Promise<void>
  /** The log on disk. */
  log: () => string[]
}

async function owned(): Promise<Owned> {
  const folder = await mkdtemp(join(tmpdir(), 'watched-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  const program = fileURLToPath(new URL('testing/owning-process.ts', import.meta.url))
  const owner = fork(program, [folder], { execArgv: ['-C', '@tapetree/source'] })
  cleanUps.push(() => owner.kill('SIGKILL'))
  const [{ sessionId }] = (await once(owner, 'message')) as [{ sessionId: string }]
  const store = openFileStore({ folder })
  cleanUps.push(() => store.close())
  const models = onlyModel(scriptedModel(script().text('From the server.')))
  const sessions = agentSessions({ store, models, tools: () => [], gate: () => allowAll, hasSubagents: false })
  const server = await TestServer.start(() => ({ sessions }))
  cleanUps.push(() => server.close())
  const order = async (wanted: Order): Promise<void> => {
    owner.send(wanted)
    await once(owner, 'message')
  }
  const log = (): string[] =>
    readFileSync(join(folder, sessionId, 'events.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
  return { owner, sessionId, server, token: await server.token('drive'), order, log }
}

function screenOf({ server, sessionId, token }: Owned, lines: string[]): WireScreen {
  const screen = new WireScreen({
    id: 'screen',
    url: `${server.server.url.replace('http', 'ws')}/api/sessions/${sessionId}/ws`,
    headers: { authorization: `Bearer ${token}` },
    watcher: { line: (_screen, { text }) => void lines.push(text) },
  })
  cleanUps.push(() => screen.cut())
  return screen
}

/** The lines received so far over server-sent events. */
async function streamOf({ server, sessionId, token }: Owned): Promise<string[]> {
  const lines: string[] = []
  const stop = new AbortController()
  cleanUps.push(() => stop.abort())
  const response = await fetch(`${server.server.url}/api/sessions/${sessionId}/events/stream`, {
    headers: { authorization: `Bearer ${token}` },
    signal: stop.signal,
  })
  expect(response.status).toBe(200)
  void (async () => {
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(chunk, { stream: true })
      const events = rest.split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1] ?? ''
        if (/^id: /m.test(event)) lines.push(data)
      }
    }
  })().catch(() => undefined)
  return lines
}

const say = (prompt: string, pauseMs = 1): Order => ({
  type: 'say',
  prompt,
  pieces: Array.from({ length: 20 }, (_, index) => `word ${index} `),
  pauseMs,
})

test('a session of another process is watched live, in order and without gaps or duplicates, and taken over when that process is killed', async () => {
  const place = await owned()
  const { owner, order, log, sessionId, server, token } = place
  const first = log().length
  const lines: string[] = []
  const screen = screenOf(place, lines)
  screen.connect()
  await screen.until(() => screen.isAttached)
  expect(screen.state.get('read_only')?.value).toMatchObject({ owner: { process: String(owner.pid) } })
  const streamed = await streamOf(place)

  await order(say('one'))
  await order(say('two'))
  await vi.waitFor(() => expect(lines).toEqual(log().slice(first)), patiently)
  await vi.waitFor(() => expect(streamed).toEqual(log().slice(first)), patiently)
  expect(screen.transcript.lastRun?.outcome).toBe('completed')

  screen.command('rename', { name: 'mine' }, 'c-1')
  expect(await screen.acked('c-1')).toMatchObject({
    ok: false,
    error: { type: 'session-owned', status: 409, owner: { process: String(owner.pid) } },
  })
  const details = await server.ask(`/api/sessions/${sessionId}`, { token })
  expect(details).toMatchObject({ status: 200, body: { id: sessionId, read_only: expect.stringContaining('writing') } })
  expect(await server.ask(`/api/sessions/${sessionId}/tree`, { token })).toMatchObject({ status: 200 })

  owner.send(say('three', 1000))
  await vi.waitFor(() => expect(screen.state.get('run')?.value).toMatchObject({ is_busy: true }), patiently)
  await vi.waitFor(() => expect(JSON.stringify([...screen.transcript.inFlight])).toContain('word 0'), patiently)
  owner.kill('SIGKILL')
  await once(owner, 'exit')
  await vi.waitFor(() => expect(screen.state.get('read_only')?.value).toBeNull(), patiently)
  expect(screen.state.get('run')?.value).toMatchObject({ is_busy: false, waiting_for: { type: 'resume' } })

  screen.command('rename', { name: 'ours' }, 'c-2')
  expect(await screen.acked('c-2')).toMatchObject({ ok: true })
  screen.command('prompt', { text: 'four' }, 'c-3')
  expect(await screen.acked('c-3')).toMatchObject({ ok: true })
  await vi.waitFor(() => expect(log().at(-1)).toContain('"run_end"'), patiently)
  await vi.waitFor(() => expect(lines).toEqual(log().slice(first)), patiently)
  await vi.waitFor(() => expect(streamed).toEqual(log().slice(first)), patiently)
  expect(screen.state.get('read_only')?.value).toBeNull()
  expect(screen.transcript.name).toBe('ours')
})

test('a remote session shows that it is read-only, and stays connected', async () => {
  const place = await owned()
  const { server, sessionId, token, order } = place
  const statuses: string[] = []
  await using remote = await RemoteSession.open({
    baseUrl: server.server.url,
    token,
    sessionId,
    connect: (url, protocols) => new WebSocket(url, protocols),
  })
  remote.subscribe(({ type }) => {
    if (type === 'status') statuses.push(remote.status.type)
  })
  await remote.ready
  expect(remote.state('read_only')?.reason).toContain('is writing this session')
  await expect(remote.prompt('hello')).rejects.toMatchObject({ problem: { type: 'session-owned', status: 409 } })
  await order({ type: 'leave' })
  await vi.waitFor(() => expect(remote.state('read_only')).toBeNull(), patiently)
  await remote.prompt('hello')
  await vi.waitFor(() => expect(remote.transcript.lastRun?.outcome).toBe('completed'), patiently)
  expect(statuses.filter((status) => status !== 'attached')).toEqual([])
})

test('the next line of a session of another process can be waited for', async () => {
  const place = await owned()
  const { order, log, sessionId, server, token } = place
  const screen = screenOf(place, [])
  screen.connect()
  await screen.until(() => screen.isAttached)
  const after = log().length
  const waiting = server.ask(`/api/sessions/${sessionId}/events?after=${after}&wait=30`, { token })
  // The request above waits when this one has been answered.
  await server.ask(`/api/sessions/${sessionId}/tree`, { token })
  await order(say('one'))
  const { status, body } = await waiting
  expect(status).toBe(200)
  expect((body as { events: { seq: number }[] }).events[0]?.seq).toBe(after + 1)
})

test('a watched session that is closed while a command takes it over is free once it is closed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'watched-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  // Each store stands for a process.
  const [owning, watching, next] = [1, 2, 3].map(() => openFileStore({ folder })) as [
    SessionStore,
    SessionStore,
    SessionStore,
  ]
  cleanUps.push(() => Promise.all([owning, watching, next].map((store) => store.close())))
  const created = await owning.create({ cwd: folder })
  const { id } = created
  await created.close()
  const models = onlyModel(scriptedModel([]))
  for (let turns = 0; turns < 60; turns++) {
    const owner = await owning.open(id)
    const sessions = agentSessions({
      store: watching,
      models,
      tools: () => [],
      gate: () => allowAll,
      hasSubagents: false,
    })
    const live = await sessions.get(id)
    expect(live.isWatched).toBe(true)
    await owner.close()
    const renamed = live.perform('c-1', 'me', { op: 'rename', args: { name: 'mine' } })
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    await sessions.release(id)
    await using free = await next.open(id)
    expect(free.readOnlyReason, `closed after ${turns} turns`).toBeUndefined()
    await renamed
    await sessions.close()
  }
})
