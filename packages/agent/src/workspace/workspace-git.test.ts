import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, rm, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { noRules } from '../permissions/rules.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { gitDiff, gitStatus, parseGitStatus, type GitWorkspace } from './workspace-git.ts'

/** Enough time for git on a slow machine. */
const patient: Clock = { ...systemClock, wait: (_, signal) => new FakeClock().wait(1, signal) }

function place(
  folder: TestFolder,
  { cwd = folder.path, ...rest }: Partial<GitWorkspace> & { cwd?: string } = {},
): GitWorkspace {
  const policy = { mode: 'ask' as const, rules: noRules, cwd, home: '/nowhere' }
  return { policy, roots: [folder.path], clock: patient, ...rest }
}

const git = (folder: TestFolder, ...command: string[]): string =>
  execFileSync('git', ['-C', folder.path, '-c', 'user.name=A', '-c', 'user.email=a@example.com', ...command], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: folder.path, GIT_CONFIG_NOSYSTEM: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })

async function repository(files: Record<string, string>): Promise<TestFolder> {
  const folder = await TestFolder.make(files)
  git(folder, 'init', '--quiet', '--initial-branch=trunk')
  return folder
}

async function committed(files: Record<string, string>): Promise<TestFolder> {
  const folder = await repository(files)
  git(folder, 'add', '--all')
  git(folder, 'commit', '--quiet', '--message', 'start')
  return folder
}

const quiet = { staged: 'unmodified', unstaged: 'unmodified', isUntracked: false, isConflicted: false }

describe('the status', () => {
  test('lists the branch and what happened to each file, also with strange names', async () => {
    await using folder = await committed({ 'a.txt': 'a\n', 'old name': 'long enough to be found\n', 'gone.txt': 'x\n' })
    await folder.write('a.txt', 'b\n')
    git(folder, 'mv', 'old name', 'new\nname')
    await folder.write('sub/later.txt', 'new\n')
    await unlink(folder.at('gone.txt'))
    const status = await gitStatus(place(folder))
    expect(status).toMatchObject({ branch: 'trunk', isCut: false })
    expect(status.commit).toMatch(/^[0-9a-f]{40}$/)
    expect(status.files).toEqual([
      { ...quiet, path: 'a.txt', unstaged: 'modified' },
      { ...quiet, path: 'gone.txt', unstaged: 'deleted' },
      { ...quiet, path: 'new\nname', originalPath: 'old name', staged: 'renamed' },
      { ...quiet, path: 'sub/later.txt', isUntracked: true },
    ])
  })

  test('of a subfolder has only its files, with paths relative to it', async () => {
    await using folder = await committed({ 'a.txt': 'a\n', 'sub/b.txt': 'b\n' })
    await folder.write('a.txt', 'changed\n')
    await folder.write('sub/b.txt', 'changed\n')
    const { files } = await gitStatus(place(folder, { cwd: folder.at('sub') }))
    expect(files).toEqual([{ ...quiet, path: 'b.txt', unstaged: 'modified' }])
  })

  test('before the first commit has no commit', async () => {
    await using folder = await repository({ 'a.txt': 'a\n' })
    git(folder, 'add', 'a.txt')
    expect(await gitStatus(place(folder))).toEqual({
      branch: 'trunk',
      files: [{ ...quiet, path: 'a.txt', staged: 'added' }],
      isCut: false,
    })
  })

  test('that was truncated has its complete records', () => {
    const output = ['# branch.head main', '? a', '? b', '2 R. N... 1 1 1 a a R100 new', ''].join('\0')
    expect(parseGitStatus(output, { prefix: '', isCut: true })).toEqual({
      branch: 'main',
      files: ['a', 'b'].map((path) => ({ ...quiet, path, isUntracked: true })),
      isCut: true,
    })
    expect(parseGitStatus('# branch.head main\0? a\0? incomp', { prefix: '', isCut: true }).files).toHaveLength(1)
  })

  test('lists a conflict, and the distance from the upstream', () => {
    const output = [
      '# branch.oid 12',
      '# branch.head a',
      '# branch.upstream o/a',
      '# branch.ab +2 -1',
      'u UU N... 1 1 1 1 a a a both sides',
      '',
    ].join('\0')
    expect(parseGitStatus(output, { prefix: '', isCut: false })).toEqual({
      branch: 'a',
      commit: '12',
      upstream: { name: 'o/a', ahead: 2, behind: 1 },
      files: [{ ...quiet, path: 'both sides', isConflicted: true }],
      isCut: false,
    })
  })

  test('outside of a repository says so', async () => {
    await using folder = await TestFolder.make()
    await expect(gitStatus(place(folder))).rejects.toMatchObject({ code: 'no-repository' })
  })

  test('of a git that does not answer says so', async () => {
    await using folder = await repository({})
    await using tools = await TestFolder.make({ git: '#!/bin/sh\nexec sleep 1000\n' })
    await chmod(tools.at('git'), 0o755)
    const clock = new FakeClock()
    const environment = { PATH: `${tools.path}:/bin:/usr/bin` }
    const failed = expect(gitStatus(place(folder, { clock, environment }))).rejects.toMatchObject({
      code: 'git-failed',
    })
    expect(await clock.skip()).toBe(10_000)
    await failed
  })
})

