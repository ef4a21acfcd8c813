import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import type { Judgement, Policy } from './policy.ts'
import { noRules, type Rule } from './rules.ts'
import { judgeCommand } from './judge-command.ts'

const cwd = '/repo'

function judge(command: string, given: Partial<Policy> & { user?: Rule[] } = {}): Judgement {
  const { user = [], ...rest } = given
  const policy: Policy = { mode: 'ask', cwd, home: '/home/me', rules: { ...noRules, user }, ...rest }
  return judgeCommand(command, { cwd, policy })
}

function grantOf(command: string): unknown {
  const judgement = judge(command)
  return judgement.effect === 'ask' ? judgement.grant?.map(({ match }) => match) : judgement.effect
}

describe('a grant', () => {
  test('is the command with exactly its words, or with any further words if none can do harm', () => {
    expect(grantOf('npm run test')).toEqual([['npm', 'run', 'test']])
    expect(grantOf('git commit -m "one thing"')).toEqual([['git', 'commit', '*']])
    expect(grantOf('mkdir -p a')).toEqual([['mkdir', '*']])
  })

  test('covers every command on the line, or is not offered', () => {
    expect(grantOf('npm run build && npm run test')).toEqual([
      ['npm', 'run', 'build'],
      ['npm', 'run', 'test'],
    ])
    expect(grantOf('npm run build && $x')).toBeUndefined()
  })

  test('is never offered for a command that cannot be analyzed', () => {
    expect(grantOf('eval "$x"')).toBeUndefined()
    expect(grantOf('bash -c "$(cat x)"')).toBeUndefined()
    expect(grantOf('npm run "$x"')).toBeUndefined()
  })
})

describe('a command that rules allow', () => {
  const user: Rule[] = [{ effect: 'allow', type: 'command', match: 'npm run *' }]

  test('is allowed alone and together with read-only commands', () => {
    expect(judge('npm run test 2>&1 | tail -5', { user })).toEqual({ effect: 'allow' })
  })

  test('does not allow other commands on the line', () => {
    expect(judge('npm run test; npm install x', { user }).effect).toBe('ask')
    expect(judge('npm run test $(touch C)', { user }).effect).toBe('ask')
    expect(judge('npm run test > out.txt', { user }).effect).toBe('ask')
    expect(judge('PATH=. npm run test', { user }).effect).toBe('ask')
    expect(judge('npm() { touch C; }; npm run test', { user }).effect).toBe('ask')
  })

  test('needs a request if it names a secret or a control file', () => {
    expect(judge('npm run show -- .env', { user }).effect).toBe('ask')
    expect(judge('npm run write -- --file=.git/hooks/pre-commit', { user }).effect).toBe('ask')
  })
})

test('a redirection is a write like any other', () => {
  expect(judge('ls > out.txt', { mode: 'accept-edits' })).toEqual({ effect: 'allow' })
  expect(judge('ls > ../out.txt', { mode: 'accept-edits' }).effect).toBe('ask')
  expect(judge('ls > .git/config', { mode: 'auto' }).effect).toBe('ask')
  expect(judge('cd .git; ls > config', { mode: 'accept-edits' }).effect).toBe('ask')
  expect(judge('ls > "$x"', { mode: 'accept-edits' }).effect).toBe('ask')
  expect(judge('ls > out.txt', { mode: 'plan' }).effect).toBe('deny')
  expect(judge('ls > /dev/null 2>&1')).toEqual({ effect: 'allow' })
})

test('a file that a rule forbids is found anywhere in the command', () => {
  const user: Rule[] = [{ effect: 'deny', type: 'read', match: './private' }]
  for (const command of [
    'cat private/a',
    'cat ./src/../private/a',
    'cd private && cat a',
    'cat < private/a',
    'x=private; cat $x/a',
    'cat {private,src}/a',
    'cat priv*/a',
    'for d in src private; do head "$d/a"; done',
    'node print.js private/a',
  ]) {
    expect(judge(command, { user }).effect, command).toBe('deny')
  }
  expect(judge('cat src/a', { user }).effect).toBe('allow')
})

test('the names from a listing may be read, unless it looks for secrets or in their folders', () => {
  expect(judge('git ls-files | xargs wc -l').effect).toBe('allow')
  expect(judge('cat $(find src -name "*.ts")').effect).toBe('allow')
  expect(judge('find . -name .env | xargs cat').effect).toBe('ask')
  expect(judge('ls ~ | xargs cat').effect).toBe('ask')
  expect(judge('cat names.txt | xargs cat').effect).toBe('ask')
})

