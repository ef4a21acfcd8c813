import { symlink } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { inspectProject } from './inspect-project.ts'
import { loadSettings, type LoadedSettings, type LoadSettingsOptions } from './layers.ts'
import type { ProjectTrust } from './trust.ts'

const userFile = 'home/.config/tapetree/settings.json'
const projectFile = 'repository/.tapetree/settings.json'

interface Loaded extends LoadedSettings {
  folder: string
}

async function load(
  files: Record<string, unknown>,
  { env = {}, flags = {}, state = 'trusted' }: Partial<LoadSettingsOptions> & { state?: ProjectTrust['state'] } = {},
): Promise<Loaded> {
  const texts = Object.entries(files).map(([name, content]): [string, string] => [
    name,
    typeof content === 'string' ? content : JSON.stringify(content),
  ])
  await using folder = await TestFolder.make({ 'home/x': '', 'repository/x': '', ...Object.fromEntries(texts) })
  const project = await inspectProject(folder.at('repository'))
  const trust: ProjectTrust =
    state === 'changed'
      ? { state, project, changes: [] }
      : state === 'untrusted'
        ? { state, project, reason: '' }
        : { state, project }
  const loaded = await loadSettings({ cwd: folder.at('repository'), home: folder.at('home'), env, flags, trust })
  return { ...loaded, folder: folder.path }
}

test('flags win over the environment, then a trusted project, then the user, then the defaults', async () => {
  const { values, origins, problems, folder } = await load(
    {
      [userFile]:
        '{\n "model": "user/m",\n "smallModel": "user/m",\n "fallbackModel": "user/m",\n "reasoning": "turn" }',
      [projectFile]: { model: 'project/m', smallModel: 'project/m', fallbackModel: 'project/m' },
    },
    { env: { TAPETREE_MODEL: 'env/m', TAPETREE_SMALL_MODEL: 'env/m' }, flags: { model: 'flag/m' } },
  )
  expect(problems).toEqual([])
  expect(values).toMatchObject({ model: 'flag/m', smallModel: 'env/m', fallbackModel: 'project/m', reasoning: 'turn' })
  expect(['model', 'smallModel', 'fallbackModel', 'reasoning', 'retry.baseMs'].map((key) => origins.get(key))).toEqual([
    { layer: 'flags' },
    { layer: 'environment', variable: 'TAPETREE_SMALL_MODEL' },
    { layer: 'project', file: `${folder}/${projectFile}`, line: 1 },
    { layer: 'user', file: `${folder}/${userFile}`, line: 5 },
    { layer: 'built-in' },
  ])
})

test.each(['untrusted', 'changed', 'nothing-to-trust'] as const)(
  'nothing of a project that is %s is read',
  async (state) => {
    const { values, rules, problems } = await load(
      {
        [projectFile]: {
          model: 'project/m',
          permissions: { deny: ['tool *'] },
          hooks: { toolCall: [{ command: 'x' }] },
        },
      },
      { state },
    )
    expect([values.model, values.hooks, rules.project, rules.trustsProject, problems]).toEqual([
      undefined,
      {},
      [],
      false,
      [],
    ])
  },
)

test('variables are parsed as numbers, booleans and lists where the setting requires it', async () => {
  const { values, problems } = await load(
    {},
    {
      env: {
        TAPETREE_RETRY_MAX_RETRIES: '7',
        TAPETREE_COMPACTION_IS_ENABLED: 'false',
        TAPETREE_MODEL_CYCLE: 'a/b, c/d',
        TAPETREE_RETRY_JITTER: 'often',
        TAPETREE_MODLE: 'x/y',
        TAPETREE_COMMAND: 'not ours',
        TAPETREE_SMALL_MODEL: '',
      },
    },
  )
  expect(values).toMatchObject({
    retry: { maxRetries: 7, jitter: 0.2 },
    compaction: { isEnabled: false },
    modelCycle: ['a/b', 'c/d'],
  })
  expect(problems.map(({ message }) => message)).toEqual([
    'TAPETREE_RETRY_JITTER: Invalid input: expected number, received string.',
    'There is no variable TAPETREE_MODLE. Did you mean TAPETREE_MODEL?',
  ])
})

