import { lstat, readFile, stat, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import type { Rule } from '../permissions/rules.ts'
import { allowInProject, changeUserSettings, type SettingsChange } from './change-settings.ts'
import { inspectProject } from './inspect-project.ts'
import { loadSettings } from './layers.ts'

const config = '.config/tapetree'
const change = (folder: TestFolder, wanted: SettingsChange): Promise<void> =>
  changeUserSettings(wanted, { home: folder.path, env: {} })

test('a new settings file is private and has exactly what was chosen', async () => {
  await using folder = await TestFolder.make()
  await change(folder, { model: 'openai/gpt-5', thinkingLevel: 'high', theme: 'light' })
  expect(JSON.parse(await folder.read(`${config}/settings.json`))).toEqual({
    model: 'openai/gpt-5',
    thinkingLevel: 'high',
    terminal: { theme: 'light' },
  })
  expect((await stat(folder.at(`${config}/settings.json`))).mode & 0o777).toBe(0o600)
  const { values, problems } = await loadSettings({ cwd: folder.path, home: folder.path, env: {} })
  expect([values.model, values.thinkingLevel, values.terminal.theme, problems]).toEqual([
    'openai/gpt-5',
    'high',
    'light',
    [],
  ])
})

test('all other settings stay, null removes one, and no change writes nothing', async () => {
  const kept = { hooks: { toolCall: [{ command: 'check' }] }, permissions: { mode: 'ask' }, terminal: { vim: true } }
  await using folder = await TestFolder.make({
    [`${config}/settings.json`]: JSON.stringify({ model: 'a/b', ...kept, unknownLater: 1 }),
  })
  const before = await lstat(folder.at(`${config}/settings.json`))
  await change(folder, {})
  expect((await lstat(folder.at(`${config}/settings.json`))).ino).toBe(before.ino)
  await change(folder, { model: null, theme: 'dark' })
  expect(JSON.parse(await folder.read(`${config}/settings.json`))).toEqual({
    ...kept,
    terminal: { vim: true, theme: 'dark' },
    unknownLater: 1,
  })
  await change(folder, { theme: null, thinkingLevel: null })
  expect(JSON.parse(await folder.read(`${config}/settings.json`))).toEqual({ ...kept, unknownLater: 1 })
})

test('a YAML file keeps its comments', async () => {
  await using folder = await TestFolder.make({
    [`${config}/settings.yaml`]: '# mine\nmodel: a/b # the best\nlimits:\n  run: { turns: 5 }\n',
  })
  await change(folder, { model: 'c/d', theme: 'light', thinkingLevel: null })
  expect(await folder.read(`${config}/settings.yaml`)).toBe(
    '# mine\nmodel: c/d # the best\nlimits:\n  run: { turns: 5 }\nterminal:\n  theme: light\n',
  )
})

test('a linked file is changed in place', async () => {
  await using folder = await TestFolder.make({ 'dotfiles/mine': '{}', [`${config}/keep`]: '' })
  await symlink(folder.at('dotfiles/mine'), folder.at(`${config}/settings.json`))
  await change(folder, { model: 'a/b' })
  expect((await lstat(folder.at(`${config}/settings.json`))).isSymbolicLink()).toBe(true)
  expect(JSON.parse(await folder.read('dotfiles/mine'))).toEqual({ model: 'a/b' })
})

test('a malformed file or value is rejected, and the file stays as it is', async () => {
  await using folder = await TestFolder.make({ [`${config}/settings.json`]: '{ "model": ' })
  await expect(change(folder, { model: 'a/b' })).rejects.toMatchObject({ code: 'malformed-file' })
  expect(await folder.read(`${config}/settings.json`)).toBe('{ "model": ')
  await using other = await TestFolder.make({ [`${config}/settings.json`]: '{"model":"a/b"}' })
  for (const wanted of [{ model: 'no slash' }, { theme: 'pink' }, { thinkingLevel: 'a lot' }])
    await expect(change(other, wanted as SettingsChange)).rejects.toMatchObject({ code: 'malformed-file' })
  expect(await other.read(`${config}/settings.json`)).toBe('{"model":"a/b"}')
})

test('a change that would make the settings file too large is rejected, and the file stays readable', async () => {
  const rules = Array.from({ length: 2500 }, (_, index) => `command tool-${index}`)
  const text = JSON.stringify({ model: 'a/b', projects: { '/srv': { allow: rules } } })
  await using folder = await TestFolder.make({ [`${config}/settings.json`]: text })
  const place = { home: folder.path, env: {} }
  await expect(change(folder, { model: 'c/d' })).rejects.toMatchObject({
    code: 'malformed-file',
    message: expect.stringContaining('With the change: It is larger than 64 KiB.'),
  })
  expect(await folder.read(`${config}/settings.json`)).toBe(text)
  expect((await loadSettings({ cwd: folder.path, ...place })).problems).toEqual([])
})

test('concurrent changes are all kept', async () => {
  await using folder = await TestFolder.make()
  await Promise.all([
    change(folder, { model: 'a/b' }),
    change(folder, { theme: 'light' }),
    change(folder, { thinkingLevel: 'low' }),
  ])
  expect(JSON.parse(await folder.read(`${config}/settings.json`))).toEqual({
    model: 'a/b',
    terminal: { theme: 'light' },
    thinkingLevel: 'low',
  })
})

test('rules of a project are added once, as the user would write them, and read again', async () => {
  const rules: Rule[] = [
    { effect: 'allow', type: 'fetch', match: 'one.example' },
    { effect: 'allow', type: 'command', match: ['npm', 'run', 'a b'] },
    { effect: 'allow', type: 'command', match: ['npm', 'test'] },
  ]
  await using folder = await TestFolder.make({ [`${config}/settings.yaml`]: '# mine\nmodel: a/b\n' })
  const place = { home: folder.path, env: {} }
  for (const added of [rules.slice(0, 1), rules, rules])
    await allowInProject({ root: '/srv/my project', rules: added }, place)
  await allowInProject({ root: '/other', rules: rules.slice(0, 1) }, place)
  const text = await folder.read(`${config}/settings.yaml`)
  expect(text).toMatch(/^# mine\nmodel: a\/b\nprojects:\n/)
  expect(text.match(/fetch one\.example/g)).toHaveLength(2)
  const { values, problems } = await loadSettings({ cwd: folder.path, ...place })
  expect(problems).toEqual([])
  expect(values.projects).toEqual({
    '/srv/my project': { allow: [rules[0], rules[1], { effect: 'allow', type: 'command', match: 'npm test' }] },
    '/other': { allow: rules.slice(0, 1) },
  })
})

test('a settings file that is not valid is not changed by a rule of a project', async () => {
  await using folder = await TestFolder.make({ [`${config}/settings.json`]: '{ "model": ' })
  const rules: Rule[] = [{ effect: 'allow', type: 'fetch', match: 'one.example' }]
  await expect(allowInProject({ root: '/a', rules }, { home: folder.path, env: {} })).rejects.toThrow('was not changed')
  expect(await folder.read(`${config}/settings.json`)).toBe('{ "model": ')
})

test('a choice for one project is kept apart, wins there over the user and the project, and names its line', async () => {
  await using folder = await TestFolder.make({ 'repository/x': '' })
  const place = { home: folder.path, env: {} }
  const root = folder.at('repository')
  await changeUserSettings({ model: 'a/general', theme: 'light' }, place)
  await changeUserSettings(
    { model: 'a/here', thinkingLevel: 'high', mode: 'accept-edits', theme: 'dark' },
    { ...place, project: root },
  )
  const load = async (cwd: string): ReturnType<typeof loadSettings> => {
    const project = await inspectProject(cwd)
    return loadSettings({ cwd, ...place, trust: { state: 'nothing-to-trust', project } })
  }
  const here = await load(root)
  expect(here.problems).toEqual([])
  expect(here.values).toMatchObject({
    model: 'a/here',
    thinkingLevel: 'high',
    permissions: { mode: 'accept-edits' },
    terminal: { theme: 'dark', vim: false },
  })
  expect(here.origins.get('model')).toMatchObject({ layer: 'user', line: expect.any(Number) })
  const written = await readFile(here.origins.get('model')?.file ?? '', 'utf8')
  expect(written.split('\n')[(here.origins.get('permissions.mode')?.line ?? 0) - 1]).toContain('accept-edits')
  expect((await load(folder.path)).values).toMatchObject({ model: 'a/general', terminal: { theme: 'light' } })
  await changeUserSettings({ model: null, mode: null }, { ...place, project: root })
  expect((await load(root)).values).toMatchObject({ model: 'a/general', thinkingLevel: 'high' })
})

test('rules are allowed only in a project', async () => {
  await using folder = await TestFolder.make()
  const allow = [{ effect: 'allow' as const, type: 'tool' as const, match: 'x' }]
  await expect(changeUserSettings({ allow }, { home: folder.path, env: {} })).rejects.toThrow('in a project')
})
