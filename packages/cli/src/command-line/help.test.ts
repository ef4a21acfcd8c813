import { expect, test } from 'vitest'
import { commands } from '../cli.ts'
import type { CommandSpec } from './command.ts'
import { helpFor } from './help.ts'

const load = (): never => {
  throw new Error('Nothing is run here.')
}
const table: readonly CommandSpec[] = [
  { path: [], summary: 'Chat', load },
  {
    path: ['sessions', 'find'],
    summary: 'Find sessions',
    description: 'Looks into everything that was ever said in any of them.\n\nIt is quick.',
    positionals: [{ name: 'words', description: 'words to search for', required: true, many: true }],
    options: [
      { name: 'limit', short: 'n', value: 'count', description: 'no more than these', default: '20' },
      { name: 'secret', hidden: true, description: 'for ourselves' },
    ],
    examples: [{ command: 'tapetree sessions find lock', says: 'where locks were talked about' }],
    load,
  },
]
const page = (columns: number, ...path: string[]): string =>
  helpFor(path, { commands: table, output: { columns }, env: {} })

test('help for a command has its usage, description and examples, in the width of the terminal', () => {
  expect(page(50, 'sessions', 'find')).toBe(`Find sessions.

Usage: tapetree sessions find [options] <words...>

Looks into everything that was ever said in any of
them.

It is quick.

Arguments:
  <words...>  words to search for

Options:
  -n, --limit <count>  no more than these
                       (default: 20)
      --json           print the result and any
                       error as JSON
  -h, --help           show help for this command

Examples:
  tapetree sessions find lock
      where locks were talked about
`)
})

test('help for a group and the top level lists commands, and an unknown command is an error', () => {
  expect(page(80, 'sessions')).toContain('sessions find  Find sessions')
  expect(page(80)).toMatch(/^Chat\.\n\nUsage: tapetree\n\nCommands:\n {2}sessions find/)
  expect(() => page(80, 'sesions')).toThrow('There is no command "sesions". Did you mean sessions?')
})

test('no help line is wider than the terminal, and every command has a summary without a full stop', () => {
  for (const { path, summary } of commands) {
    expect(summary).not.toMatch(/\.$|^$/)
    const text = helpFor(path, { commands, output: { columns: 90 }, env: {} })
    const prose = text.split('\n').filter((line) => !line.includes('tapetree'))
    expect(prose.filter((line) => line.length > 90)).toEqual([])
  }
})
