import { expect, test } from 'vitest'
import { judgeCommand } from '../../judge-command.ts'
import { noRules, type Rule } from '../../rules.ts'

const user: Rule[] = [{ effect: 'deny', type: 'command', match: 'git push *' }]

function effectOf(command: string): string {
  const cwd = '/repo'
  return judgeCommand(command, { cwd, policy: { mode: 'auto', rules: { ...noRules, user }, cwd, home: '/home/me' } })
    .effect
}

test.each([
  "timeout 60 bash -c 'git push'",
  "env X=1 sh -c 'git push'",
  "find . -exec sh -c 'git push' ';'",
  "nice -n 5 timeout 60 bash -c 'git push'",
  "bash -ce 'git push'",
  "bash -c -- 'git push'",
  "bash -c -o pipefail 'git push'",
  "env -S 'git push'",
  "env X=1 -S'git push'",
  "env --split-string='git push'",
  "watch -n 5 'git push'",
  "parallel 'git push' ::: a",
  "timeout 60 xargs sh -c 'git push'",
])('a deny rule matches in a script that `timeout`, `env`, `find -exec` or `xargs` starts: %s', (command) => {
  expect(effectOf(command)).toBe('deny')
})

test.each(['echo push | xargs git', 'echo push | xargs -I% git %', "echo push | xargs -I{} sh -c 'git {}'"])(
  'a command to which `xargs` may add the forbidden word needs a request: %s',
  (command) => expect(effectOf(command)).toBe('ask'),
)

test.each(["timeout 60 bash -c 'git log'", 'git ls-files | xargs wc -l', "find . -exec sh -c 'make' ';'"])(
  'a deny rule does not match in other scripts: %s',
  (command) => expect(effectOf(command)).toBe('allow'),
)

test('a command with more starters than anybody writes needs a request', () => {
  expect(effectOf(`${'xargs timeout '.repeat(100)}true`)).toBe('ask')
})
