import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '@tapetree/session'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import type { CallRequest } from './messages.ts'
import { RemoteJobs } from './remote-jobs.ts'
import { MemoryChannel } from './testing/memory-channel.ts'
import { ToolHost } from './tool-host.ts'

const patiently = { timeout: 20_000 }
let root: string
let folder: string
let host: ToolHost
let channel: MemoryChannel

beforeEach(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'remote-jobs-')))
  folder = join(root, 'project')
  mkdirSync(folder)
  await open()
})
afterEach(async () => {
  await host.close()
  await dismissSupervisor()
  rmSync(root, { recursive: true, force: true })
})

async function open(): Promise<void> {
  host = await ToolHost.open({ dataFolder: join(root, 'host'), workspaces: { app: folder }, mode: 'auto' })
  channel = new MemoryChannel()
  await connect()
}

async function connect(): Promise<void> {
  channel.connect(host)
  await expect.poll(() => channel.hello).toBeDefined()
}

/** Starts a command in the background. */
async function start(session: string, command: string): Promise<void> {
  const call: CallRequest = {
    ...{ type: 'call', id: newId(), session, run: newId(), call: 'call-1', workspace: 'app', tool: 'bash' },
    ...{ input: { command, background: true }, judged: [{ type: 'command', command, cwd: folder }], from: 0 },
  }
  const done = channel.next('done')
  channel.send(call)
  expect(JSON.stringify(await done)).toMatch(/job-[0-9a-f]{12}/)
}

test('the background commands of a session are listed with their output, and only those', async () => {
  const [session, other] = [newId(), newId()]
  await start(session, 'echo one; until test -e go; do sleep 0.05; done; echo two; exit 3')
  const jobs = new RemoteJobs(channel, session)
  const [job] = await jobs.list()
  expect(job).toMatchObject({ status: 'running', command: expect.stringContaining('echo one') })
  const id = job?.id ?? ''
  const read = (options = {}): ReturnType<RemoteJobs['read']> => jobs.read(id, { limitBytes: 1024, ...options })
  await expect.poll(read, patiently).toMatchObject({ text: 'one\n', end: 4, isCut: false })
  const more = read({ after: 4, waitMs: 20_000 })
  writeFileSync(join(folder, 'go'), '')
  expect((await more)?.end).toBeGreaterThanOrEqual(4)
  await expect.poll(read, patiently).toMatchObject({ text: 'one\ntwo\n', job: { status: 'ended', exit: { code: 3 } } })
  expect(await read({ limitBytes: 4 })).toMatchObject({ text: 'two\n', isCut: true })
  const others = new RemoteJobs(channel, other)
  expect(await others.list()).toEqual([])
  expect(await others.read(id, { limitBytes: 1024 })).toBeUndefined()
  expect(await others.stop(id)).toBeUndefined()
})

test('a job can be stopped, also by a later process of the host', async () => {
  const session = newId()
  await start(session, 'sleep 600')
  await host.close()
  await open()
  const jobs = new RemoteJobs(channel, session)
  const [job] = await jobs.list()
  expect(await jobs.stop(job?.id ?? '')).toMatchObject({ status: 'ended', exit: { cause: 'stopped' } })
})

test('a wait for output ends after its time, with the caller, and with the host', async () => {
  const session = newId()
  await start(session, 'sleep 600')
  const jobs = new RemoteJobs(channel, session)
  const id = (await jobs.list())[0]?.id ?? ''
  expect(await jobs.read(id, { limitBytes: 1024, after: 0, waitMs: 20 })).toMatchObject({ text: '' })
  const caller = new AbortController()
  const left = jobs.read(id, { limitBytes: 1024, after: 0, waitMs: 60_000, signal: caller.signal })
  caller.abort(new Error('left'))
  await expect(left).rejects.toThrow('left')
  const waiting = jobs.read(id, { limitBytes: 1024, after: 0, waitMs: 60_000 })
  channel.cut()
  await expect(waiting).rejects.toThrow('The tool host went away.')
  await expect(jobs.list()).rejects.toThrow('The tool host cannot be reached.')
  await connect()
  await jobs.stop(id)
})

test('a service that asks for too much at once is refused, and the host goes on', async () => {
  const session = newId()
  await start(session, 'sleep 600')
  const jobs = new RemoteJobs(channel, session)
  const id = (await jobs.list())[0]?.id ?? ''
  const waits = Array.from({ length: 80 }, () => jobs.read(id, { limitBytes: 1, after: 0, waitMs: 200 }))
  const ends = await Promise.allSettled(waits)
  expect(ends.filter(({ status }) => status === 'fulfilled').length).toBe(64)
  expect(await jobs.stop(id)).toMatchObject({ status: 'ended' })
})
