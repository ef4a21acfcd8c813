import { symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { loadResources, type ResourcePlaces, type Resources } from './load-resources.ts'

const files = {
  'home/.agents/skills/shared/SKILL.md': skill('shared', 'user'),
  'home/.agents/skills/mine/SKILL.md': skill('mine', 'user'),
  'config/skills/shared/SKILL.md': skill('shared', 'config'),
  'config/skills/own/SKILL.md': skill('own', 'config'),
  'config/prompts/both.md': 'config',
  'config/AGENTS.md': 'config',
  'above/.agents/skills/above/SKILL.md': skill('above', 'above'),
  'above/AGENTS.md': 'above',
  'above/repo/.git/HEAD': 'ref: refs/heads/main',
  'above/repo/.agents/skills/shared/SKILL.md': skill('shared', 'root'),
  'above/repo/.agents/skills/near/SKILL.md': skill('near', 'root'),
  'above/repo/.agents/skills/own/SKILL.md': skill('own', 'root'),
  'above/repo/.tapetree/prompts/both.md': 'root',
  'above/repo/.tapetree/prompts/near.md': 'root',
  'above/repo/AGENTS.md': 'root',
  'above/repo/packages/one/.agents/skills/near/SKILL.md': skill('near', 'cwd'),
  'above/repo/packages/one/.tapetree/prompts/near.md': 'cwd',
  'above/repo/packages/one/CLAUDE.md': 'cwd',
  'extension/skills/extra/SKILL.md': skill('extra', 'extension'),
  'extension/prompts/extra.md': 'extension',
}

test('a trusted project contributes everything between the working folder and the root of the repository', async () => {
  await using folder = await TestFolder.make(files)
  const resources = await loadResources(placesIn(folder))
  expect(namesIn(resources)).toEqual({
    skills: ['mine: user', 'shared: user', 'near: cwd', 'own: root', 'extra: extension'],
    templates: ['both: config', 'near: cwd', 'extra: extension'],
    instructions: ['config', 'root', 'cwd'],
  })
  expect(resources.problems.map((problem) => problem.replaceAll(`${folder.path}/`, ''))).toEqual([
    'above/repo/.agents/skills/near/SKILL.md was left out: the skill "near" already exists, above/repo/packages/one/.agents/skills/near/SKILL.md.',
    'above/repo/.agents/skills/shared/SKILL.md was left out: the skill "shared" already exists, home/.agents/skills/shared/SKILL.md.',
    'config/skills/own/SKILL.md was left out: the skill "own" already exists, above/repo/.agents/skills/own/SKILL.md.',
    'config/skills/shared/SKILL.md was left out: the skill "shared" already exists, home/.agents/skills/shared/SKILL.md.',
    'above/repo/.tapetree/prompts/both.md was left out: the template "both" already exists, config/prompts/both.md.',
    'above/repo/.tapetree/prompts/near.md was left out: the template "near" already exists, above/repo/packages/one/.tapetree/prompts/near.md.',
  ])
})

test('an untrusted project contributes nothing, not even a problem', async () => {
  await using folder = await TestFolder.make({ ...files, 'above/repo/.agents/skills/bad/SKILL.md': 'bad' })
  const resources = await loadResources({ ...placesIn(folder), isTrusted: false })
  expect(namesIn(resources)).toEqual({
    skills: ['mine: user', 'shared: user', 'own: config', 'extra: extension'],
    templates: ['both: config', 'extra: extension'],
    instructions: ['config'],
  })
  expect(resources.problems).toEqual([expect.stringContaining('the skill "shared" already exists')])
})

test('outside of a repository only the working folder counts', async () => {
  await using folder = await TestFolder.make(files)
  const { repositoryRoot: _, ...places } = placesIn(folder)
  expect(namesIn(await loadResources(places)).instructions).toEqual(['config', 'cwd'])
  const elsewhere = { ...places, repositoryRoot: folder.at('extension') }
  expect(namesIn(await loadResources(elsewhere)).instructions).toEqual(['config', 'cwd'])
})

test('the home folder as a project contributes its skills once', async () => {
  await using folder = await TestFolder.make(files)
  const home = folder.at('home')
  const { skills, problems } = await loadResources({
    cwd: home,
    home,
    configFolder: folder.at('none'),
    repositoryRoot: home,
    isTrusted: true,
  })
  expect(skills.map(({ name, source }) => `${name} ${source}`)).toEqual(['mine user', 'shared user'])
  expect(problems).toEqual([])
})

test('a working folder behind a link is resolved', async () => {
  await using folder = await TestFolder.make(files)
  await symlink('above/repo/packages/one', folder.at('link'))
  const resources = await loadResources({ ...placesIn(folder), cwd: folder.at('link') })
  expect(namesIn(resources).instructions).toEqual(['config', 'root', 'cwd'])
})

test('at most a hundred problems are listed', async () => {
  const bad = Array.from({ length: 120 }, (_, index) => [`home/.agents/skills/bad${index}/SKILL.md`, 'bad'])
  await using folder = await TestFolder.make({ ...files, ...Object.fromEntries(bad) })
  const { problems } = await loadResources({ ...placesIn(folder), isTrusted: false })
  expect(problems).toHaveLength(101)
  expect(problems.at(-1)).toBe('21 more problems are not listed.')
})

function placesIn(folder: TestFolder): ResourcePlaces {
  return {
    cwd: folder.at('above/repo/packages/one'),
    home: folder.at('home'),
    configFolder: folder.at('config'),
    repositoryRoot: folder.at('above/repo'),
    isTrusted: true,
    extraSkillFolders: [folder.at('extension/skills')],
    extraTemplateFolders: [folder.at('extension/prompts')],
  }
}

function namesIn({ skills, templates, instructions }: Resources): Record<string, string[]> {
  return {
    skills: skills.map(({ name, description }) => `${name}: ${description}`),
    templates: templates.map(({ name, body }) => `${name}: ${body}`),
    instructions: instructions.map(({ text }) => text),
  }
}

function skill(name: string, description: string): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\nDo it.\n`
}
