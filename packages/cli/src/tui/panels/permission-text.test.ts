import { expect, test } from 'vitest'
import { permissionText } from './permission-text.ts'

const request = { requestId: 'r', tool: 'bash', options: [] }

test('a command of several lines is shown in full, with every reason below it', () => {
  const command = 'git fetch &&\nnpm ci'
  const title = `Run in /code: ${command}\n\`git\`: it does not only read.\n\`npm\`: it does not only read.`
  expect(permissionText({ ...request, title, input: { command } })).toEqual({
    what: `Run in /code: ${command}`,
    why: '`git` does not only read.\n`npm` does not only read.',
    input: [],
    run: { command, folder: '/code' },
  })
})

test('if the argument is not found in the text, the last line is the reason', () => {
  const title = 'Fetch a page\nIt is not known.'
  expect(permissionText({ ...request, title })).toEqual({ what: 'Fetch a page', why: 'It is not known.', input: [] })
})

test('reasons name a program once, and what is unknown in one sentence', () => {
  const command = 'git fetch && npm ci && git rebase && make'
  const reasons = [
    '`git`: `git fetch` is not a known read-only command.',
    '`npm`: `npm ci` is not a known read-only command.',
    '`git`: `git rebase` is not a known read-only command.',
    '`make`: it is not a known read-only program.',
    '`sudo`: `rm`: it is not a known read-only program.',
    '`rg`: `--pre` is not a known read-only option.',
  ]
  const title = [`Run in /code: ${command}`, ...reasons].join('\n')
  expect(permissionText({ ...request, title, input: { command } }).why.split('\n')).toEqual([
    '`git fetch`, `npm ci` and `git rebase` are not known read-only commands.',
    '`make` is not a known read-only program.',
    '`sudo`: `rm`: it is not a known read-only program.',
    '`rg`: `--pre` is not a known read-only option.',
  ])
})

test('a title that says more than its command, or another one, is shown as it is', () => {
  const input = { command: 'ls' }
  expect(permissionText({ ...request, title: 'Run in /code: rm -rf x\nWhy.', input }).run).toBeUndefined()
  expect(permissionText({ ...request, title: 'Write /x\nRun in /code: ls\nWhy.', input }).run).toBeUndefined()
})
