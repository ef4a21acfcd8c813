import { grantTrust, inspectProject, TrustStore } from '@tapetree/agent/settings'
import { FakeClock, startFakeProvider, type FakeAnswer, type FakeProvider } from '@tapetree/agent/testing'
import { memoryStore, type SessionStore } from '@tapetree/session'
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createCodingSession, openCodingDriver, type CodingDriverOptions } from './coding-driver.ts'
import { LiveSessions } from '../live/live-sessions.ts'
import { RequestProblem } from '../util/problem-error.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const say = (...chunks: string[]): FakeAnswer => ({ type: 'answer', content: [{ type: 'text', chunks }] })

interface Place {
  provider: FakeProvider
  store: SessionStore
  clock: FakeClock
  cwd: string
  sessions: LiveSessions
  trust: () => Promise<void>
}

/** A user with settings, and a repository with the given files. */
async function place(
  given: { files?: Record<string, string>; settings?: string; driver?: Partial<CodingDriverOptions> } = {},
): Promise<Place> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'coding-driver-')))
  cleanUps.push(() => rm(root, { recursive: true, force: true }))
  const provider = await startFakeProvider()
  cleanUps.push(() => provider.close())
  const [home, cwd] = [join(root, 'home'), join(root, 'repository')]
  const config = join(home, '.config/tapetree')
  const model = '{ id: m, contextTokens: 100000, outputTokens: 4096 }'
  const baseUrl = JSON.stringify(provider.baseUrl('openaiCompatible'))
  const fake = `{ api: openai-compatible, baseUrl: ${baseUrl}, models: [${model}] }`
  const settings = given.settings ?? `model: fake/m\nproviders: { fake: ${fake} }\n`
  await write(join(config, 'settings.yaml'), settings.replace('<fake>', `model: fake/m\nproviders: { fake: ${fake} }`))
  await chmod(config, 0o700)
  await write(join(cwd, '.git/HEAD'), 'ref: refs/heads/main\n')
  for (const [path, content] of Object.entries(given.files ?? {})) await write(join(cwd, path), content)
  const store = memoryStore()
  const clock = new FakeClock()
  const env = { PATH: process.env['PATH'] }
  const sessions = new LiveSessions({
    store,
    create: (options) => createCodingSession(store, options),
    openDriver: (id) => openCodingDriver(id, { store, home, env, clock, ...given.driver }),
  })
  cleanUps.push(() => sessions.close())
  const trust = async (): Promise<void> => grantTrust(await inspectProject(cwd, cwd), new TrustStore(config))
  return { provider, store, clock, cwd, sessions, trust }
}

async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, content)
}

const files = {
  'AGENTS.md': 'Always say please.',
  '.tapetree/prompts/review.md': '---\ndescription: Reviews a file.\nargument-hint: <file>\n---\nReview $1 with care.',
  '.agents/skills/plant/SKILL.md': '---\nname: plant\ndescription: Plants trees.\n---\nDig first.',
}

test('a session whose creation was cut off after its header gets its workspace and model when the request is repeated', async () => {
  const store = memoryStore()
  const cause = { cmd: 'key', client: 'rest', token: 'test', digest: 'a'.repeat(32) }
  const header = { id: 'k-1', cwd: '/', cause }
  await (await store.create(header)).close()
  const workspace = { hostId: 'host-1', hostName: 'laptop', name: 'project', folder: '/project', platform: 'linux' }
  const wanted = { ...header, workspace, model: { provider: 'fake', modelId: 'one' } }
  const other = { ...wanted, model: { provider: 'fake', modelId: 'two' }, cause: { ...cause, digest: 'b'.repeat(32) } }
  for (const options of [other, wanted, wanted]) {
    await expect(createCodingSession(store, options)).rejects.toMatchObject({ code: 'session-exists' })
  }
  await using session = await store.open('k-1')
  const types: (string | undefined)[] = []
  for await (const line of session.lines()) {
    if (line.type === 'line') types.push(/"type":"(\w+)"/.exec(line.text)?.[1])
  }
  expect(types).toEqual(['session', 'writer', 'workspace', 'model_change'])
  expect(session.workspace).toMatchObject(workspace)
  expect((await session.getModelChoice()).model).toMatchObject(wanted.model)
})