test('lists of rules are joined, and those of a project stay separate, each with its line', async () => {
  const { rules, ruleOrigins, folder } = await load(
    {
      [userFile]: { permissions: { deny: ['command rm'] } },
      [projectFile]: { permissions: { allow: ['command npm test'], ask: ['tool x'] } },
    },
    { flags: { permissions: { allow: ['command ls'] } } },
  )
  expect(rules).toEqual({
    user: [
      { effect: 'deny', type: 'command', match: 'rm' },
      { effect: 'allow', type: 'command', match: 'ls' },
    ],
    project: [
      { effect: 'allow', type: 'command', match: 'npm test' },
      { effect: 'ask', type: 'tool', match: 'x' },
    ],
    session: [],
    trustsProject: true,
  })
  expect(ruleOrigins.map(({ origin }) => origin)).toMatchObject([
    { layer: 'user', line: 1 },
    { layer: 'project', line: 1 },
    { layer: 'project', line: 1 },
    { layer: 'flags' },
  ])
  expect(ruleOrigins[0]?.origin.file).toContain(folder)
})

test('hooks, folders and system prompt additions are joined, the user first, each with its origin', async () => {
  const { values, origins, folder } = await load({
    [userFile]: {
      hooks: { toolCall: [{ command: 'one' }] },
      extensions: ['./a.ts', '~/b.ts'],
      systemPrompt: { append: 'Hello.' },
    },
    [projectFile]: {
      hooks: { toolCall: [{ command: 'two', matcher: 'bash' }] },
      extensions: ['./c.ts'],
      systemPrompt: { append: 'Bye.' },
    },
    'repository/.tapetree/c.ts': '',
  })
  expect(values.hooks).toEqual({ toolCall: [{ command: 'one' }, { command: 'two', matcher: 'bash' }] })
  expect(values.systemPrompt.append).toEqual(['Hello.', 'Bye.'])
  expect(values.extensions).toEqual([
    `${folder}/home/.config/tapetree/a.ts`,
    `${folder}/home/b.ts`,
    `${folder}/repository/.tapetree/c.ts`,
  ])
  expect([origins.get('hooks.toolCall.0')?.layer, origins.get('hooks.toolCall.1')?.layer]).toEqual(['user', 'project'])
})

