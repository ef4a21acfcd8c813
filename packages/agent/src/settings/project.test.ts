import { execFileSync } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { findProjectRoot, projectLimits, readProject } from './project.ts'

test('the root of a repository is the nearest folder with .git, a folder, a file or a link', async () => {
  await using folder = await TestFolder.make({
    'a/.git/HEAD': '',
    'a/b/c/x': '',
    'w/.git': 'gitdir: /elsewhere\n',
    'w/d/x': '',
    'l/e/x': '',
    'none/f/x': '',
  })
  await symlink('/nowhere', folder.at('l/.git'))
  await symlink(folder.at('a/b'), folder.at('none/link'))
  expect(await findProjectRoot(folder.at('a/b/c'))).toBe(folder.at('a'))
  expect(await findProjectRoot(folder.at('w/d'))).toBe(folder.at('w'))
  expect(await findProjectRoot(folder.at('l/e'))).toBe(folder.at('l'))
  expect(await findProjectRoot(folder.at('none/f'))).toBe(folder.at('none/f'))
  // By its real path.
  expect(await findProjectRoot(folder.at('none/link'))).toBe(folder.at('a'))
})

test('configuration comes from all folders from the root to the working folder, separate from instructions', async () => {
  await using folder = await TestFolder.make({
    '.tapetree/settings.json': '{}',
    '.agents/skills/a/SKILL.md': 'a',
    'AGENTS.md': 'root',
    'x/.agents/skills/b/SKILL.md': 'b',
    'x/CLAUDE.md': 'x',
    'y/.agents/skills/c/SKILL.md': 'c',
    '.tapetreeish/z': '',
    'src/index.ts': '',
  })
  const { files, instructions, folders, leftOut, isComplete } = await readProject(folder.path, folder.at('x'))
  expect(files.map(({ path }) => path)).toEqual([
    '.agents/skills/a/SKILL.md',
    '.tapetree/settings.json',
    'x/.agents/skills/b/SKILL.md',
  ])
  expect(instructions.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])).toEqual([
    ['AGENTS.md', 'root'],
    ['x/CLAUDE.md', 'x'],
  ])
  expect([folders, leftOut, isComplete]).toEqual([['', 'x'], [], true])
})

test('a link within the repository is read; one that leads out, is dangling or cyclic is left out', async () => {
  await using folder = await TestFolder.make({
    'repository/AGENTS.md': 'words',
    'repository/docs/skill/SKILL.md': 'skill',
    'repository/.tapetree/x.md': 'x',
    'repository-evil/settings.json': '{}',
  })
  await symlink('AGENTS.md', folder.at('repository/CLAUDE.md'))
  await symlink('../docs', folder.at('repository/.tapetree/docs'))
  await symlink('../../repository-evil', folder.at('repository/.tapetree/evil'))
  await symlink('..', folder.at('repository/.tapetree/up'))
  await symlink('nothing', folder.at('repository/.tapetree/gone'))
  await symlink('self', folder.at('repository/.tapetree/self'))
  const { files, instructions, leftOut } = await readProject(folder.at('repository'))
  expect(instructions.map(({ path }) => path)).toEqual(['AGENTS.md', 'CLAUDE.md'])
  expect(files.map(({ path }) => path)).toContain('.tapetree/docs/skill/SKILL.md')
  expect(leftOut).toEqual([
    { path: '.tapetree/evil', reason: 'It is a link that leaves the repository.' },
    { path: '.tapetree/gone', reason: 'It is a dangling link.' },
    { path: '.tapetree/self', reason: 'It is a cyclic link.' },
    { path: '.tapetree/up/.tapetree', reason: 'It is a cyclic link.' },
  ])
})

test('special and large files are left out, and never block', async () => {
  await using folder = await TestFolder.make({ '.tapetree/big': 'x'.repeat(projectLimits.fileBytes + 1) })
  execFileSync('mkfifo', [folder.at('.tapetree/pipe')])
  const { files, leftOut, isComplete } = await readProject(folder.path)
  expect([files, leftOut, isComplete]).toEqual([
    [],
    [
      { path: '.tapetree/big', reason: 'It is larger than 1024 KiB.' },
      { path: '.tapetree/pipe', reason: 'It is not a regular file.' },
    ],
    true,
  ])
})

test('content beyond the limits is incomplete', async () => {
  await using folder = await TestFolder.make()
  await mkdir(folder.at(`.tapetree/${'d/'.repeat(projectLimits.depth)}`), { recursive: true })
  expect(await readProject(folder.path)).toMatchObject({ files: [], isComplete: false })
})
