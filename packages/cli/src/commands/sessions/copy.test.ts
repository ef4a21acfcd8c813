import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { user } from '@tapetree/session/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SessionHome } from '../../testing/session-home.ts'

let home: SessionHome

beforeEach(async () => {
  home = await SessionHome.make()
})

afterEach(() => home[Symbol.asyncDispose]())

const say = (words: string): Promise<string> => home.session((session) => user(session, words))

test('all sessions are copied to a folder, and counted', async () => {
  const [first, second] = [await say('one'), await say('two')]
  await home.store.archive(second)
  const to = join(home.root, 'copies')
  const dry = await home.run(['sessions', 'copy', '--all', '--to', to, '--dry-run'])
  expect(dry.err).toBe(`2 sessions would be copied to ${to}; 0 were there already.\n`)
  const { code, err } = await home.run(['sessions', 'copy', '--all', '--to', to])
  expect([code, err]).toEqual([0, `Copied 2 sessions to ${to}; 0 were there already.\n`])
  expect(await readFile(join(to, first, 'events.jsonl'))).toEqual(await readFile(home.logOf(first)))
  expect(await readFile(join(to, '.archive', second, 'events.jsonl'), 'utf8')).toContain('two')
  const third = await say('three')
  const again = await home.json('sessions', 'copy', '--all', '--to', to)
  expect(again).toMatchObject({ refused: [] })
  const outcomes = (again['sessions'] as { id: string; outcome: string }[]).map(({ id, outcome }) => [id, outcome])
  expect(new Map(outcomes as [string, string][])).toEqual(
    new Map([
      [first, 'present'],
      [second, 'present'],
      [third, 'copied'],
    ]),
  )
})

test('named sessions are copied from another folder into the own sessions', async () => {
  const id = await say('one')
  const archived = await say('two')
  await home.store.archive(archived)
  await home.run(['sessions', 'copy', '--all', '--to', 'copies'])
  for (const each of [id, archived]) await home.store.erase(each)
  const { code, err } = await home.run(['sessions', 'copy', id, archived.slice(0, 30), '--from', 'copies'])
  expect([code, err]).toEqual([0, expect.stringContaining('Copied 2 sessions')])
  expect((await home.store.list()).sessions.map((each) => each.id)).toEqual([id])
  expect((await home.store.list({ place: 'archive' })).sessions.map((each) => each.id)).toEqual([archived])
})

test('a session that is open, or differs in the target, does not stop the others', async () => {
  const [open, other, last] = [await say('one'), await say('two'), await say('three')]
  await home.run(['sessions', 'copy', other, '--to', 'copies'])
  {
    await using session = await home.store.open(other)
    await user(session, 'more')
  }
  await using _ = await home.store.open(open)
  const { code, err } = await home.run(['sessions', 'copy', '--all', '--to', 'copies'])
  expect(code).not.toBe(0)
  expect(err).toContain(`Session ${open} is open for writing.`)
  expect(err).toContain(`The target has an earlier state of session ${other}: 3 of its 5 lines. Nothing was copied.`)
  expect(err).toContain('Copied 1 session to')
  expect(err).toContain('2 sessions were not copied.')
  expect(await readFile(join(home.cwd, 'copies', last, 'events.jsonl'), 'utf8')).toContain('three')
  expect(await home.json('sessions', 'copy', other, '--to', 'copies')).toMatchObject({
    sessions: [],
    refused: [{ id: other, error: { type: 'session-exists' } }],
  })
})

test.each([
  [['--all'], 2, /Name the other store/],
  [['--to', 'x'], 2, /Name sessions, or use --all/],
  [['--all', 'x', '--to', 'x'], 2, /Name sessions, or use --all/],
  [['--all', '--from', 'x', '--to', './x'], 2, /are the same store/],
  [['--all', '--from', 'missing'], 5, /There is no folder/],
  [['--all', '--from', 'mysql://localhost/x'], 2, /starts with postgres/],
  [['--all', '--from', ' '], 2, /needs a folder/],
  [['--all', '--from', '@missing'], 5, /cannot be read/],
  [['nothing', '--to', 'x'], 5, /There is no session "nothing"/],
])('copy %j ends with a sentence', async (args, expected, sentence) => {
  const { code, err } = await home.run(['sessions', 'copy', ...args])
  expect(err).toMatch(sentence)
  expect(code).toBe(expected)
})

test('a password on the command line or in a public file is rejected, and never shown', async () => {
  const file = join(home.cwd, 'store')
  for (const url of [
    'postgres://app:hidden-word@127.0.0.1:1/x',
    'postgresql://app@127.0.0.1:1/x?password=hidden-word',
  ]) {
    const { code, err } = await home.run(['sessions', 'copy', '--all', '--to', url])
    expect([code, err]).toEqual([
      2,
      expect.stringContaining('has a password, and other users can see the command line'),
    ])
    expect(err).not.toContain('hidden-word')
    await writeFile(file, `${url}\n`)
    await chmod(file, 0o644)
    expect((await home.run(['sessions', 'copy', '--all', '--to', '@store'])).err).toContain('Other users can read')
  }
  await chmod(file, 0o600)
  const reached = await home.run(['sessions', 'copy', '--all', '--from', '@store'])
  expect(reached.err).toContain('The database did not answer')
  expect(reached.err + reached.out).not.toContain('hidden-word')
})
