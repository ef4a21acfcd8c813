import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { changeUserSettings, describeSettings, loadSettings } from '@tapetree/agent/settings'
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestApi, type TestApiOptions } from '../testing/test-api.ts'

const open: TestApi[] = []
afterEach(async () => {
  for (const api of open.splice(0)) {
    await api.close()
    expect(api.faults).toEqual([])
  }
})

let folder = ''
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-workspace-')))
  for (const each of ['root/src/deep', 'root/.git', 'outside/hidden'])
    await mkdir(join(folder, each), { recursive: true })
  for (const each of ['root/src/main.ts', 'root/src/Make.ts', 'root/readme.md', 'outside/secret.txt']) {
    await writeFile(join(folder, each), '')
  }
  await symlink(join(folder, 'outside'), join(folder, 'root/leak'))
  await symlink(join(folder, 'root/src'), join(folder, 'root/source'))
})
afterAll(() => rm(folder, { recursive: true }))

function start(options: TestApiOptions = {}): TestApi {
  const api = new TestApi({ ...options, parts: { roots: () => [join(folder, 'root')], ...options.parts } })
  open.push(api)
  return api
}

async function body<T = Record<string, unknown>>(response: Response | Promise<Response>): Promise<T> {
  return (await (await response).json()) as T
}

describe('file names', () => {
  test('are completed inside of the session folder, and links do not lead out', async () => {
    const api = start()
    const path = await api.session({ cwd: join(folder, 'root') })
    const complete = async (typed: string): Promise<string[]> => {
      const answer = api.get(`${path}/files?q=${encodeURIComponent(typed)}`)
      return (await body<{ files: { path: string }[] }>(answer)).files.map((file) => file.path)
    }
    expect(await complete('')).toEqual(['readme.md', 'source', 'src'])
    expect(await complete('src/m')).toEqual(['src/Make.ts', 'src/main.ts'])
    expect(await complete('.g')).toEqual(['.git'])
    expect(await complete('source/main')).toEqual(['source/main.ts'])
    for (const odd of [
      'leak/',
      'leak/s',
      '../',
      '../outside/',
      '/',
      `${folder}/outside/`,
      'src/../../outside/',
      '\0',
    ]) {
      expect(await complete(odd)).toEqual([])
    }
    expect(await body(api.get(`${path}/files?limit=1`))).toMatchObject({ files: [{}], has_more: true })
  })
})

describe('folders', () => {
  test('are chosen from the roots down, not above', async () => {
    const api = start()
    const root = join(folder, 'root')
    expect(await body(api.get('/api/folders'))).toMatchObject({ path: null, folders: [{ name: 'root', path: root }] })
    expect(await body(api.get(`/api/folders?path=${root}`))).toEqual({
      path: root,
      parent: null,
      folders: [
        { name: 'source', path: join(root, 'source') },
        { name: 'src', path: join(root, 'src') },
      ],
      has_more: false,
    })
    expect(await body(api.get(`/api/folders?path=${root}/src/`))).toMatchObject({
      parent: root,
      folders: [{ name: 'deep' }],
    })
    expect((await api.get(`/api/folders?path=${folder}`)).status).toBe(403)
    expect((await api.get(`/api/folders?path=${root}/leak`)).status).toBe(403)
    expect((await api.get(`/api/folders?path=${root}/readme.md`)).status).toBe(404)
    expect((await api.get('/api/folders?path=root')).status).toBe(422)
  })
})

