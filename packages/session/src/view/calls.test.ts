import { expect, test } from 'vitest'
import { callArgument, callOutcome, elapsedText, type CallNews } from './calls.ts'
import type { ToolCallPart } from './transcript-items.ts'

const textOf = (content: unknown): string => (typeof content === 'string' ? content : 'blocks')

function outcome(given: Partial<ToolCallPart>, { isLive = true, news }: { isLive?: boolean; news?: CallNews } = {}) {
  const call: ToolCallPart = { type: 'tool_call', callId: 'c', name: 'bash', input: {}, status: 'pending', ...given }
  return callOutcome(call, { isLive, news, now: 65_000, textOf })
}

function answered(name: string, content: ToolCallResultContent, isError = false) {
  return outcome({ name, result: { callId: 'c', entryId: 'e', isError, content } })
}

type ToolCallResultContent = NonNullable<ToolCallPart['result']>['content']

test('a call without a result waits, asks or runs while its run is active', () => {
  expect(outcome({})).toEqual({ state: 'waiting', note: 'waiting', output: '' })
  expect(outcome({}, { news: { isAsked: true } })).toEqual({ state: 'asking', note: 'waiting for you', output: '' })
  expect(outcome({ status: 'running' })).toEqual({ state: 'running', note: 'running', output: '' })
  expect(outcome({ status: 'running' }, { news: { startedAt: 1000, output: 'so far' } })).toEqual({
    state: 'running',
    note: 'running 1 min 4 s',
    output: 'so far',
  })
})

test('a call of an inactive run has no result', () => {
  expect(outcome({}, { isLive: false, news: { output: 'half' } })).toEqual({
    state: 'skipped',
    note: 'no result',
    output: 'half',
  })
})

test('the note of a command is its exit, which is not part of the output', () => {
  expect(answered('bash', 'text\n\n[Exit code 2.]', true)).toEqual({
    state: 'failed',
    note: 'exit code 2',
    output: 'text',
  })
  expect(answered('bash', '(no output)')).toEqual({ state: 'done', note: 'exit code 0', output: '' })
  expect(answered('bash', 'broken', true)).toEqual({ state: 'failed', note: 'failed', output: 'broken' })
  expect(answered('bash', '[Killed]', true)).toEqual({ state: 'failed', note: 'killed', output: '' })
})

test('a call that was not allowed says whether a person or a rule denied it', () => {
  const person = 'The user did not allow this: Not today.'
  expect(answered('bash', person, true)).toEqual({ state: 'denied', note: 'denied', output: person })
  const rule = 'A rule forbids `rm`.'
  expect(answered('bash', rule, true)).toEqual({ state: 'denied', note: 'denied by a rule', output: rule })
  expect(answered('bash', rule)).toMatchObject({ state: 'done' })
})

test('other tools have a note only if they failed or were skipped', () => {
  expect(answered('read', 'content')).toEqual({ state: 'done', note: '', output: 'content' })
  expect(answered('read', [], true)).toEqual({ state: 'failed', note: 'failed', output: 'blocks' })
  expect(answered('read', 'Not run: The user said no.', true)).toEqual({
    state: 'skipped',
    note: 'skipped: the user said no',
    output: '',
  })
})

test('a call is described by its most informative argument', () => {
  const argument = (input: Record<string, unknown>, name = 'any'): string => callArgument({ name, input })
  expect(argument({ path: 'x', command: 'ls' })).toBe('ls')
  expect(argument({ pattern: 'a+', path: 'src' })).toBe('a+ in src')
  expect(argument({ pattern: 'a+', path: '' })).toBe('a+')
  expect(argument({ other: 'only' })).toBe('only')
  expect(argument({ command: '', n: 1 })).toBe('{"command":"","n":1}')
  expect(argument({})).toBe('')
  expect(argument({ items: ['x'] }, 'todo_write')).toBe('')
})

test('a duration has its two largest units', () => {
  expect([-5, 4999, 200_000, 7_500_000].map(elapsedText)).toEqual(['0 s', '4 s', '3 min 20 s', '2 h 5 min'])
})

test('a call that a person did not allow was denied, which is not a failure', () => {
  expect(answered('bash', 'The user did not allow this: Not today.', true)).toEqual({
    state: 'denied',
    note: 'denied',
    output: 'The user did not allow this: Not today.',
  })
  expect(answered('edit', 'No user is present to allow this. It writes a file.', true).state).toBe('denied')
  expect(answered('bash', 'The user did not allow this', false).state).toBe('done')
})
