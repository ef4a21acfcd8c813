import { symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { loadInstructions, type InstructionPlace } from './instructions.ts'

test('instructions come in the order of their folders, AGENTS.md before CLAUDE.md', async () => {
  await using folder = await TestFolder.make({
    'config/AGENTS.md': 'mine\n',
    'repo/CLAUDE.md': 'root, second',
    'repo/AGENTS.md': 'root, first',
    'repo/b/CLAUDE.md': 'near',
    'repo/b/agents.md': 'has another name',
  })
  const { instructions, problems } = await loadInstructions(placesIn(folder, ['repo', 'repo/a', 'repo/b']))
  expect(instructions).toEqual([
    { path: folder.at('config/AGENTS.md'), source: 'user', text: 'mine' },
    { path: folder.at('repo/AGENTS.md'), source: 'project', text: 'root, first' },
    { path: folder.at('repo/CLAUDE.md'), source: 'project', text: 'root, second' },
    { path: folder.at('repo/b/CLAUDE.md'), source: 'project', text: 'near' },
  ])
  expect(problems).toEqual([])
})

test('two equal files in a folder count once; an empty one is ignored', async () => {
  await using folder = await TestFolder.make({
    'repo/AGENTS.md': 'same',
    'repo/CLAUDE.md': 'same\r\n',
    'repo/a/AGENTS.md': 'linked',
    'repo/b/AGENTS.md': 'referred to',
    'repo/b/CLAUDE.md': '@AGENTS.md\n',
    'repo/c/AGENTS.md': ' \n',
    'repo/d/CLAUDE.md': 'same',
  })
  await symlink('AGENTS.md', folder.at('repo/a/CLAUDE.md'))
  const { instructions } = await loadInstructions(placesIn(folder, ['repo', 'repo/a', 'repo/b', 'repo/c', 'repo/d']))
  expect(instructions.map(({ path }) => path)).toEqual([
    folder.at('repo/AGENTS.md'),
    folder.at('repo/a/AGENTS.md'),
    folder.at('repo/b/AGENTS.md'),
    folder.at('repo/d/CLAUDE.md'),
  ])
})

test('a link may stay in the repository and must not leave it', async () => {
  await using folder = await TestFolder.make({ 'repo/docs/agents.md': 'inside', secret: 'outside' })
  await symlink('docs/agents.md', folder.at('repo/AGENTS.md'))
  await symlink('../secret', folder.at('repo/CLAUDE.md'))
  const { instructions, problems } = await loadInstructions(placesIn(folder, ['repo']))
  expect(instructions.map(({ text }) => text)).toEqual(['inside'])
  expect(problems).toEqual([`${folder.at('repo/CLAUDE.md')} was left out: it leads out of ${folder.at('repo')}.`])
})

test('a long file is truncated, and both the model and the user are told', async () => {
  await using folder = await TestFolder.make({ 'repo/AGENTS.md': 'x'.repeat(50_000) })
  const { instructions, problems } = await loadInstructions(placesIn(folder, ['repo']))
  expect(instructions[0]?.text).toBe(
    `${'x'.repeat(49_152)}\n\n[The file continues after 49152 bytes. Read the rest if you need it.]`,
  )
  expect(problems).toEqual([`${folder.at('repo/AGENTS.md')} was truncated: it has more than 49152 bytes.`])
})

test('if the total is too large, those of the user and of the nearest folders are kept', async () => {
  const folders = ['repo', 'repo/a', 'repo/a/b', 'repo/a/b/c', 'repo/a/b/c/d']
  const files = ['config', ...folders].map((name) => [`${name}/AGENTS.md`, name.padEnd(40_000, '.')])
  await using folder = await TestFolder.make(Object.fromEntries(files) as Record<string, string>)
  const { instructions, problems } = await loadInstructions(placesIn(folder, folders))
  expect(instructions.map(({ path }) => path)).toEqual(
    ['config', 'repo/a/b', 'repo/a/b/c', 'repo/a/b/c/d'].map((name) => folder.at(`${name}/AGENTS.md`)),
  )
  expect(problems).toEqual(
    ['repo', 'repo/a'].map(
      (name) => `${folder.at(`${name}/AGENTS.md`)} was left out: the instructions are too long in total.`,
    ),
  )
})

function placesIn(folder: TestFolder, names: readonly string[]): InstructionPlace[] {
  const within = folder.at('repo')
  return [
    { folder: folder.at('config'), source: 'user' },
    ...names.map((name): InstructionPlace => ({ folder: folder.at(name), source: 'project', within })),
  ]
}
