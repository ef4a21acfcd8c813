import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { delimiter } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { findRepository } from '../permissions/shell/programs/git-repository.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { gitStateOf, parseStatus, type GitState } from './git-state.ts'

/** Enough time for git on a slow machine. */
const patient: Clock = { ...systemClock, wait: (_, signal) => new FakeClock().wait(1, signal) }

const nothing = { staged: 0, unstaged: 0, untracked: 0, conflicted: 0, isCut: false }

test('a status is parsed into counts', () => {
  const output = [
    '# branch.oid 1234',
    '# branch.head feature/a',
    '# branch.upstream origin/feature/a',
    '# branch.ab +2 -1',
    '1 M. N... 100644 100644 100644 a a staged.ts',
    '1 .M N... 100644 100644 100644 a a unstaged.ts',
    '1 MM N... 100644 100644 100644 a a both.ts',
    '2 R. N... 100644 100644 100644 a a R100 new.ts\told.ts',
    'u UU N... 100644 100644 100644 100644 a a a conflicted.ts',
    '? untracked.ts',
    '? "strange\\nname"',
    '! ignored.ts',
    '',
  ].join('\n')
  expect(parseStatus(output, { isCut: false })).toEqual({
    branch: 'feature/a',
    upstream: { ahead: 2, behind: 1 },
    changes: { staged: 3, unstaged: 2, untracked: 2, conflicted: 1, isCut: false },
  })
})

test('a truncated status counts its complete lines', () => {
  expect(parseStatus('# branch.head main\n? a\n? b', { isCut: true })).toEqual({
    branch: 'main',
    changes: { ...nothing, untracked: 1, isCut: true },
  })
})

test('a repository without commits, without upstream or without a branch has a state too', () => {
  const initial = '# branch.oid (initial)\n# branch.head main\n'
  expect(parseStatus(initial, { isCut: false })).toEqual({ branch: 'main', changes: nothing })
  const detached = '# branch.oid 1234\n# branch.head (detached)\n'
  expect(parseStatus(detached, { isCut: false })).toEqual({ changes: nothing })
})

test('outside of a repository there is no state', async () => {
  await using folder = await TestFolder.make()
  expect(await stateOf(folder.path)).toBeUndefined()
})

test('git reports the branch and the changes, also from a subfolder, and changes nothing', async () => {
  await using folder = await repository({ 'a.txt': 'a', 'sub/b.txt': 'b' })
  git(folder, 'add', 'a.txt')
  const index = await folder.read('.git/index')
  const state = { branch: 'trunk', changes: { ...nothing, staged: 1, untracked: 1 } }
  expect(await stateOf(folder.path)).toEqual(state)
  expect(await stateOf(folder.at('sub'))).toEqual(state)
  expect(await folder.read('.git/index')).toBe(index)
})

test('git does not run in an untrusted project: the branch is read from its file', async () => {
  await using folder = await repository({})
  await using tools = await TestFolder.make({ git: '#!/bin/sh\ntouch "$0.ran"\n' })
  await chmod(tools.at('git'), 0o755)
  const place = { cwd: folder.path, clock: patient, environment: { PATH: `${tools.path}:/usr/bin:/bin` } }
  expect(await gitStateOf(place)).toEqual({ branch: 'trunk' })
  expect(existsSync(tools.at('git.ran'))).toBe(false)
  expect(await gitStateOf({ ...place, trustedRoot: folder.path })).toMatchObject({ changes: {} })
  expect(existsSync(tools.at('git.ran'))).toBe(true)
})

test('trust applies to its own repository, and not to an outer or nested one', async () => {
  await using folder = await repository({ 'app/.git/description': '', 'app/a.txt': 'a', 'inner/a.txt': 'a' })
  git(folder, 'init', '--quiet', '--initial-branch=inner', 'inner')
  // To git, the .git of app is not a repository, and git continues with the one above.
  expect(await stateOf(folder.at('app'), { trustedRoot: folder.at('app') })).toEqual({ branch: 'trunk' })
  expect(await stateOf(folder.at('inner'), { trustedRoot: folder.path })).toEqual({ branch: 'inner' })
  expect(await stateOf(folder.at('inner'), { trustedRoot: folder.at('inner') })).toMatchObject({
    branch: 'inner',
    changes: {},
  })
})

test('a folder that looks like a git folder is not a repository, and git does not run in it', async () => {
  await using folder = await repository({
    'sub/HEAD': 'ref: refs/heads/hidden\n',
    'sub/commondir': 'x\n',
    'sub/x/objects/keep': '',
    'sub/x/refs/keep': '',
  })
  await folder.write('sub/x/config', `[core]\n\tfsmonitor = touch '${folder.at('ran')}'\n`)
  expect(await stateOf(folder.at('sub'), { trustedRoot: folder.path })).toBeUndefined()
  expect(await stateOf(folder.at('sub'), { trustedRoot: folder.at('sub') })).toBeUndefined()
  expect(existsSync(folder.at('ran'))).toBe(false)
})

