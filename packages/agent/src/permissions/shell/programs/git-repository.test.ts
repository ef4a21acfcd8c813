import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TestFolder } from '../../../testing/test-folder.ts'
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

/** A repository with a nested one that is in the index of the outer one. */
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

test('a repository as git creates it has no problem, from any folder in it', async () => {
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
  ['core.worktree', 'sub'],
  ['lfs.extension.x.clean', './p.sh'],
  ['lfs.customtransfer.x.path', './p.sh'],
  ['gc.recentObjectsHook', './p.sh'],
  ['includeIf.gitdir:**.path', '../evil.conf'],
  ['core.alternateRefsCommand', './p.sh'],
  ['credential.helper', '!./p.sh'],
  ['url.ext::sh.insteadOf', 'https://'],
  ['merge.x.driver', './p.sh'],
  ['submodule.x.update', '!./p.sh'],
  ['extensions.partialClone', 'origin'],
  ['core.sshCommand', './p.sh'],
  ['core.editor', './p.sh'],
  ['uploadpack.packObjectsHook', './p.sh'],
  ['core.worktree', '../..'],
])('a repository that sets %s has a problem', (key, value) => {
  git('init', '-q', '.')
  git('config', key, value)
  expect(repositoryProblem(folder.path)).toContain(folder.at('.git/config'))
})

