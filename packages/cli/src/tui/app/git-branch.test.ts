import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { GitBranch } from './git-branch.ts'

test('the branch of a folder is read from the repository around it, also in a worktree, and again after some seconds', async () => {
  const root = await mkdtemp(join(tmpdir(), 'tapetree-branch-'))
  onTestFinished(() => rm(root, { recursive: true }))
  let now = 0
  const branch = new GitBranch(() => now)
  const deep = join(root, 'main', 'src', 'deep')
  await mkdir(deep, { recursive: true })
  await mkdir(join(root, 'main', '.git', 'worktrees', 'other'), { recursive: true })
  await writeFile(join(root, 'main', '.git', 'HEAD'), 'ref: refs/heads/feat/one\n')
  expect(branch.of(deep)).toBe('feat/one')
  await writeFile(join(root, 'main', '.git', 'HEAD'), '0123456789abcdef0123456789abcdef01234567\n')
  expect(branch.of(deep)).toBe('feat/one')
  now += 3000
  expect(branch.of(deep)).toBe('01234567')
  await mkdir(join(root, 'other'))
  await writeFile(join(root, 'other', '.git'), `gitdir: ${join(root, 'main', '.git', 'worktrees', 'other')}\n`)
  await writeFile(join(root, 'main', '.git', 'worktrees', 'other', 'HEAD'), 'ref: refs/heads/two\n')
  expect(branch.of(join(root, 'other'))).toBe('two')
  expect(branch.of(undefined)).toBeUndefined()
})
