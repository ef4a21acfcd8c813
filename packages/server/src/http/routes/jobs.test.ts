import { bashTool, Jobs } from '@tapetree/agent/tools'
import { script } from '@tapetree/agent/testing'
import { RemoteWorkspace, ToolHost } from '@tapetree/agent/tool-host'
import { memoryStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { connectHost } from '../../tool-hosts/testing/connect-host.ts'
import { runRemotely } from '../../tool-hosts/testing/run-remotely.ts'
import { ToolHosts } from '../../tool-hosts/tool-hosts.ts'
import { TestApi } from '../testing/test-api.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

const open: TestApi[] = []
afterEach(async () => {
  for (const api of open.splice(0)) {
    await api.close()
    expect(api.faults).toEqual([])
  }
})

interface Job {
  id: string
  command: string
  started_at: string
  status: string
  exit?: { cause: string; code: number | null }
}

interface Output {
  job: Job
  output: string
  end: number
  is_cut: boolean
}

test('the jobs of a session are listed with their commands, without secrets, and their output can be read', async () => {
  const { path, api } = await startJob(`export GITHUB_TOKEN=${secret}; echo one; ${untilGo}; echo two; exit 3`)
  const { jobs } = await body<{ jobs: Job[] }>(api.get(`${path}/jobs`))
  expect(jobs).toMatchObject([{ status: 'running' }])
  expect(jobs[0]?.command).toContain('echo one')
  expect(JSON.stringify(jobs)).not.toContain(secret)
  const one = await vi.waitFor(async () => {
    const answer = await body<Output>(api.get(`${path}/jobs/${jobs[0]?.id}`))
    expect(answer).toMatchObject({ output: 'one\n', end: 4, is_cut: false, job: { status: 'running' } })
    return answer
  }, patiently)

  const next = api.get(`${path}/jobs/${one.job.id}?after=${one.end}&wait=20`)
  await go(api)
  // The request is answered by the output or by the end, whichever it sees first.
  expect((await body<Output>(next)).end).toBe(8)
  await vi.waitFor(async () => {
    const { jobs: ended } = await body<{ jobs: Job[] }>(api.get(`${path}/jobs`))
    expect(ended).toMatchObject([{ id: one.job.id, status: 'ended', exit: { cause: 'exited', code: 3 } }])
  }, patiently)
  expect(await body<Output>(api.get(`${path}/jobs/${one.job.id}?limit=4`))).toMatchObject({
    output: 'two\n',
    is_cut: true,
  })
})

test('stopping a job ends all of its processes, and stopping it again changes nothing', async () => {
  const { path, api } = await startJob('echo one; sleep 600')
  const { jobs } = await body<{ jobs: Job[] }>(api.get(`${path}/jobs`))
  const job = `${path}/jobs/${jobs[0]?.id}`
  expect(await body(api.post(`${job}/stop`))).toMatchObject({ status: 'ended', exit: { cause: 'stopped' } })
  expect(await body(api.post(`${job}/stop`))).toMatchObject({ status: 'ended', exit: { cause: 'stopped' } })
})

test('a command in the foreground is not a job, and an unknown job is not found', async () => {
  const { path, api } = await startJob('true', { background: false })
  expect(await body(api.get(`${path}/jobs`))).toEqual({ jobs: [] })
  for (const unknown of ['job-000000000000', 'spool', '..%2F..'])
    expect((await api.get(`${path}/jobs/${unknown}`)).status).toBe(unknown.startsWith('job-') ? 404 : 422)
  expect((await api.post(`${path}/jobs/job-000000000000/stop`)).status).toBe(404)
})

test('a session that works on a tool host has its jobs there, while the host can be reached', async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-host-jobs-')))
  const hosts = new ToolHosts()
  const store = memoryStore()
  const host = await ToolHost.open({ dataFolder: join(root, 'host'), workspaces: { app: root }, mode: 'auto' })
  const api = new TestApi({ store, parts: { toolHosts: hosts } })
  onTestFinished(async () => {
    await api.close()
    hosts.close()
    await host.close()
    await rm(root, { recursive: true })
  })
  const cut = connectHost(host, hosts, 'local')
  const { id: hostId, name: hostName, platform } = host.hello
  const workspace = { name: 'app', hostId, hostName, folder: root, platform }
  await using session = await store.create()
  await session.append({ type: 'workspace', workspace })
  const remote = new RemoteWorkspace(workspace, hosts.of('local').channel(hostId))
  await remote.ready(AbortSignal.timeout(20_000))
  await runRemotely(remote, 'echo here; sleep 600', { background: true, sessionId: session.id }).output
  remote.close()

  const path = `/api/sessions/${session.id}/jobs`
  const { jobs } = await body<{ jobs: Job[] }>(api.get(path))
  expect(jobs).toMatchObject([{ status: 'running' }])
  const job = `${path}/${jobs[0]?.id}`
  await vi.waitFor(async () => expect(await body(api.get(job))).toMatchObject({ output: 'here\n' }), patiently)
  expect((await api.get(`${path}/job-000000000000`)).status).toBe(404)
  cut()
  const away = { type: 'tool-host-unavailable', detail: 'The tool host cannot be reached.' }
  for (const asked of [api.get(path), api.get(job), api.post(`${job}/stop`)]) {
    const response = await asked
    expect(response.status).toBe(503)
    expect(await body(response)).toMatchObject(away)
  }
  connectHost(host, hosts, 'local')
  await vi.waitFor(async () => {
    expect(await body(api.post(`${job}/stop`))).toMatchObject({ status: 'ended', exit: { cause: 'stopped' } })
  }, patiently)
})

const secret = `ghp_${'a1B2c3D4'.repeat(5).slice(0, 36)}`
const untilGo = 'until [ -e go ]; do sleep 0.05; done'

const folders = new WeakMap<TestApi, string>()

async function startJob(command: string, { background = true } = {}): Promise<{ api: TestApi; path: string }> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-jobs-route-')))
  const store = openFileStore({ folder: join(folder, 'sessions') })
  const api = new TestApi({
    store,
    script: script().toolCall('1', 'bash', { command, background }).step().text('It runs.'),
    agent: { tools: () => [bashTool({ jobs: new Jobs() })], cwd: folder },
  })
  open.push(api)
  folders.set(api, folder)
  const path = await api.session({ prompt: 'go', cwd: folder })
  const { session } = await api.sessions.get(path.split('/').at(-1) ?? '')
  onTestFinished(async () => {
    await new Jobs().stopAll(session.localFolder ?? '')
    await store.close()
    await rm(folder, { recursive: true })
  })
  await vi.waitFor(async () => expect((await api.sessions.get(session.id)).driver.isBusy).toBe(false), patiently)
  return { api, path }
}

async function go(api: TestApi): Promise<void> {
  await writeFile(join(folders.get(api) ?? '', 'go'), '')
}

async function body<T = Record<string, unknown>>(response: Response | Promise<Response>): Promise<T> {
  return (await (await response).json()) as T
}