describe('data around sessions', () => {
  test('settings come with their origin and without secrets', async () => {
    const values = {
      permissions: { mode: 'ask' },
      mcpServers: { 'a.b': { command: 'x', env: { TOKEN: 'shh' }, headers: { a: 'shh' } } },
      apiKey: 'shh',
    }
    const origins = new Map([
      ['permissions.mode', { layer: 'user' as const, file: '/home/me/settings.json', line: 3 }],
      ['mcpServers.a.b', { layer: 'project' as const }],
      ['apiKey', { layer: 'environment' as const, variable: 'KEY' }],
    ])
    const api = start({
      parts: { settings: () => Promise.resolve({ values: values as never, origins, problems: [] }) },
    })
    const answer = await api.get('/api/settings')
    const said = await answer.text()
    expect(said).not.toContain('shh')
    expect(JSON.parse(said)).toMatchObject({
      settings: [
        { key: 'apiKey', value: '(not shown)', origin: { layer: 'environment', variable: 'KEY' } },
        { key: 'mcpServers.a.b', value: { command: 'x', env: '(not shown)', headers: '(not shown)' } },
        { key: 'permissions.mode', value: 'ask', origin: { layer: 'user', line: 3 } },
      ],
    })
    expect((await api.get(`/api/settings?cwd=${folder}`)).status).toBe(403)
  })

  test('model, thinking level and theme can be written, and nothing else', async () => {
    const home = join(folder, 'home')
    const file = join(home, '.config/tapetree/settings.json')
    const places = { home, env: {} }
    await mkdir(join(home, '.config/tapetree'), { recursive: true })
    await writeFile(file, JSON.stringify({ hooks: { toolCall: [{ command: 'check' }] } }))
    const model = { provider: 'p', id: 'm', key: { type: 'not-needed' as const }, source: 'catalogue' as const }
    const api = start({
      parts: {
        models: () => Promise.resolve([model as never]),
        settings: () => loadSettings({ cwd: folder, ...places }),
        changeSettings: (_, change) => changeUserSettings(change, places),
      },
    })
    const written = async (): Promise<unknown> => JSON.parse(await readFile(file, 'utf8'))
    const { settings } = await body<{ settings: unknown[] }>(
      api.patch('/api/settings', { model: 'p/m', thinking_level: 'high', theme: 'light' }),
    )
    expect(settings).toContainEqual(expect.objectContaining({ key: 'model', value: 'p/m' }))
    expect(settings).toContainEqual(expect.objectContaining({ key: 'terminal.theme', value: 'light' }))
    const after = {
      hooks: { toolCall: [{ command: 'check' }] },
      model: 'p/m',
      thinkingLevel: 'high',
      terminal: { theme: 'light' },
    }
    expect(await written()).toEqual(after)
    for (const key of new Set(describeSettings().map((row) => row.key.split('.')[0] ?? ''))) {
      if (['model', 'thinkingLevel'].includes(key)) continue
      expect((await api.patch('/api/settings', { model: 'p/m', [key]: {} })).status).toBe(422)
    }
    for (const wrong of [
      { theme: 'pink' },
      { thinking_level: 'a lot' },
      { model: 1 },
      { __proto__: null, hooks: {} },
      [],
    ])
      expect((await api.patch('/api/settings', wrong)).status).toBe(422)
    expect(await body(api.patch('/api/settings', { model: 'p/other' }))).toMatchObject({ type: 'unknown-model' })
    expect(await written()).toEqual(after)
    await writeFile(file, '{')
    expect(await body(api.patch('/api/settings', { theme: null }))).toMatchObject({
      status: 409,
      type: 'settings-not-written',
    })
    expect(await readFile(file, 'utf8')).toBe('{')
    expect(await body(start().patch('/api/settings', { theme: null }))).toMatchObject({ type: 'no-settings' })
  })

  test('models, agents and commands are listed', async () => {
    const model = {
      provider: 'p',
      id: 'm',
      name: 'M',
      contextWindow: 10,
      maxOutputTokens: 5,
      thinkingLevels: ['off'] as const,
      images: true,
      key: { type: 'missing' as const, variable: 'P_KEY' },
      source: 'catalogue' as const,
    }
    const api = start({
      slashCommands: [{ name: 'fix', description: 'Fixes' }],
      parts: { models: () => Promise.resolve([model]) },
    })
    expect(await body(api.get('/api/models'))).toMatchObject({
      models: [{ provider: 'p', model_id: 'm', context_window: 10, key: 'missing', thinking_levels: ['off'] }],
    })
    expect(await body(api.get('/api/agents'))).toEqual({ agents: [{ id: 'tapetree', name: 'tapetree' }] })
    const path = await api.session({ cwd: join(folder, 'root') })
    expect(await body(api.get(`${path}/commands`))).toEqual({ commands: [{ name: 'fix', description: 'Fixes' }] })
  })

  test('the version is that of the program, with the protocol', async () => {
    const api = start({ parts: { version: { version: '1.2.3' } } })
    expect(await body(api.get('/api/version'))).toEqual({ name: 'tapetree', version: '1.2.3', protocol: 'tapetree.v1' })
  })

  test('health and readiness are public', async () => {
    let reason: string | undefined
    const api = start({ parts: { notReady: () => reason } })
    expect(await body(api.get('/api/health'))).toEqual({ status: 'ok' })
    expect((await api.get('/api/ready')).status).toBe(200)
    reason = 'going down'
    const answer = await api.get('/api/ready')
    expect([answer.status, await body(answer)]).toEqual([503, { status: 'not-ready', reason }])
  })
})