test.each(['config', 'config.worktree', 'commondir', 'index'])(
  'a pipe or a device at .git/%s is a problem, and is not waited for',
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

test('a pipe at .git is a problem, and is not waited for', () => {
  execFileSync('mkfifo', [folder.at('.git')])
  expect(repositoryProblem(folder.path)).toBe(`${folder.at('.git')} cannot be read`)
})

test('a cyclic link at .git is a problem', () => {
  symlinkSync('.git', folder.at('.git'))
  expect(repositoryProblem(folder.path)).toContain('.git cannot be read')
})

test('a hook that runs when git reads is a problem', async () => {
  git('init', '-q', '.')
  await folder.write('.git/hooks/post-index-change', '#!/bin/sh\n')
  expect(repositoryProblem(folder.path)).toContain('post-index-change')
})

test('a folder with the layout of a repository is a problem', async () => {
  git('init', '-q', '--bare', 'docs/data')
  expect(repositoryProblem(folder.at('docs/data'))).toContain('may be a bare repository')
})

describe('git looks further up', () => {
  const hostile = async (): Promise<void> => {
    git('init', '-q', '.')
    git('config', 'filter.x.clean', './p.sh')
    await folder.write('app/b.txt', 'b')
  }

  test('if .git is empty', async () => {
    await hostile()
    mkdirSync(folder.at('app/.git'))
    expect(repositoryProblem(folder.at('app'))).toContain('filter.clean')
  })

  test('if .git has everything but a HEAD', async () => {
    await hostile()
    for (const name of ['objects', 'refs']) mkdirSync(folder.at(`app/.git/${name}`), { recursive: true })
    await folder.write('app/.git/config', '[core]\n\tbare = false\n')
    expect(repositoryProblem(folder.at('app'))).toContain('filter.clean')
  })

  test('and an incomplete git folder is a problem, because git may or may not use it', async () => {
    await hostile()
    await folder.write('app/.git/HEAD', 'ref: refs/heads/main\n')
    expect(repositoryProblem(folder.at('app'))).toBe(`${folder.at('app/.git')} is an incomplete repository`)
    for (const name of ['objects', 'refs']) mkdirSync(folder.at(`app/.git/${name}`))
    expect(repositoryProblem(folder.at('app'))).toBeUndefined()
    await folder.write('app/.git/HEAD', 'nonsense\n')
    expect(repositoryProblem(folder.at('app'))).toBe(`${folder.at('app/.git')} is an incomplete repository`)
  })
})

/** A folder that git treats as a repository and that consists of files which any commit can contain. */
async function hideRepository(at: string): Promise<void> {
  await folder.write(`${at}/HEAD`, 'ref: refs/heads/main\n')
  await folder.write(`${at}/commondir`, 'x\n')
  await folder.write(`${at}/config.worktree`, '[core]\n\tbare = false\n\tworktree = wt\n')
  await folder.write(`${at}/x/objects/keep`, '')
  await folder.write(`${at}/x/refs/keep`, '')
  await folder.write(`${at}/x/config`, '[extensions]\n\tworktreeConfig = true\n[filter "e"]\n\tclean = ./p.sh\n')
}

test('a folder with a HEAD is a problem, wherever its other parts are', async () => {
  git('init', '-q', '.')
  await hideRepository('sub')
  await folder.write('sub/wt/deep/f.txt', 'f')
  for (const at of ['sub', 'sub/wt', 'sub/wt/deep', 'sub/x']) {
    expect(repositoryProblem(folder.at(at))).toContain(`${folder.at('sub')} may be a bare repository`)
  }
  expect(repositoryProblem(folder.path)).toBeUndefined()
})

test('a .git file is resolved as the kernel does, not as its text seems to say', async () => {
  await folder.write('a/.git', 'gitdir: link/../git\n')
  git('init', '-q', '--bare', 'a/git')
  git('init', '-q', '--bare', 'elsewhere/git')
  git('-C', 'elsewhere/git', 'config', 'core.fsmonitor', './p.sh')
  mkdirSync(folder.at('elsewhere/inner'))
  symlinkSync('../elsewhere/inner', folder.at('a/link'))
  expect(repositoryProblem(folder.at('a'))).toContain('fsmonitor')
})

test.each([
  ['leads nowhere', 'gitdir: nowhere\n'],
  ['refers to a folder that is not a repository', 'gitdir: .\n'],
  ['is not UTF-8', Buffer.from('gitdir: \xff\n', 'latin1')],
  ['has two lines', 'gitdir: x\ngitdir: y\n'],
])('a .git file that %s is a problem', async (_, text) => {
  git('init', '-q', '.')
  await folder.write('sub/.git', text)
  expect(repositoryProblem(folder.at('sub'))).toContain(folder.at('sub/.git'))
})

test('a .git that is a link to itself is a problem', () => {
  symlinkSync('.git', folder.at('.git'))
  expect(repositoryProblem(folder.path)).toContain('cannot be read')
})

test('the folder in commondir is used as written', async () => {
  git('init', '-q', '.')
  await folder.write('.git/commondir', ' x\n')
  for (const name of ['objects', 'refs']) mkdirSync(folder.at(`.git/ x/${name}`), { recursive: true })
  for (const name of ['objects', 'refs']) mkdirSync(folder.at(`.git/x/${name}`), { recursive: true })
  await folder.write('.git/ x/config', '[core]\n\tfsmonitor = ./p.sh\n')
  expect(repositoryProblem(folder.path)).toContain('fsmonitor')
})

test('hooks are a problem for commands that run them', async () => {
  git('init', '-q', '.')
  await folder.write('.git/hooks/pre-commit', '#!/bin/sh\n')
  await folder.write('.git/hooks/pre-push.sample', '#!/bin/sh\n')
  expect(repositoryProblem(folder.path)).toBeUndefined()
  expect(repositoryProblem(folder.path, { runsHooks: true })).toContain('pre-commit')
})

test('a linked working tree has the settings of its repository', () => {
  git('init', '-q', 'main')
  git('-C', 'main', 'commit', '-q', '--allow-empty', '-m', 'first')
  git('-C', 'main', 'worktree', 'add', '-q', '../other')
  expect(repositoryProblem(folder.at('other'))).toBeUndefined()
  git('-C', 'main', 'config', 'core.fsmonitor', './p.sh')
  expect(repositoryProblem(folder.at('other'))).toContain('fsmonitor')
})

describe('a nested repository', () => {
  test('has its settings checked, since git enters it', () => {
    makeNested()
    expect(repositoryProblem(folder.path)).toBeUndefined()
    git('-C', 'libs/inner', 'config', 'filter.x.clean', './p.sh')
    expect(repositoryProblem(folder.path)).toContain(folder.at('libs/inner/.git/config'))
  })

  test('has its own nested repositories checked', () => {
    makeNested()
    git('init', '-q', 'libs/inner/innermost')
    git('-C', 'libs/inner/innermost', 'commit', '-q', '--allow-empty', '-m', 'first')
    git('-C', 'libs/inner', 'add', 'innermost')
    expect(repositoryProblem(folder.path)).toBeUndefined()
    git('-C', 'libs/inner/innermost', 'config', 'core.fsmonitor', './p.sh')
    expect(repositoryProblem(folder.path)).toContain('fsmonitor')
  })

  test('has its settings checked in the folder that its git folder names', async () => {
    makeNested()
    git('init', '-q', '--bare', 'shared')
    await folder.write('libs/inner/.git/commondir', `${folder.at('shared')}\n`)
    git('-C', 'shared', 'config', 'diff.external', './p.sh')
    expect(repositoryProblem(folder.path)).toContain('diff.external')
    await folder.write('.git/modules/a/HEAD', 'ref: refs/heads/main\n')
    await folder.write('.git/modules/a/commondir', `${folder.at('shared')}\n`)
    rmSync(folder.at('libs/inner'), { recursive: true })
    expect(repositoryProblem(folder.path)).toContain('diff.external')
  })

  test('has no problem as a submodule, and one if its settings have one', () => {
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

  test('is read if the repository uses SHA-256', () => {
    makeNested('--object-format=sha256')
    expect(linkedFolders(folder.at('.git'), { bytes: 32 })).toEqual(['libs/inner'])
    git('-C', 'libs/inner', 'config', 'core.fsmonitor', './p.sh')
    expect(repositoryProblem(folder.path)).toContain('fsmonitor')
  })

  test('that is sparse is a problem', async () => {
    makeNested()
    await folder.write('dir/b.txt', 'b')
    git('add', 'dir')
    git('commit', '-q', '-m', 'second')
    git('config', 'extensions.worktreeConfig', 'true')
    git('sparse-checkout', 'set', '--cone', '--sparse-index', 'libs')
    expect(linkedFolders(folder.at('.git'), { bytes: 20 })).toBeUndefined()
  })

  test('with a nested repository whose name is not UTF-8 is a problem', () => {
    makeNested()
    const name = Buffer.concat([Buffer.from(`${folder.path}/`), Buffer.from([0xff])])
    renameSync(folder.at('libs/inner'), name)
    git('add', '-A')
    expect(repositoryProblem(folder.path)).toContain('cannot be read')
  })

  test('that is split or damaged is a problem', async () => {
    makeNested()
    git('update-index', '--split-index')
    expect(repositoryProblem(folder.path)).toContain('cannot be read')
    git('update-index', '--no-split-index')
    await folder.write('.git/index', Buffer.concat([Buffer.from('DIRC'), Buffer.from([0, 0, 0, 9, 0, 0, 0xe0, 0])]))
    expect(repositoryProblem(folder.path)).toContain('cannot be read')
  })
})