describe('a diff', () => {
  test('compares the working tree, the index and HEAD', async () => {
    await using folder = await committed({ 'a.txt': 'one\n' })
    await folder.write('a.txt', 'two\n')
    git(folder, 'add', 'a.txt')
    await folder.write('a.txt', 'three\n')
    const of = async (scope: 'all' | 'staged' | 'unstaged'): Promise<string[]> => {
      const diff = await gitDiff('a.txt', scope, place(folder))
      expect(diff).toMatchObject({ path: 'a.txt', added: 1, removed: 1, isBinary: false, isCut: false })
      return diff.patch.split('\n').filter((line) => /^[-+][a-z]/.test(line))
    }
    expect(await of('all')).toEqual(['-one', '+three'])
    expect(await of('staged')).toEqual(['-one', '+two'])
    expect(await of('unstaged')).toEqual(['-two', '+three'])
  })

  test('of a renamed, untracked, binary, unchanged or first file is complete', async () => {
    const text = 'a line that stays\nanother one\nand a third\n'
    await using folder = await committed({ old: text, bin: 'x\0y', same: 's\n' })
    git(folder, 'mv', 'old', 'new')
    await folder.write('new', `${text}more\n`)
    await folder.write('bin', 'x\0z')
    await folder.write('sub/fresh', 'first\nlast')
    await folder.write('empty', '')
    const all = (path: string): ReturnType<typeof gitDiff> => gitDiff(path, 'all', place(folder))
    expect(await all('new')).toMatchObject({ originalPath: 'old', added: 1, removed: 0 })
    expect((await all('new')).patch).toContain('rename from old')
    expect(await all('bin')).toMatchObject({ isBinary: true, patch: '' })
    expect(await all('same')).toMatchObject({ patch: '', added: 0 })
    expect(await all('sub/fresh')).toMatchObject({
      isUntracked: true,
      added: 2,
      patch: '--- /dev/null\n+++ b/sub/fresh\n@@ -0,0 +1,2 @@\n+first\n+last\n\\ No newline at end of file\n',
    })
    expect(await all('empty')).toMatchObject({ isUntracked: true, added: 0 })
    expect(await gitDiff('sub/fresh', 'staged', place(folder))).toMatchObject({ patch: '' })
    await using first = await repository({ 'a.txt': 'a\n' })
    git(first, 'add', 'a.txt')
    expect(await gitDiff('a.txt', 'all', place(first))).toMatchObject({ added: 1, removed: 0 })
  })

  test('shows no secret, no other folder, and no file below a path', async () => {
    await using folder = await committed({ '.env': 'A=1\n', 'keys/server.pem': 'x\n', 'sub/a': 'a\n', thing: 't\n' })
    await folder.write('.env', 'A=2\n')
    await folder.write('sub/a', 'b\n')
    await rm(folder.at('thing'))
    await folder.write('thing/.env', 'B=1\n')
    git(folder, 'add', 'thing/.env')
    for (const path of ['.env', 'keys/server.pem', 'sub/../.env', './.env', 'thing/.env'])
      await expect(gitDiff(path, 'all', place(folder))).rejects.toMatchObject({ code: 'secret-file' })
    const below = place(folder, { cwd: folder.at('sub') })
    for (const path of ['../.env', '/etc/passwd', '', '.', 'a/../..', '\0'])
      await expect(gitDiff(path, 'all', below)).rejects.toMatchObject({ code: 'outside-folder' })
    expect(await gitDiff('sub', 'all', place(folder))).toMatchObject({ patch: '' })
    // The file became a folder with a tracked secret.
    const thing = await gitDiff('thing', 'all', place(folder)).catch((error: unknown) => error)
    expect(JSON.stringify(thing)).not.toContain('B=1')
    // A rename away from a secret shows its content.
    git(folder, 'mv', '-f', 'keys/server.pem', 'plain.txt')
    await expect(gitDiff('plain.txt', 'all', place(folder))).rejects.toMatchObject({ code: 'secret-file' })
    const denied = { ...noRules, user: [{ effect: 'deny' as const, type: 'read' as const, match: './sub' }] }
    const { policy } = place(folder)
    await expect(gitDiff('sub/a', 'all', place(folder, { policy: { ...policy, rules: denied } }))).rejects.toThrow(
      'A rule forbids reading',
    )
  })
})

