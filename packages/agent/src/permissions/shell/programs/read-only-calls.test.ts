import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { TestFolder } from '../../../testing/test-folder.ts'
import { judgeCommand } from '../../judge-command.ts'
import { noRules } from '../../rules.ts'

const home = '/home/me'

/** The commands that need no request. */
function allowed(commands: readonly string[], cwd = '/repo'): string[] {
  const policy = { mode: 'ask', rules: noRules, cwd, home } as const
  return commands.filter((command) => judgeCommand(command, { cwd, policy }).effect === 'allow')
}

test('the word after `xargs --replace` or `--max-lines` is the program that it starts', () => {
  const harmful = [
    'echo a | xargs --max-lines rm echo',
    'echo a | xargs --replace rm echo {}',
    'echo ~/.ssh/id_rsa | xargs --replace cat {}',
    'echo ~/.ssh/id_rsa | xargs -I% -n2 cat',
  ]
  const harmless = [
    'echo a | xargs --max-lines echo',
    'echo a | xargs --max-lines=1 echo',
    'echo a | xargs --replace echo {}',
  ]
  expect(allowed([...harmful, ...harmless])).toEqual(harmless)
})

test('`git status -v` and the word after `git diff -U` are judged like the files of `git diff`', async () => {
  await using folder = await TestFolder.make({ '.env': 'KEY=x\n', 'a.txt': 'a\n' })
  for (const words of [
    ['init', '-q'],
    ['add', '-f', '.'],
  ])
    execFileSync('git', words, { cwd: folder.path })
  const harmful = ['git diff -U ~/.ssh/id_rsa a.txt', 'git diff --unified ~/.ssh/id_rsa a.txt', 'git status -vv']
  const harmless = ['git diff -U5 a.txt', 'git status', 'git status a.txt']
  expect(allowed([...harmful, 'git status -v a.txt', ...harmless], folder.path)).toEqual(harmless)
})

test('a `ps` call that procps may read as BSD letters with `e` needs a request', () => {
  const harmful = ['ps -eTH', 'ps -e -T -H', 'ps -auxe', 'ps -fe -ux', 'ps -u xe', 'ps aux -e', "ps -e -C ''"]
  const harmless = ['ps -e', 'ps -ef', 'ps -eo pid,args --sort=pid', 'ps aux', 'ps -C node -o pid', 'ps -u root']
  expect(allowed([...harmful, ...harmless])).toEqual(harmless)
})