test('a git program in the repository is not run', async () => {
  await using folder = await repository({
    'bin/git': '#!/bin/sh\ntouch "$0.ran"\n',
    git: '#!/bin/sh\ntouch "$0.ran"\n',
  })
  await chmod(folder.at('bin/git'), 0o755)
  await chmod(folder.at('git'), 0o755)
  const path = [folder.at('bin'), '.', '', folder.path, process.env['PATH']].join(delimiter)
  expect(await stateOf(folder.path, { environment: { PATH: path } })).toMatchObject({ changes: { untracked: 2 } })
  expect(existsSync(folder.at('bin/git.ran')) || existsSync(folder.at('git.ran'))).toBe(false)
})

test.each([
  ['core.fsmonitor', '{program}'],
  ['core.hooksPath', '{folder}/hooks'],
  ['filter.x.clean', '{program}'],
  ['filter.x.process', '{program}'],
  ['diff.external', '{program}'],
  ['core.sshCommand', '{program}'],
  ['core.gitProxy', '{program}'],
  ['core.pager', '{program}'],
  ['alias.status', '!{program}'],
  ['diff.x.textconv', '{program}'],
  ['diff.x.command', '{program}'],
  ['credential.helper', '!{program}'],
  ['lfs.extension.x.clean', '{program}'],
  ['includeIf.gitdir:**.path', '{folder}/included'],
  ['include.path', '{folder}/included'],
])('a repository whose settings have %s reports its branch, and nothing of it runs', async (name, value) => {
  await using folder = await repository({
    'program.sh': '#!/bin/sh\ntouch "$(dirname "$0")/ran"\ncat\n',
    '.gitattributes': '*.txt filter=x\n',
    'a.txt': 'a',
  })
  await folder.write('hooks/post-index-change', await folder.read('program.sh'))
  await folder.write('included', `[core]\n\tfsmonitor = ${folder.at('program.sh')}\n`)
  for (const program of ['program.sh', 'hooks/post-index-change']) await chmod(folder.at(program), 0o755)
  git(folder, 'add', 'a.txt')
  await folder.write('a.txt', 'b')
  git(folder, 'config', name, value.replace('{program}', folder.at('program.sh')).replace('{folder}', folder.path))
  expect(await stateOf(folder.path)).toEqual({ branch: 'trunk' })
  expect(existsSync(folder.at('ran')) || existsSync(folder.at('hooks/ran'))).toBe(false)
})

test('variables that would redirect git are not passed on', async () => {
  await using folder = await repository({})
  await using other = await repository({ 'a.txt': 'a' })
  const environment = { ...process.env, GIT_DIR: other.at('.git'), GIT_WORK_TREE: other.path }
  expect(await stateOf(folder.path, { environment })).toEqual({ branch: 'trunk', changes: nothing })
})

test('without git the branch is still known, also in a worktree', async () => {
  await using folder = await TestFolder.make({
    'main/.git/HEAD': 'ref: refs/heads/some/branch\n',
    'main/.git/worktrees/w/HEAD': 'ref: refs/heads/other\n',
    'main/.git/worktrees/w/commondir': '../..\n',
    'w/.git': 'gitdir: ../main/.git/worktrees/w\n',
    'detached/.git/HEAD': '0123456789012345678901234567890123456789\n',
    'strange/.git/HEAD': 'ref: refs/heads/a\nand more\n',
    'empty/.git/x': '',
  })
  for (const name of ['main', 'detached', 'strange']) {
    for (const part of ['objects', 'refs']) await folder.write(`${name}/.git/${part}/keep`, '')
  }
  const environment = { PATH: folder.at('empty') }
  const states = ['main', 'w', 'detached', 'strange', 'empty'].map((name) => stateOf(folder.at(name), { environment }))
  expect(await Promise.all(states)).toEqual([{ branch: 'some/branch' }, { branch: 'other' }, {}, {}, undefined])
})

test('a git that takes more than a second is stopped, and the branch is still known', async () => {
  await using folder = await repository({})
  await using tools = await TestFolder.make({
    git: `#!/bin/sh\nexec ${process.execPath} -e 'setInterval(() => {}, 1000)'\n`,
  })
  await chmod(tools.at('git'), 0o755)
  const clock = new FakeClock()
  const state = stateOf(folder.path, { clock, environment: { PATH: tools.path } })
  expect(await clock.skip()).toBe(1000)
  expect(await state).toEqual({ branch: 'trunk' })
})

test('an abort rejects the call', async () => {
  await using folder = await repository({})
  await expect(stateOf(folder.path, { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
})

async function stateOf(
  cwd: string,
  options: Partial<Parameters<typeof gitStateOf>[0]> = {},
): Promise<GitState | undefined> {
  const found = findRepository(cwd)
  const trustedRoot = typeof found === 'object' ? found.root : cwd
  return gitStateOf({ cwd, clock: patient, trustedRoot, ...options })
}

async function repository(files: Record<string, string>): Promise<TestFolder> {
  const folder = await TestFolder.make(files)
  git(folder, 'init', '--quiet', '--initial-branch=trunk')
  return folder
}

function git(folder: TestFolder, ...words: string[]): void {
  const { PATH } = process.env
  execFileSync('git', words, { cwd: folder.path, env: { PATH, HOME: folder.path, GIT_CONFIG_NOSYSTEM: '1' } })
}