const program = '#!/bin/sh\ntouch "$(dirname "$0")/ran"\ncat\n'

describe('a hostile repository runs nothing', () => {
  test.each([
    ['core.fsmonitor', '{program}'],
    ['core.hooksPath', '{folder}/hooks'],
    ['core.alternateRefsCommand', '{program}'],
    ['core.attributesFile', '{folder}/.gitattributes'],
    ['core.worktree', '{folder}/..'],
    ['filter.x.clean', '{program}'],
    ['filter.x.process', '{program}'],
    ['diff.external', '{program}'],
    ['diff.x.textconv', '{program}'],
    ['diff.x.command', '{program}'],
    ['core.sshCommand', '{program}'],
    ['core.pager', '{program}'],
    ['pager.diff', '{program}'],
    ['alias.status', '!{program}'],
    ['credential.helper', '!{program}'],
    ['extensions.partialClone', 'origin'],
    ['remote.origin.promisor', 'true'],
    ['remote.origin.uploadpack', '{program}'],
    ['include.path', '{folder}/included'],
    ['includeIf.gitdir:**.path', '{folder}/included'],
    ['gpg.program', '{program}'],
  ])('with the setting %s', async (name, value) => {
    await using folder = await committed({
      'program.sh': program,
      '.gitattributes': '*.txt filter=x diff=x\n',
      'hooks/post-index-change': program,
      'a.txt': 'a\n',
    })
    for (const path of ['program.sh', 'hooks/post-index-change']) await chmod(folder.at(path), 0o755)
    await folder.write('included', `[filter "x"]\n\tclean = ${folder.at('program.sh')}\n`)
    git(folder, 'config', name, value.replace('{program}', folder.at('program.sh')).replace('{folder}', folder.path))
    await folder.write('a.txt', 'b\n')
    await expect(gitStatus(place(folder))).rejects.toMatchObject({ code: 'git-refused' })
    await expect(gitDiff('a.txt', 'all', place(folder))).rejects.toMatchObject({ code: 'git-refused' })
    expect(existsSync(folder.at('ran')) || existsSync(folder.at('hooks/ran'))).toBe(false)
  })

  test('by attributes whose filter and diff driver the user has', async () => {
    await using folder = await committed({ '.gitattributes': '*.txt filter=x diff=x\n', 'a.txt': 'a\n' })
    await using home = await TestFolder.make({ 'program.sh': program })
    await chmod(home.at('program.sh'), 0o755)
    const settings = [
      '[filter "x"]',
      `\tclean = ${home.at('program.sh')}`,
      '\trequired',
      '[diff "x"]',
      `\ttextconv = ${home.at('program.sh')}`,
      '[diff]',
      `\texternal = ${home.at('program.sh')}`,
    ].join('\n')
    await home.write('.gitconfig', settings)
    await home.write('.config/git/config', settings)
    const environment = { PATH: process.env['PATH'], HOME: home.path }
    await folder.write('a.txt', 'b\n')
    const { files } = await gitStatus(place(folder, { environment }))
    expect(files.map(({ path }) => path)).toEqual(['a.txt'])
    expect((await gitDiff('a.txt', 'all', place(folder, { environment }))).patch).toContain('+b')
    expect(existsSync(home.at('ran'))).toBe(false)
  })

  test('by hooks, a git program of its own, or a submodule', async () => {
    await using folder = await committed({ 'a.txt': 'a\n', git: program, 'bin/git': program })
    await chmod(folder.at('git'), 0o755)
    await chmod(folder.at('bin/git'), 0o755)
    await using inner = await committed({ 'x.txt': 'x\n' })
    git(folder, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner.path, 'module')
    git(folder, 'commit', '--quiet', '--message', 'module')
    const PATH = ['.', '', folder.path, folder.at('bin'), process.env['PATH']].join(':')
    await folder.write('a.txt', 'b\n')
    const { files } = await gitStatus(place(folder, { environment: { PATH } }))
    expect(files.map(({ path }) => path)).toEqual(['a.txt', 'bin/git', 'git'])
    await folder.write('.git/modules/module/config', `[core]\n\tfsmonitor = ${folder.at('git')}\n`)
    await expect(gitStatus(place(folder))).rejects.toMatchObject({ code: 'git-refused' })
    await rm(folder.at('.git/modules'), { recursive: true })
    await rm(folder.at('module'), { recursive: true })
    await folder.write('.git/hooks/post-index-change', program)
    await chmod(folder.at('.git/hooks/post-index-change'), 0o755)
    await expect(gitStatus(place(folder))).rejects.toMatchObject({ code: 'git-refused' })
    expect(existsSync(folder.at('ran')) || existsSync(folder.at('bin/ran'))).toBe(false)
  })

  test('by attributes in its git folder', async () => {
    await using folder = await committed({ 'a.txt': 'a\n' })
    await folder.write('.git/info/attributes', '* filter=lfs\n')
    await expect(gitStatus(place(folder))).rejects.toMatchObject({ code: 'git-refused' })
  })
})