test('a secret in the history of a repository is a secret too', () => {
  for (const command of [
    'git show HEAD:.env',
    'git grep key -- .env',
    'git log -p -- config/.env',
    'git cat-file -p :.env',
  ])
    expect(judge(command).effect, command).toBe('ask')
  for (const command of ['git show HEAD:.env.example', 'git ls-files .env', 'git check-ignore .env'])
    expect(judge(command).effect, command).toBe('allow')
})

test('a jq program may not read files that only it names', () => {
  expect(judge(`jq 'import "secrets" as $s {search: "./"}; $s' a.json`).effect).toBe('ask')
  expect(judge('jq -f program.jq a.json').effect).toBe('ask')
  expect(judge('jq --rawfile x .env "." a.json').effect).toBe('ask')
  expect(judge('jq .import a.json').effect).toBe('allow')
})

test('a command about too many paths needs a request, and quickly', () => {
  for (const part of ['*', '$(ls)', '$(git ls-files)'])
    expect(judge(`cat ${`${part} `.repeat(500)}`).effect).toBe('ask')
  expect(judge('git diff; '.repeat(500)).effect).toBe('ask')
})

test('a command that is too long to analyze needs a request', () => {
  expect(judge(`echo ${'a '.repeat(6000)}`).effect).toBe('ask')
})

/** A repository in its own folder, with a home without git settings. */
class Place implements AsyncDisposable {
  readonly folder: TestFolder

  private constructor(folder: TestFolder) {
    this.folder = folder
  }

  static async make(): Promise<Place> {
    const place = new Place(await TestFolder.make({ 'repo/a.txt': 'a\n', 'home/.profile': '' }))
    place.git('.', 'init', '-q')
    return place
  }

  git(at: string, ...words: string[]): string {
    const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'init.defaultBranch=main']
    const env = { PATH: process.env['PATH'], HOME: this.folder.at('home'), GIT_CONFIG_NOSYSTEM: '1' }
    const cwd = this.folder.at(`repo/${at}`)
    return execFileSync('git', [...identity, ...words], { cwd, env, encoding: 'utf8', stdio: 'pipe' })
  }

  write(path: string, text: string): Promise<void> {
    return this.folder.write(`repo/${path}`, text)
  }

  /** A command for git settings that leaves a trace. */
  get strike(): string {
    return `touch '${this.folder.at('struck')}'; cat`
  }

  /** Git really would run it: the commands in these tests do harm. */
  strikes(command: string): boolean {
    const env = { PATH: process.env['PATH'], HOME: this.folder.at('home'), GIT_CONFIG_NOSYSTEM: '1' }
    execFileSync('bash', ['-c', `${command} || true`], { cwd: this.folder.at('repo'), env, stdio: 'pipe' })
    return existsSync(this.folder.at('struck'))
  }

  judge(command: string, rules: { user?: Rule[]; session?: Rule[]; trustsProject?: boolean } = {}): Judgement {
    const root = this.folder.at('repo')
    const policy: Policy = { mode: 'ask', cwd: root, home: this.folder.at('home'), rules: { ...noRules, ...rules } }
    return judgeCommand(command, { cwd: root, policy })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.folder[Symbol.asyncDispose]()
  }
}

