// A server that shuts down while an agent works, and the one started after it.
import { onlyModel, allowAll } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { agentSessions } from './drivers/agent-sessions.ts'
import type { LiveSessions } from './live/live-sessions.ts'
import { startServer, type SocketServer } from './server.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

interface Running {
  server: SocketServer
  sessions: LiveSessions
  model: ReturnType<typeof scriptedModel>
}

async function start(folder: string, says: ScriptBuilder): Promise<Running> {
  const store = openFileStore({ folder: join(folder, 'sessions') })
  cleanUps.push(() => store.close())
  const model = scriptedModel(says, { clock: systemClock })
  const models = onlyModel(model)
  const tools = (): ReturnType<typeof model.tool>[] => [model.tool('act')]
  const sessions = agentSessions({ store, models, tools, gate: () => allowAll, hasSubagents: false })
  const server = await startServer({
    tenants: new Map([['default', sessions]]),
    port: null,
    unixSocket: join(folder, 'door'),
    recovery: 'resume',
  })
  cleanUps.push(() => server.close())
  return { server, sessions, model }
}

async function attach(folder: string, sessionId: string): Promise<{ frames: unknown[]; closed: Promise<number> }> {
  const createConnection = (): Socket => connect(join(folder, 'door'))
  const socket = new WebSocket(`ws://localhost/api/sessions/${sessionId}/ws`, ['tapetree.v1'], { createConnection })
  const frames: unknown[] = []
  socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString('utf8'))))
  const closed = once(socket, 'close').then(([code]) => code as number)
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'attach', data: { client: { id: 'me', name: 'me', kind: 'test' } } }))
  return { frames, closed }
}

async function typesIn({ store }: LiveSessions, sessionId: string): Promise<string[]> {
  await using session = await store.open(sessionId, { readOnly: true })
  const found: string[] = []
  for await (const stored of session.lines()) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type === 'message') found.push(line.message.role)
    else if (line.type === 'run_end') found.push(`run_end ${line.runEnd.outcome}`)
    else if (/^(run_start|attempt|tool_start)$/.test(line.type)) found.push(line.type)
  }
  return found
}

test('a run that is open when its server shuts down is finished by the next one, and nothing happens twice', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'restart-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  const first = await start(folder, script().toolCall('1', 'act').step().text('half ').wait(3_600_000).text('never'))
  const sessionId = await first.sessions.create({ cwd: folder })
  const { frames, closed } = await attach(folder, sessionId)
  const live = await first.sessions.get(sessionId)
  await live.perform('c', 'me', { op: 'prompt', args: { text: 'go' } })
  await vi.waitFor(() => expect(JSON.stringify(frames)).toContain('half '), patiently)
  const before = performance.now()
  expect(await first.server.close()).toBe('in time')
  expect(performance.now() - before).toBeLessThan(5000)
  expect(await closed).toBe(1012)
  expect(frames.at(-1)).toMatchObject({ type: 'bye', data: { reason: 'the server is restarting' } })

  const second = await start(folder, script().text('whole'))
  await vi.waitFor(
    async () => expect((await typesIn(second.sessions, sessionId)).at(-1)).toBe('run_end completed'),
    patiently,
  )
  expect(await typesIn(second.sessions, sessionId)).toEqual([
    'user',
    'run_start',
    'assistant',
    'tool_start',
    'tool',
    'attempt',
    'run_start',
    'assistant',
    'run_end completed',
  ])
  expect([first.model.requests.length, second.model.requests.length]).toEqual([2, 1])
})