describe('a repository that reaches outside of the roots is refused', () => {
  test.each<[string, (folder: TestFolder, other: TestFolder) => Promise<void>]>([
    [
      'by a `.git` file',
      async (folder, other) => {
        await rm(folder.at('.git'), { recursive: true })
        await folder.write('.git', `gitdir: ${other.at('.git')}\n`)
      },
    ],
    [
      'by a linked git folder',
      async (folder, other) => {
        await rm(folder.at('.git'), { recursive: true })
        await symlink(other.at('.git'), folder.at('.git'))
      },
    ],
    ['by alternates', (folder, other) => folder.write('.git/objects/info/alternates', `${other.at('.git/objects')}\n`)],
    [
      'by alternates of alternates',
      async (folder, other) => {
        await folder.write('near/info/alternates', `${other.at('.git/objects')}\n`)
        await folder.write('.git/objects/info/alternates', '../../near\n')
      },
    ],
    [
      'by alternates with a quoted path',
      (folder, other) => folder.write('.git/objects/info/alternates', `"${other.at('.git/objects')}"\n`),
    ],
    ['by `commondir`', (folder, other) => folder.write('.git/commondir', `${other.at('.git')}\n`)],
    [
      'by linked objects',
      async (folder, other) => {
        await rm(folder.at('.git/objects'), { recursive: true })
        await symlink(other.at('.git/objects'), folder.at('.git/objects'))
      },
    ],
    [
      'by a linked pack folder',
      async (folder, other) => {
        await rm(folder.at('.git/objects/pack'), { recursive: true })
        await symlink(other.at('.git/objects/pack'), folder.at('.git/objects/pack'))
      },
    ],
    [
      'by a linked index',
      async (folder, other) => {
        await unlink(folder.at('.git/index'))
        await symlink(other.at('.git/index'), folder.at('.git/index'))
      },
    ],
    [
      'by a linked reference',
      async (folder, other) => {
        await mkdir(folder.at('.git/refs/far'), { recursive: true })
        await rm(folder.at('.git/refs/far'), { recursive: true })
        await symlink(other.at('.git/refs'), folder.at('.git/refs/far'))
      },
    ],
  ])('%s', async (_, change) => {
    await using folder = await committed({ 'a.txt': 'a\n' })
    await using other = await committed({ 'private.txt': 'private\n' })
    await change(folder, other)
    await expect(gitStatus(place(folder))).rejects.toMatchObject({ code: 'git-refused' })
    await expect(gitDiff('private.txt', 'all', place(folder))).rejects.toMatchObject({ code: 'git-refused' })
  })

  test('because its root lies above them', async () => {
    await using folder = await committed({ 'sub/a.txt': 'a\n' })
    const inside = place(folder, { cwd: folder.at('sub') })
    await expect(gitStatus({ ...inside, roots: [folder.at('sub')] })).rejects.toMatchObject({ code: 'git-refused' })
    expect((await gitStatus(inside)).files).toEqual([])
  })

  test('but a worktree inside of them is not', async () => {
    await using folder = await TestFolder.make({ 'main/a.txt': 'a\n' })
    const main = join(folder.path, 'main')
    execFileSync('git', ['init', '--quiet', '--initial-branch=trunk', main])
    execFileSync('git', ['-C', main, 'add', '.'])
    execFileSync('git', ['-C', main, '-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '--quiet', '-m', 'x'])
    execFileSync('git', ['-C', main, 'worktree', 'add', '--quiet', '-b', 'side', folder.at('side')])
    await folder.write('side/a.txt', 'b\n')
    expect(await gitStatus(place(folder, { cwd: folder.at('side') }))).toMatchObject({
      branch: 'side',
      files: [{ path: 'a.txt', unstaged: 'modified' }],
    })
  })
})