describe('git in a repository that runs something', () => {
  test.each(['git -C sub status', 'cd sub && git diff', 'cd sub && git ls-files -m', 'git -C sub/wt diff'])(
    'needs a request if the repository consists of committed files: %s',
    async (command) => {
      await using place = await Place.make()
      await place.write('sub/HEAD', 'ref: refs/heads/main\n')
      await place.write('sub/commondir', 'x\n')
      await place.write('sub/config.worktree', '[core]\n\tbare = false\n\tworktree = wt\n')
      for (const name of ['objects', 'refs']) await place.write(`sub/x/${name}/keep`, '')
      const config = `[core]\n\trepositoryformatversion = 0\n[extensions]\n\tworktreeConfig = true\n[filter "e"]\n\tclean = `
      await place.write('sub/x/config', `${config}cat\n`)
      await place.write('sub/x/info/attributes', '* filter=e\n')
      await place.write('sub/wt/f.txt', 'hello\n')
      place.git('sub/wt', '--git-dir=..', '--work-tree=.', 'add', 'f.txt')
      await place.write('sub/x/config', `${config}${place.strike}\n`)
      await place.write('sub/wt/f.txt', 'other\n')

      expect(place.judge(command).effect).toBe('ask')
      expect(place.strikes(command)).toBe(true)
    },
  )

  test('needs a request if an empty .git hides the repository above', async () => {
    await using place = await Place.make()
    await place.write('app/f.txt', 'a\n')
    await place.write('.gitattributes', '* filter=e\n')
    place.git('.', 'add', '-A')
    place.git('.', 'config', 'filter.e.clean', place.strike)
    await place.write('app/f.txt', 'b\n')
    mkdirSync(place.folder.at('repo/app/.git'))

    expect(place.judge('git -C app status').effect).toBe('ask')
    expect(place.strikes('git -C app status')).toBe(true)
  })

  test.each([
    'git log -p --submodule=diff',
    'git diff --submodule=diff HEAD~2 HEAD~1',
    'git show --submodule=diff HEAD~1',
  ])('needs a request if only the history has it: %s', async (command) => {
    await using place = await Place.make()
    place.git('.', 'commit', '-q', '--allow-empty', '-m', 'first')
    mkdirSync(place.folder.at('repo/sub'))
    place.git('sub', 'init', '-q')
    for (const text of ['1', '2']) {
      await place.write('sub/f', text)
      place.git('sub', 'add', 'f')
      place.git('sub', 'commit', '-q', '-m', text)
      const id = place.git('sub', 'rev-parse', 'HEAD').trim()
      place.git('.', 'update-index', '--add', '--cacheinfo', `160000,${id},sub`)
      place.git('.', 'commit', '-q', '-m', text)
    }
    place.git('.', 'rm', '-q', '--cached', 'sub')
    place.git('.', 'commit', '-q', '-m', 'gone')
    place.git('sub', 'config', 'diff.external', place.strike)

    expect(place.judge(command).effect).toBe('ask')
    expect(place.judge(command.replace('=diff', '=log')).effect).toBe('allow')
    expect(place.strikes(command)).toBe(true)
  })

  test('needs a request behind a link and `..`, resolved as the kernel does', async () => {
    await using place = await Place.make()
    await place.write('outer/inner/x', '')
    place.git('outer', 'init', '-q')
    place.git('outer', 'config', 'core.fsmonitor', place.strike)
    execFileSync('ln', ['-s', 'outer/inner', place.folder.at('repo/link')])

    expect(place.judge('git -C link/.. status').effect).toBe('ask')
    expect(place.judge('cd link && git -C .. status').effect).toBe('ask')
    expect(place.strikes('git -C link/.. status')).toBe(true)
  })

  test('needs a request if git would enter a folder that does not exist yet', async () => {
    await using place = await Place.make()
    const user: Rule[] = [{ effect: 'allow', type: 'command', match: 'git checkout *' }]
    expect(place.judge('git checkout other && git -C sub status', { user }).effect).toBe('ask')
  })
})

