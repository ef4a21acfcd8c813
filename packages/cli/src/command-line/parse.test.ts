import { expect, test } from 'vitest'
import type { CommandSpec } from './command.ts'
import { exitCodes } from './exit-code.ts'
import { parse, wantsJson } from './parse.ts'

const load = (): never => {
  throw new Error('Nothing is run here.')
}
const table: readonly CommandSpec[] = [
  {
    path: [],
    summary: 'chat',
    positionals: [{ name: 'prompt', description: 'what to say' }],
    options: [{ name: 'resume', short: 'r', value: 'session', optionalValue: true, description: 'go on with one' }],
    load,
  },
  {
    path: ['run'],
    summary: 'run',
    positionals: [{ name: 'prompt', description: 'what to do', many: true }],
    options: [
      { name: 'model', short: 'm', value: 'model', description: 'the model' },
      { name: 'allow', value: 'rule', many: true, description: 'a rule' },
      { name: 'thinking', value: 'level', choices: ['off', 'low', 'high'], description: 'how much' },
      { name: 'sandbox', value: 'when', choices: ['required'], description: 'when' },
    ],
    load,
  },
  { path: ['sessions', 'list'], summary: 'list', load },
  {
    path: ['sessions', 'show'],
    summary: 'show',
    positionals: [{ name: 'session', description: 'its id', required: true }],
    load,
  },
]

function typed(...args: string[]): unknown {
  const parsed = parse(args, table)
  if (parsed.type === 'help') return { help: parsed.path }
  const { spec, values, positionals } = parsed.invocation
  return { path: spec.path, values, positionals }
}

test('a command is found by its words, with its options, their values and the remaining arguments', () => {
  expect(typed('run', '-m', 'a/b', '--allow', 'x', 'do', '--allow=y', 'it', '--json')).toEqual({
    path: ['run'],
    values: { model: 'a/b', allow: ['x', 'y'], json: true },
    positionals: ['do', 'it'],
  })
  expect(typed('--json', 'sessions', 'list')).toEqual({
    path: ['sessions', 'list'],
    values: { json: true },
    positionals: [],
  })
  expect(typed('run', '--', '--model', '-h')).toMatchObject({ positionals: ['--model', '-h'] })
})

test('without a command it is the chat, and an option with an optional value may have none', () => {
  expect(typed()).toEqual({ path: [], values: {}, positionals: [] })
  expect(typed('explain this folder')).toMatchObject({ path: [], positionals: ['explain this folder'] })
  expect(typed('-r')).toMatchObject({ values: { resume: true } })
  expect(typed('-r', '--json')).toMatchObject({ values: { resume: true, json: true } })
  expect(typed('-r', 'abc')).toMatchObject({ values: { resume: 'abc' }, positionals: [] })
})

test('help can be requested anywhere, for a command and for a group', () => {
  expect(typed('sessions', '--help')).toEqual({ help: ['sessions'] })
  expect(typed('-h', 'run')).toEqual({ help: ['run'] })
  expect(typed('run', '--nonsense', '-h')).toEqual({ help: ['run'] })
})

test.each([
  [['rnu'], 'There is no command "rnu". Did you mean run? To send a one-word prompt, put -- before it.'],
  [['sessions', 'lst'], 'There is no command sessions "lst". Did you mean list?'],
  [['sessions'], 'tapetree sessions needs a subcommand: list, show.'],
  [['run', '--modle', 'x'], 'tapetree run has no option --modle. Did you mean --model?'],
  [['run', '--model'], '--model needs a value: --model <model>.'],
  [
    ['run', '--model', '--json'],
    '--model needs a value, but --json looks like an option. If it is the value, write --model=--json.',
  ],
  [['run', '--json=yes'], '--json does not take a value, but got "yes".'],
  [['run', '--thinking', 'hihg'], '--thinking must be off, low or high, not "hihg". Did you mean high?'],
  [['run', '--sandbox', 'maybe'], '--sandbox must be required, not "maybe".'],
  [['sessions', 'show'], 'tapetree sessions show needs <session>: its id.'],
  [['sessions', 'list', 'x'], 'tapetree sessions list does not take the argument "x".'],
  [['explain', 'this'], 'A prompt is one argument: put it in quotes.'],
])('%j is a usage error', (args, message) => {
  expect(() => parse(args, table)).toThrow(expect.objectContaining({ code: exitCodes.usage, message }))
})

test('--json counts even if the rest is invalid, but not after --', () => {
  expect(wantsJson(['nonsense', '--json'])).toBe(true)
  expect(wantsJson(['run', '--', '--json'])).toBe(false)
})