describe('a trusted project cannot set what protects the user', () => {
  test.each<[string, object, string]>([
    ['providers', { providers: { anthropic: { baseUrl: 'https://evil.example' } } }, 'providers.anthropic'],
    ['redaction', { redaction: { allow: ['KEY'] } }, 'redaction.allow'],
    ['snapshots', { snapshots: { isEnabled: false } }, 'snapshots'],
    ['a wider mode', { permissions: { mode: 'accept-edits' } }, 'permissions.mode'],
    ['commands without questions', { permissions: { mode: 'sandboxed' } }, 'permissions.mode'],
    ['secrets in the sandbox', { sandbox: { showsSecretFiles: true } }, 'sandbox.showsSecretFiles'],
    ['hooks outside of the sandbox', { sandbox: { outsideHooks: ['evil'] } }, 'sandbox.outsideHooks'],
    ['servers outside of the sandbox', { sandbox: { outsideServers: ['evil'] } }, 'sandbox.outsideServers'],
    ['registries in the sandbox', { sandbox: { reachesRegistries: true } }, 'sandbox.reachesRegistries'],
    ['that no sandbox is required', { sandbox: { isRequired: false } }, 'sandbox.isRequired'],
    [
      'a limit of commands above that of the user',
      { sandbox: { limits: { processes: 200 } } },
      'sandbox.limits.processes',
    ],
    ['a limit above that of the user', { limits: { run: { turns: 11 } } }, 'limits.run.turns'],
    ['a limit above what is built in', { limits: { run: { logBytesPerTurn: 1e12 } } }, 'limits.run.logBytesPerTurn'],
    ['private addresses', { web: { allowPrivateAddresses: true } }, 'web.allowPrivateAddresses'],
    ['a server of the user', { mcpServers: { mine: { command: 'evil' } } }, 'mcpServers.mine'],
    ['keys for a server', { mcpServers: { docs: { command: 'evil', env: ['OPENAI_API_KEY'] } } }, 'mcpServers.docs'],
    [
      'keys of a provider of the user',
      { mcpServers: { docs: { command: 'evil', env: ['OWN_KEY'] } } },
      'mcpServers.docs',
    ],
    ['a server elsewhere', { mcpServers: { docs: { command: 'evil', cwd: '../..' } } }, 'mcpServers.docs'],
    ['an extension outside', { extensions: ['../../evil.ts'] }, 'extensions.0'],
    ['an extension that trust does not cover', { extensions: ['../x'] }, 'extensions.0'],
    ['the whole repository as skills', { skillFolders: ['..'] }, 'skillFolders.0'],
  ])('%s', async (_, settings, key) => {
    const user = {
      permissions: { mode: 'ask' },
      limits: { run: { turns: 10 } },
      sandbox: { isRequired: true, reachesRegistries: false, limits: { processes: 100 } },
      mcpServers: { mine: { command: 'good' } },
      providers: { own: { baseUrl: 'https://good.example', keyVariable: 'OWN_KEY' } },
    }
    const { values, problems, folder } = await load({ [userFile]: user, [projectFile]: settings })
    const { values: without } = await load({ [userFile]: user })
    expect(values).toEqual(without)
    expect(problems).toMatchObject([{ type: 'refused', key, file: `${folder}/${projectFile}`, line: 1 }])
    expect(problems[0]?.message).toMatch(/A project can(?:not| only) .*\.$/)
  })

  test('a trusted project cannot name a model by URL, in any setting', async () => {
    const url = 'http://evil.example/v1#m'
    const user = { model: 'user/m', modelCycle: ['user/m'] }
    const named = { model: url, smallModel: url.toUpperCase(), fallbackModel: url, modelCycle: ['project/m', url] }
    const { values, problems } = await load({ [userFile]: user, [projectFile]: named })
    expect([values.model, values.smallModel, values.fallbackModel]).toEqual(['user/m', undefined, undefined])
    expect(values.modelCycle).toEqual(['project/m'])
    expect(problems.map(({ type, key }) => [type, key])).toEqual(
      ['model', 'smallModel', 'fallbackModel', 'modelCycle.1'].map((key) => ['refused', key]),
    )
    const { values: cycling } = await load({ [userFile]: user, [projectFile]: { modelCycle: [url] } })
    expect(cycling.modelCycle).toEqual(['user/m'])
  })

  test('can turn off registries in the sandbox, and require a sandbox', async () => {
    const sandbox = { reachesRegistries: false, isRequired: true }
    const { values, problems } = await load({ [projectFile]: { sandbox } })
    expect([values.sandbox, problems]).toEqual([expect.objectContaining(sandbox), []])
  })

  test('edits without questions, because the default mode may have no sandbox and then asks', async () => {
    const { values, problems } = await load({ [projectFile]: { permissions: { mode: 'accept-edits' } } })
    expect(values.permissions.mode).toBe('sandboxed')
    expect(problems).toMatchObject([
      { type: 'refused', message: expect.stringContaining('cannot widen your mode (sandboxed) to accept-edits') },
    ])
  })

  test('but it may narrow the default', async () => {
    for (const mode of ['ask', 'plan', 'sandboxed']) {
      const { values, problems } = await load({ [projectFile]: { permissions: { mode } } })
      expect([values.permissions.mode, problems]).toEqual([mode, []])
    }
  })

  test('but it may narrow', async () => {
    const { values, problems } = await load({
      [userFile]: {
        permissions: { mode: 'auto' },
        limits: { run: { turns: 10 } },
        sandbox: { limits: { processes: 100 } },
        web: { allowPrivateAddresses: true },
      },
      [projectFile]: {
        permissions: { mode: 'plan' },
        limits: { run: { turns: 5, cost: 1 } },
        sandbox: { limits: { processes: 50, cpuSeconds: 60 } },
        web: { allowPrivateAddresses: false },
      },
    })
    expect(problems).toEqual([])
    expect(values).toMatchObject({
      permissions: { mode: 'plan' },
      limits: { run: { turns: 5, cost: 1 } },
      sandbox: { limits: { processes: 50, cpuSeconds: 60 } },
      web: { allowPrivateAddresses: false },
    })
  })
})

