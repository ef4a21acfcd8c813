import { execFileSync } from 'node:child_process'
import { rmSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { linkedFolders } from './git-index.ts'
import { repositoryProblem } from './git-repository.ts'

let folder: TestFolder

beforeEach(async () => {
  folder = await TestFolder.make({ 'a.txt': 'a\n' })
})

afterEach(() => folder[Symbol.asyncDispose]())

function git(...words: string[]): void {
  const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'protocol.file.allow=always']
  const env = { PATH: process.env['PATH'], HOME: folder.path, GIT_CONFIG_NOSYSTEM: '1' }
  execFileSync('git', [...identity, ...words], { cwd: folder.path, env, stdio: 'ignore' })
}

/** A repository with another one in it, which the index of the outer one knows of. */
function makeNested(...options: string[]): void {
  git('init', '-q', ...options, '.')
  git('init', '-q', ...options, 'libs/inner')
  git('-C', 'libs/inner', 'commit', '-q', '--allow-empty', '-m', 'first')
  git('add', 'a.txt', 'libs/inner')
  git('commit', '-q', '-m', 'first')
}

test('a folder without a repository has no problem', () => {
  expect(repositoryProblem(folder.path)).toBeUndefined()
})

test('a repository as git makes it has no problem, seen from any folder in it', async () => {
  git('init', '-q', '.')
  git('remote', 'add', 'origin', 'https://example.org/x.git')
  await folder.write('src/deep/b.txt', 'b')
  expect(repositoryProblem(folder.at('src/deep'))).toBeUndefined()
})

test.each([
  ['core.fsmonitor', './p.sh'],
  ['diff.external', './p.sh'],
  ['filter.x.clean', './p.sh'],
  ['diff.x.textconv', './p.sh'],
  ['gpg.program', './p.sh'],
  ['core.pager', './p.sh'],
  ['alias.st', '!./p.sh'],
  ['include.path', '../evil.conf'],
  ['core.hooksPath', 'hooks'],
  ['remote.origin.promisor', 'true'],
  ['core.worktree', '/'],
  ['core.worktree', '../..'],
])('a repository that sets %s is asked about', (key, value) => {
  git('init', '-q', '.')
  git('config', key, value)
  expect(repositoryProblem(folder.path)).toContain(folder.at('.git/config'))
})

test.each(['config', 'config.worktree', 'commondir', 'index'])(
  'a pipe or a device in the place of .git/%s is asked about, and not waited for',
  (name) => {
    git('init', '-q', '.')
    const path = folder.at(`.git/${name}`)
    rmSync(path, { force: true })
    execFileSync('mkfifo', [path])
    expect(repositoryProblem(folder.path)).toContain('cannot be read')
    rmSync(path)
    symlinkSync('/dev/zero', path)
    expect(repositoryProblem(folder.path)).toContain('cannot be read')
  },
)

test('a pipe in the place of .git is asked about, and not waited for', () => {
  execFileSync('mkfifo', [folder.at('.git')])
  expect(repositoryProblem(folder.path)).toBe(`${folder.at('.git')} cannot be read`)
})

test('a hook that is run when git reads is asked about', async () => {
  git('init', '-q', '.')
  await folder.write('.git/hooks/post-index-change', '#!/bin/sh\n')
  expect(repositoryProblem(folder.path)).toContain('post-index-change')
})

test('a folder in the shape of a repository is asked about', async () => {
  git('init', '-q', '--bare', 'docs/data')
  expect(repositoryProblem(folder.at('docs/data'))).toContain('without a working folder')
})

test('the settings of a linked working folder are those of its repository', () => {
  git('init', '-q', 'main')
  git('-C', 'main', 'commit', '-q', '--allow-empty', '-m', 'first')
  git('-C', 'main', 'worktree', 'add', '-q', '../other')
  expect(repositoryProblem(folder.at('other'))).toBeUndefined()
  git('-C', 'main', 'config', 'core.fsmonitor', './p.sh')
  expect(repositoryProblem(folder.at('other'))).toContain('fsmonitor')
})

describe('a repository inside of another', () => {
  test('has its settings looked at, since git goes into it', () => {
    makeNested()
    expect(repositoryProblem(folder.path)).toBeUndefined()
    git('-C', 'libs/inner', 'config', 'filter.x.clean', './p.sh')
    expect(repositoryProblem(folder.path)).toContain(folder.at('libs/inner/.git/config'))
  })

  test('has those looked at that lie in it', () => {
    makeNested()
    git('init', '-q', 'libs/inner/innermost')
    git('-C', 'libs/inner/innermost', 'commit', '-q', '--allow-empty', '-m', 'first')
    git('-C', 'libs/inner', 'add', 'innermost')
    expect(repositoryProblem(folder.path)).toBeUndefined()
    git('-C', 'libs/inner/innermost', 'config', 'core.fsmonitor', './p.sh')
    expect(repositoryProblem(folder.path)).toContain('fsmonitor')
  })

  test('has no problem as a submodule, and one where its settings have one', () => {
    git('init', '-q', 'library')
    git('-C', 'library', 'commit', '-q', '--allow-empty', '-m', 'first')
    git('init', '-q', 'main')
    git('-C', 'main', 'submodule', 'add', '-q', folder.at('library'), 'sub')
    expect(repositoryProblem(folder.at('main'))).toBeUndefined()
    expect(repositoryProblem(folder.at('main/sub'))).toBeUndefined()
    git('-C', 'main/sub', 'config', 'core.fsmonitor', './p.sh')
    expect(repositoryProblem(folder.at('main'))).toContain('fsmonitor')
    expect(repositoryProblem(folder.at('main/sub'))).toContain('fsmonitor')
  })
})

describe('the index', () => {
  test.each(['2', '3', '4'])('of version %s is read', (version) => {
    makeNested()
    git('add', '-N', 'a.txt')
    git('update-index', '--index-version', version)
    expect(linkedFolders(folder.at('.git'), { bytes: 20 })).toEqual(['libs/inner'])
  })

  test('is read where names are hashed in the longer way', () => {
    makeNested('--object-format=sha256')
    expect(linkedFolders(folder.at('.git'), { bytes: 32 })).toEqual(['libs/inner'])
    git('-C', 'libs/inner', 'config', 'core.fsmonitor', './p.sh')
    expect(repositoryProblem(folder.path)).toContain('fsmonitor')
  })

  test('that is split or broken is asked about', async () => {
    makeNested()
    git('update-index', '--split-index')
    expect(repositoryProblem(folder.path)).toContain('cannot be read')
    git('update-index', '--no-split-index')
    await folder.write('.git/index', Buffer.concat([Buffer.from('DIRC'), Buffer.from([0, 0, 0, 9, 0, 0, 0xe0, 0])]))
    expect(repositoryProblem(folder.path)).toContain('cannot be read')
  })
})
