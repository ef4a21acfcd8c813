import { describe, expect, test } from 'vitest'
import type { Judgement, Policy } from '../policy.ts'
import { noRules, type Rule } from '../rules.ts'
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

describe('what the user may grant', () => {
  test('is the command with its words, or with any where none can do harm', () => {
    expect(grantOf('npm run test')).toEqual([['npm', 'run', 'test']])
    expect(grantOf('git commit -m "one thing"')).toEqual([['git', 'commit', '*']])
    expect(grantOf('mkdir -p a')).toEqual([['mkdir', '*']])
  })

  test('is every command on the line, or none', () => {
    expect(grantOf('npm run build && npm run test')).toEqual([
      ['npm', 'run', 'build'],
      ['npm', 'run', 'test'],
    ])
    expect(grantOf('npm run build && $x')).toBeUndefined()
  })

  test('is never what cannot be read', () => {
    expect(grantOf('eval "$x"')).toBeUndefined()
    expect(grantOf('bash -c "$(cat x)"')).toBeUndefined()
    expect(grantOf('npm run "$x"')).toBeUndefined()
  })
})

describe('a command that rules allow', () => {
  const user: Rule[] = [{ effect: 'allow', type: 'command', match: 'npm run *' }]

  test('passes alone and among others that read', () => {
    expect(judge('npm run test 2>&1 | tail -5', { user })).toEqual({ effect: 'allow' })
  })

  test('lets no other pass with it', () => {
    expect(judge('npm run test; npm install x', { user }).effect).toBe('ask')
    expect(judge('npm run test $(touch C)', { user }).effect).toBe('ask')
    expect(judge('npm run test > out.txt', { user }).effect).toBe('ask')
    expect(judge('PATH=. npm run test', { user }).effect).toBe('ask')
    expect(judge('npm() { touch C; }; npm run test', { user }).effect).toBe('ask')
  })

  test('is asked about when it names a secret or a file that others obey', () => {
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

test('a file that a rule forbids is found wherever the command names it', () => {
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

test('the names that a listing finds may be read, unless it looks for secrets or where they are', () => {
  expect(judge('git ls-files | xargs wc -l').effect).toBe('allow')
  expect(judge('cat $(find src -name "*.ts")').effect).toBe('allow')
  expect(judge('find . -name .env | xargs cat').effect).toBe('ask')
  expect(judge('ls ~ | xargs cat').effect).toBe('ask')
  expect(judge('cat names.txt | xargs cat').effect).toBe('ask')
})

test('what a repository kept of a secret is a secret too', () => {
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

test('a command that would be too long to read is asked about', () => {
  expect(judge(`echo ${'a '.repeat(6000)}`).effect).toBe('ask')
})