describe('a grant for git', () => {
  const session: Rule[] = [{ effect: 'allow', type: 'command', match: 'git add *' }]
  const hooked: Rule[] = [{ effect: 'allow', type: 'command', match: 'git commit *' }]

  async function withForeign(): Promise<Place> {
    const place = await Place.make()
    await place.write('sub/.gitattributes', '* filter=e\n')
    place.git('sub', 'init', '-q')
    place.git('sub', 'config', 'filter.e.clean', place.strike)
    return place
  }

  test('does not cover programs that another repository runs', async () => {
    await using place = await withForeign()
    expect(place.judge('git add .', { session })).toEqual({ effect: 'allow' })
    expect(place.judge('cd sub && git add .', { session })).toEqual({
      effect: 'ask',
      reason: `${place.folder.at('repo/sub/.git/config')} sets \`filter.clean\`, which may run something.`,
    })
    expect(place.judge('cd sub && git add .', { user: session }).effect).toBe('ask')
    expect(place.judge('cd sub && git add .', { session, trustsProject: true }).effect).toBe('ask')
    expect(place.strikes('cd sub && git add .')).toBe(true)
  })

  test('does not cover programs that the next command runs in a repository that was just added', async () => {
    await using place = await Place.make()
    await place.write('sub/.gitattributes', '* filter=e\n')
    await place.write('sub/f.txt', '1\n')
    place.git('sub', 'init', '-q')
    place.git('sub', 'add', '.')
    place.git('sub', 'commit', '-q', '-m', 'first')
    expect(place.judge('git add . && git status', { session })).toEqual({ effect: 'allow' })
    place.git('sub', 'config', 'filter.e.clean', place.strike)
    await place.write('sub/f.txt', '2\n')

    expect(place.judge('git add .', { session })).toEqual({ effect: 'allow' })
    expect(place.judge('git status && git diff')).toEqual({ effect: 'allow' })
    expect(place.judge('git add . && git status', { session }).effect).toBe('ask')
    expect(place.strikes('git add . && git status')).toBe(true)
  })

  test('covers another repository whose settings run nothing', async () => {
    await using place = await Place.make()
    mkdirSync(place.folder.at('repo/sub'))
    place.git('sub', 'init', '-q')
    expect(place.judge('cd sub && git add .', { session })).toEqual({ effect: 'allow' })
    await place.write('sub/.git/hooks/pre-commit', '#!/bin/sh\n')
    expect(place.judge('cd sub && git commit -m x', { session: hooked }).effect).toBe('ask')
  })

  test('does not cover a repository that options name', async () => {
    await using place = await withForeign()
    const user: Rule[] = [{ effect: 'allow', type: 'command', match: 'git *' }]
    expect(place.judge('git push', { user })).toEqual({ effect: 'allow' })
    for (const command of ['git -C sub add .', 'git --git-dir=sub/.git add .', 'git -c core.fsmonitor=x add .']) {
      expect(place.judge(command, { user }).effect).toBe('ask')
    }
  })

  test('covers programs of the own repository after the user was told about them', async () => {
    await using place = await Place.make()
    await place.write('.git/hooks/pre-commit', '#!/bin/sh\n')
    const asked = place.judge('git commit -m x')
    expect(asked).toMatchObject({ effect: 'ask', grant: [{ match: ['git', 'commit', '*'] }] })
    expect(asked.effect === 'ask' && asked.reason).toContain('pre-commit')
    expect(place.judge('git commit -m x', { session: hooked })).toEqual({ effect: 'allow' })
    expect(place.judge('git commit -m x', { user: hooked })).toMatchObject({
      effect: 'ask',
      grant: [{ match: ['git', 'commit', '*'] }],
    })
    expect(place.judge('git commit -m x', { user: hooked, trustsProject: true })).toEqual({ effect: 'allow' })
  })
})

test.each(['git config edit', 'git config "$x"', 'git config --global edit', 'git config set a.b c'])(
  'a git command with another meaning in newer versions needs a request: %s',
  (command) => {
    expect(judge(command).effect).toBe('ask')
  },
)

test('a git setting can be read', () => {
  for (const command of ['git config user.name', 'git config --get-regexp alias', 'git config -l']) {
    expect(judge(command)).toEqual({ effect: 'allow' })
  }
})

describe('files of version managers', () => {
  test.each([
    ['.tool-versions', 'nodejs 22.1.0 20.9.0 # comment\npython 3.12.1\n'],
    ['mise.toml', '[tools]\nnode = "22"\n'],
    ['rust-toolchain.toml', '[toolchain]\nchannel = "1.80"\ncomponents = [\n  "clippy",\n]\n'],
    ['rust-toolchain', 'nightly-2026-01-01\n'],
    ['.nvmrc', 'lts/*\n'],
    ['.python-version', '3.12.1\n3.11\n'],
  ])('that name versions need no request: %s', async (name, text) => {
    await using place = await Place.make()
    await place.write(name, text)
    expect(place.judge('node --version')).toEqual({ effect: 'allow' })
  })

  test.each([
    ['.tool-versions', 'nodejs path:./evil\n'],
    ['.tool-versions', 'nodejs 22.1.0\njq ref:master\n'],
    ['.tool-versions', 'npm:evil 1.0.0\n'],
    ['mise.toml', '[tools]\nnode = "path:./evil"\n'],
    ['.mise.toml', '[hooks]\nenter = "./evil"\n'],
    ['rust-toolchain.toml', '[toolchain]\npath = "./evil"\n'],
    ['.ruby-version', '../../evil\n'],
  ])('that name something else need a request: %s, %s', async (name, text) => {
    await using place = await Place.make()
    await place.write(name, text)
    await place.write('sub/a.txt', '')
    for (const command of ['node --version', 'cd sub && jq . a.json', 'echo x | timeout 5 cat']) {
      expect(place.judge(command)).toMatchObject({ effect: 'ask' })
    }
    expect(place.judge('echo x')).toEqual({ effect: 'allow' })
  })
})