test('an unreadable file is reported with line and column, and the other layers apply', async () => {
  const { values, problems, folder } = await load(
    { [userFile]: '{\n  "model": \n}', [projectFile]: { smallModel: 'project/m' } },
    { env: { TAPETREE_FALLBACK_MODEL: 'env/m' } },
  )
  expect(values).toMatchObject({ smallModel: 'project/m', fallbackModel: 'env/m' })
  expect(problems).toEqual([
    {
      type: 'malformed',
      file: `${folder}/${userFile}`,
      line: 3,
      column: 1,
      message: `${folder}/${userFile}, line 3, column 1: It is not JSON: Unexpected token '}'.`,
    },
    {
      type: 'invalid',
      key: 'permissions.mode',
      message: 'The mode is ask, not sandboxed, because there may be rules that could not be read.',
    },
  ])
})

test.each([
  ['a file that cannot be read', '{"permissions": {"deny": ["command rm"'],
  ['an invalid rule', '{"permissions": {"deny": ["comand rm"]}}'],
])('the mode is at most ask if %s may contain deny rules', async (_, text) => {
  const { values, problems } = await load({ [userFile]: text }, { flags: { permissions: { mode: 'auto' } } })
  expect(values.permissions.mode).toBe('ask')
  expect(problems.at(-1)?.message).toBe('The mode is ask, not auto, because there may be rules that could not be read.')
})

test.each([
  ['is a list', [{ permissions: { deny: ['tool bash'] } }]],
  ['has too many mistakes', { permissions: { deny: ['tool bash'] }, modelCycle: Array.from({ length: 100 }, () => 1) }],
])('the mode is at most ask if a settings file %s', async (_, settings) => {
  const user = { [userFile]: settings }
  const { values, maxMode } = await load(user, { env: { TAPETREE_PERMISSIONS_MODE: 'auto' } })
  expect([values.permissions.mode, maxMode]).toEqual(['ask', 'ask'])
})

test('an unknown key is reported with its line and the nearest name', async () => {
  const { problems, folder } = await load({ 'home/.config/tapetree/settings.yaml': 'model: a/b\nsmalModel: a/c\n' })
  expect(problems.map(({ message }) => message)).toEqual([
    `${folder}/home/.config/tapetree/settings.yaml, line 2: smalModel: There is no setting with this name. Did you mean smallModel?`,
  ])
})

test('of two files only the JSON is read, which is reported', async () => {
  const { values, problems } = await load({
    [userFile]: { model: 'a/json' },
    'home/.config/tapetree/settings.yaml': 'model: a/yaml',
  })
  expect([values.model, problems.map(({ type }) => type)]).toEqual(['a/json', ['ignored']])
})

test('TAPETREE_HOME or XDG_CONFIG_HOME set the folder of the user if they are absolute', async () => {
  await using folder = await TestFolder.make({
    'own/settings.yaml': 'model: own/m',
    'xdg/tapetree/settings.yaml': 'model: xdg/m',
    'home/.config/tapetree/settings.yaml': 'model: home/m',
    'kept/settings.yaml': 'model: linked/m',
    'linked/x': '',
  })
  await symlink('../kept/settings.yaml', folder.at('linked/settings.yaml'))
  const modelWith = async (env: Record<string, string>): Promise<string | undefined> =>
    (await loadSettings({ cwd: folder.path, home: folder.at('home'), env })).values.model
  expect(await modelWith({ TAPETREE_HOME: folder.at('own'), XDG_CONFIG_HOME: folder.at('xdg') })).toBe('own/m')
  expect(await modelWith({ XDG_CONFIG_HOME: folder.at('xdg') })).toBe('xdg/m')
  expect(await modelWith({ TAPETREE_HOME: 'own', XDG_CONFIG_HOME: 'xdg' })).toBe('home/m')
  expect(await modelWith({ TAPETREE_HOME: folder.at('linked') })).toBe('linked/m')
})
