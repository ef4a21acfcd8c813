import { onlyModel, allowAll } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { MemoryDisk } from '@tapetree/session/testing'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { agentSessions } from './drivers/agent-sessions.ts'
import { TestServer } from './testing/running-server.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

test('a disk that fills up during a run is reported by list, state and readiness, and all recover when there is room', async () => {
  const disk = new MemoryDisk()
  const fill = (): unknown => disk.failNth({ operation: 'write', nth: 1, times: 1_000_000, error: 'ENOSPC' })
  const store = openFileStore({ folder: '/store', port: disk, lock: disk.lock })
  const models = onlyModel(scriptedModel(script().text('half ').do(fill).text('never').step().text('Again.')))
  const sessions = agentSessions({ store, models, tools: () => [], gate: () => allowAll, hasSubagents: false })
  const server = await TestServer.start(() => ({ sessions }))
  cleanUps.push(() => server.close())
  const token = await server.token('drive')
  const id = await sessions.create({ cwd: '/' })
  const live = await sessions.get(id)
  expect(await server.ask('/api/ready')).toMatchObject({ status: 200 })

  await live.perform('c', 'me', { op: 'prompt', args: { text: 'go' } })
  await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
  const stopped = { type: 'storage-failed', reason: 'The disk is full.' }
  expect(live.board.get('run')).toMatchObject({ is_busy: false, stopped })
  expect(await server.ask('/api/sessions', { token })).toMatchObject({
    body: { sessions: [{ id, status: 'idle', stopped }] },
  })
  expect(await server.ask(`/api/sessions/${id}`, { token })).toMatchObject({ body: { status: 'idle', stopped } })
  await vi.waitFor(
    async () =>
      expect(await server.ask('/api/ready')).toMatchObject({ status: 503, body: { reason: 'The disk is full.' } }),
    patiently,
  )

  disk.clearFaults()
  await vi.waitFor(async () => expect(await server.ask('/api/ready')).toMatchObject({ status: 200 }), patiently)
  await live.perform('d', 'me', { op: 'prompt', args: { text: 'again' } })
  await vi.waitFor(() => expect(live.session.openRun).toBeNull(), patiently)
  const ends: unknown[] = []
  for await (const line of live.session.lines()) {
    const { run_end: end } = JSON.parse(line.type === 'line' ? line.text : '{}') as { run_end?: unknown }
    if (end) ends.push(end)
  }
  expect(ends).toMatchObject([{ outcome: 'abandoned', reason: 'storage-failed' }, { outcome: 'completed' }])
  expect(await server.ask('/api/sessions', { token })).not.toMatchObject({ body: { sessions: [{ stopped }] } })
})

test('a run whose process has ended is listed as interrupted, not as running', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'left-run-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  const owning = openFileStore({ folder })
  const session = await owning.create({ cwd: folder })
  await session.append({ type: 'run_start', runStart: { runId: 'r', leafId: null } })
  const store = openFileStore({ folder })
  cleanUps.push(() => store.close())
  expect((await store.list()).sessions).toMatchObject([{ id: session.id, status: 'running' }])
  const ownerFile = join(folder, session.id, 'owner.json')
  const owner = await readFile(ownerFile, 'utf8')
  await session.close()
  await owning.close()

  const interrupted = [{ id: session.id, status: 'idle', stopped: { type: 'interrupted' } }]
  expect((await store.list()).sessions).toMatchObject(interrupted)
  // As a killed process leaves it: with a process id that is unused, or was reused.
  await writeFile(ownerFile, owner.replace(/"process":"\d+"/, '"process":"99999999"'))
  expect((await store.list()).sessions).toMatchObject(interrupted)
  await writeFile(ownerFile, owner)
  expect((await store.list()).sessions).toMatchObject(interrupted)
  expect((await store.list({ status: 'running' })).sessions).toEqual([])
})
