import { probeSandbox } from '@tapetree/agent/sandbox'
import { memoryStore } from '@tapetree/session'
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { createCodingSession, openCodingDriver } from '../drivers/coding-driver.ts'
import { LiveSessions } from '../live/live-sessions.ts'
import { findAgent, listAgents } from './known-agents.ts'
import { call, change, say, shows, steps, type AgentStep } from './testing/agent-steps.ts'
import { logOf } from './testing/foreign-sessions.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 30_000 }
vi.setConfig({ testTimeout: 60_000 })

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const scripted = fileURLToPath(new URL('testing/scripted-agent.ts', import.meta.url))

interface Place {
  sessions: LiveSessions
  cwd: string
  home: string
  problems: string[]
}

/** A user whose settings name the scripted agent. Outside of the temporary folder, which a sandbox replaces. */
async function place(more: object = {}): Promise<Place> {
  const cache = join(import.meta.dirname, '../../../../node_modules/.cache')
  await mkdir(cache, { recursive: true })
  const root = await realpath(await mkdtemp(join(cache, 'known-agents-')))
  cleanUps.push(() => rm(root, { recursive: true, force: true }))
  const [home, cwd] = [join(root, 'home'), join(root, 'project')]
  const [config, state] = [join(home, '.config/tapetree'), join(home, '.mine')]
  for (const folder of [config, cwd, state]) await mkdir(folder, { recursive: true })
  await chmod(config, 0o700)
  const program = { command: process.execPath, args: [scripted, state], folders: ['~/.mine'] }
  await writeFile(join(config, 'settings.yaml'), JSON.stringify({ ...more, agents: { mine: program } }))
  const store = memoryStore()
  const problems: string[] = []
  const options = {
    ...{ store, home, env: { PATH: process.env['PATH'], HOME: home } },
    sandbox: { folder: join(root, 'sandbox'), own: [config] },
    onProblem: ({ message }: { message: string }) => void problems.push(message),
  }
  const sessions = new LiveSessions({
    store,
    create: (created) => createCodingSession(store, created),
    openDriver: (id) => openCodingDriver(id, options),
  })
  cleanUps.push(() => sessions.close())
  return { sessions, cwd, home, problems }
}

async function play({ sessions, cwd }: Place, ...all: AgentStep[]): Promise<string[]> {
  const live = await sessions.get(await sessions.create({ cwd, agent: 'mine' }))
  expect(await live.perform('c', 'me', { op: 'prompt', args: { text: steps(...all) } })).toMatchObject({ ok: true })
  await vi.waitFor(() => expect([live.driver.isBusy, live.session.openRun]).toEqual([false, null]), patiently)
  return logOf(live)
}

test('a session of an agent that the settings name runs that agent', async () => {
  const there = await place()
  const log = await play(there, say('Here.'))
  expect(log.slice(-2)).toEqual(['assistant: Here.', 'run_end completed'])
})

test('the whole agent runs in the sandbox: it writes in the working folder and in its own, and nowhere else', async ({
  skip,
}) => {
  const support = await probeSandbox()
  skip(support.type === 'none', 'There is no sandbox.')
  const there = await place()
  const { cwd, home } = there
  const paths = [join(cwd, 'a.txt'), join(home, '.mine/b.txt'), join(home, 'c.txt')]
  await play(there, ...paths.map((path): AgentStep => ({ do: 'write', path })))
  const read = await Promise.all(paths.map((path) => readFile(path, 'utf8').catch(() => 'absent')))
  expect(read).toEqual(['by the agent', 'by the agent', 'absent'])
})

test('mode sandboxed asks before the agent runs a command itself, and runs its terminals in our sandbox', async ({
  skip,
}) => {
  const support = await probeSandbox()
  skip(support.type === 'none', 'There is no sandbox.')
  const { sessions, cwd } = await place({ permissions: { mode: 'sandboxed' } })
  const live = await sessions.get(await sessions.create({ cwd, agent: 'mine' }))
  const text = steps(
    { do: 'run', command: 'touch in-terminal.txt; echo $?' },
    call('1', { kind: 'execute', rawInput: { command: 'touch by-itself.txt' } }),
    { do: 'ask', call: { toolCallId: '1' } },
    change('1', { status: 'completed', ...shows('done') }),
  )
  await live.perform('c', 'me', { op: 'prompt', args: { text } })
  await vi.waitFor(() => expect(live.session.pendingPermissions).toHaveLength(1), patiently)
  const [request] = live.session.pendingPermissions
  expect(request).toMatchObject({ tool: 'execute', title: expect.stringContaining('touch by-itself.txt') })
  const answer = { request_id: request?.requestId, option_id: 'reject_once' }
  await live.perform('a', 'me', { op: 'permission.answer', args: answer })
  await vi.waitFor(() => expect([live.driver.isBusy, live.session.openRun]).toEqual([false, null]), patiently)
  const log = await logOf(live)
  expect(log).toContain('assistant: [0: 0]')
  expect(log).toContain('permission_result rejected')
})

test('a session whose agent is not in the settings cannot be opened, and says what to do', async () => {
  const { sessions, cwd } = await place()
  const opened = sessions.get(await sessions.create({ cwd, agent: 'nobody' }))
  await expect(opened).rejects.toThrow('The agent "nobody" of this session does not exist. Add it to `agents`')
})

const remote = { name: 'app', hostId: 'h1', hostName: 'laptop', folder: '/srv/app', platform: 'linux' }

test('a session of a foreign agent cannot be created with a workspace of a tool host', async () => {
  const { sessions, cwd } = await place()
  const created = sessions.create({ cwd, agent: 'mine', workspace: remote })
  await expect(created).rejects.toThrow(
    'The agent mine runs on the server, so its session cannot use a workspace of a tool host.',
  )
})

test('a session of a foreign agent cannot move to a workspace of a tool host', async () => {
  const { sessions, cwd } = await place()
  const live = await sessions.get(await sessions.create({ cwd, agent: 'mine' }))
  const moved = await live.perform('w', 'me', { op: 'set_workspace', args: { host: 'laptop', workspace: 'app' } })
  expect(moved).toMatchObject({ ok: false, error: { type: 'no-tool-hosts' } })
  expect(live.session.workspace).toBeUndefined()
})

test('known agents are listed if they are installed, and settings of the same name replace them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'known-agents-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  for (const name of ['gemini', 'qwen']) await writeFile(join(folder, name), '')
  const qwen = { command: '/opt/qwen', args: [], env: { pass: [], set: {} }, folders: [] }
  const listed = listAgents({ qwen }, { PATH: folder })
  expect(listed.map(({ name, description }) => `${name}: ${description}`)).toEqual([
    'tapetree: The agent of tapetree',
    'qwen: /opt/qwen',
    'gemini: gemini --acp',
  ])
})

test('an agent sees the variables that it names, and no other keys', () => {
  const env = { PATH: '/bin', GEMINI_API_KEY: 'a', ANTHROPIC_API_KEY: 'b' }
  const found = findAgent('gemini', {}, { env, home: '/home/me' })
  expect(found?.program.env).toMatchObject({ PATH: '/bin', GEMINI_API_KEY: 'a' })
  expect(found?.program.env).not.toHaveProperty('ANTHROPIC_API_KEY')
  expect(found?.folders).toEqual(['/home/me/.gemini'])
})