describe('a coding agent behind a server', () => {
  test("works in the folder of its session, with the user's settings", async () => {
    const { provider, sessions, cwd } = await place()
    provider.script(say('Hello.'))
    const live = await sessions.get(await sessions.create({ cwd }))
    expect(await live.perform('c', 'me', { op: 'prompt', args: { text: 'Hi' } })).toMatchObject({ ok: true })
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
    expect(live.driver.config()).toMatchObject({ model: { provider: 'fake', model_id: 'm' }, mode: 'ask' })
    expect(JSON.stringify(provider.requests[0]?.body)).toContain(`Working folder: ${cwd}`)
  })

  test('reads nothing of an untrusted repository, and all of a trusted one', async () => {
    const { sessions, cwd, trust } = await place({ files })
    const careful = await sessions.get(await sessions.create({ cwd }))
    expect(careful.driver.slashCommands()).toEqual([])
    await trust()
    const trusting = await sessions.get(await sessions.create({ cwd }))
    expect(trusting.driver.slashCommands()).toEqual([
      { name: 'review', description: '<file>: Reviews a file.' },
      { name: 'skill:plant', description: 'Plants trees.' },
    ])
    expect(trusting.board.get('commands')).toEqual(trusting.driver.slashCommands())
  })

  test('shows the language servers of a trusted repository, with what they find', async () => {
    const scripted = fileURLToPath(
      new URL('../../../agent/src/language-servers/testing/scripted-server.ts', import.meta.url),
    )
    const program = 'node_modules/.bin/pyright-langserver'
    const { provider, sessions, cwd, trust } = await place({
      files: {
        ...files,
        'pyproject.toml': '',
        [program]: `#!/bin/sh\nexec '${process.execPath}' '${scripted}' pull\n`,
      },
    })
    await chmod(join(cwd, program), 0o755)
    await trust()
    const input = JSON.stringify({ path: 'a.py', content: 'BAD one\n' })
    provider.script(
      { type: 'answer', content: [{ type: 'tool_call', id: 'w', name: 'write', chunks: [input] }] },
      ...[say('Done.'), say('I leave it.')],
    )
    const live = await sessions.get(await sessions.create({ cwd }))
    expect(live.board.get('language_servers')).toEqual([])
    await live.perform('m', 'me', { op: 'set_config', args: { mode: 'auto' } })
    await live.perform('c', 'me', { op: 'prompt', args: { text: 'Write it.' } })
    const found = [{ name: 'pyright', status: 'running', errors: 1, warnings: 0 }]
    await vi.waitFor(() => expect(live.board.get('language_servers')).toEqual(found), patiently)
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
  })

  test('starts with the model of the session; a used session whose model is gone reports that and uses another', async () => {
    const { sessions, cwd, store } = await place()
    const id = await sessions.create({ cwd, name: 'other', model: { provider: 'nowhere', modelId: 'x' } })
    await expect(sessions.get(id)).rejects.toMatchObject({ problem: { status: 409, type: 'model-not-usable' } })
    await using session = await store.open(id)
    await session.appendMessage('user', 'hi')
    expect((await sessions.get(id)).driver.config()).toMatchObject({
      model: { model_id: 'm' },
      missing_model: { provider: 'nowhere', model_id: 'x', reason: expect.stringContaining('nowhere') },
    })
    const good = await sessions.create({ cwd, model: { provider: 'fake', modelId: 'm' } })
    expect((await sessions.get(good)).driver.config()).toMatchObject({ model: { model_id: 'm' } })
  })

  test('is not opened if its folder is gone or not allowed', async () => {
    const refuse = (): Promise<never> => Promise.reject(new RequestProblem(403, 'outside-roots', 'Not there.'))
    const { sessions, cwd, store } = await place({ driver: { checkFolder: refuse } })
    const outside = await sessions.create({ cwd })
    await expect(sessions.get(outside)).rejects.toMatchObject({ problem: { type: 'outside-roots' } })
    const { sessions: others } = await place({ driver: { store } })
    const gone = await sessions.create({ cwd: join(cwd, 'gone') })
    await expect(others.get(gone)).rejects.toMatchObject({ problem: { status: 409, type: 'folder-not-found' } })
    const none = await sessions.create({})
    await expect(others.get(none)).rejects.toMatchObject({ problem: { status: 409, type: 'no-folder' } })
  })

  test('cancels a user command if no run is named, and otherwise only the named run', patiently, async () => {
    const { sessions, cwd } = await place()
    const live = await sessions.get(await sessions.create({ cwd }))
    const running = live.perform('c1', 'a', { op: 'bash', args: { command: 'echo begun; sleep 60' } })
    await vi.waitFor(() => expect(live.inFlight.isEmpty).toBe(false), patiently)
    expect(await live.perform('c2', 'a', { op: 'cancel', args: { run_id: 'r' } })).toMatchObject({ ok: false })
    expect(live.isIdle).toBe(false)
    expect(await live.perform('c3', 'a', { op: 'cancel' })).toMatchObject({ ok: true })
    expect(await running).toMatchObject({ ok: true, result: { exit_code: null } })
  })

  test('delays each queued message as configured', async () => {
    const { provider, sessions, cwd, clock } = await place({
      settings: '<fake>\nconversations:\n  queue:\n    delay_seconds: 30\n',
    })
    provider.script(say('one'), say('two'))
    const live = await sessions.get(await sessions.create({ cwd }))
    await live.perform('a', 'me', { op: 'queue.add', args: { message: 'first' } })
    await vi.waitFor(() => expect(clock.waits).toContain(30_000), patiently)
    expect(provider.requests).toHaveLength(0)
    clock.advance(30_000)
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
    expect(provider.requests.length).toBeGreaterThan(0)
  })

  test('delivers no queued message automatically if configured so', async () => {
    const { provider, sessions, cwd } = await place({
      settings: '<fake>\nconversations:\n  queue:\n    enabled: false\n    delay_seconds: 0\n',
    })
    provider.script(say('one'))
    const live = await sessions.get(await sessions.create({ cwd }))
    const { result } = await live.perform('a', 'me', { op: 'queue.add', args: { message: 'first' } })
    expect(live.driver.isBusy).toBe(false)
    expect(live.session.inbox.messages).toMatchObject([{ id: (result as { id: string }).id, message: 'first' }])
    await live.perform('b', 'me', { op: 'queue.release', args: {} })
    await vi.waitFor(() => expect(provider.requests).toHaveLength(1), patiently)
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
    expect(live.session.inbox.messages).toEqual([])
  })
})
