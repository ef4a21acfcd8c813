import { memoryStore } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { assistant, call, toolResult } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { filesText, filesTouchedIn, parseFiles } from './touched-files.ts'

test('files come from read, write and edit calls that succeeded, the most recent last', async () => {
  const entries = await pathOf([
    ['read', 'a.ts'],
    ['read', 'b.ts'],
    ['write', 'c.ts'],
    ['read', 'a.ts'],
    ['edit', 'missing.ts', 'failed'],
    ['grep', 'd.ts'],
  ])
  expect(filesTouchedIn(entries)).toEqual({ read: ['b.ts', 'a.ts'], changed: ['c.ts'] })
})

test('earlier files are kept, and a changed file is no longer listed as read', async () => {
  const entries = await pathOf([
    ['edit', 'a.ts'],
    ['read', 'c.ts'],
  ])
  const before = { read: ['a.ts', 'b.ts'], changed: ['c.ts'] }
  expect(filesTouchedIn(entries, before)).toEqual({ read: ['b.ts'], changed: ['c.ts', 'a.ts'] })
})

test('a call without a result or without a path names no file, and a path stays on one line', async () => {
  const session = await memoryStore().create()
  await assistant(
    session,
    call('a', 'read', { path: 'open.ts' }),
    call('b', 'read', {}),
    call('c', 'read', { path: 'x\ny' }),
  )
  await toolResult(session, 'b', '')
  await toolResult(session, 'c', '')
  expect(filesTouchedIn(await session.getContextPath())).toEqual({ read: ['x y'], changed: [] })
})

test('a long list keeps the newest and says that there were others, also in the next summary', async () => {
  const read = Array.from({ length: 250 }, (_, index) => `${index}.ts`)
  const once = filesTouchedIn(await pathOf(read.map((path) => ['read', path])))
  expect([once.read.length, once.read[0], once.read[1], once.read.at(-1)]).toEqual([
    201,
    '(and others before these)',
    '50.ts',
    '249.ts',
  ])
  const { files } = parseFiles(`words\n\n${filesText(once)}`)
  const twice = filesTouchedIn(await pathOf([['read', 'new.ts']]), files)
  expect([twice.read.length, twice.read[0], twice.read[1], twice.read.at(-1)]).toEqual([
    201,
    '(and others before these)',
    '51.ts',
    'new.ts',
  ])
})

test('each list has its own note about others', async () => {
  const others = '(and others before these)'
  const before = { read: [others, 'a.ts'], changed: [others, 'b.ts'] }
  expect(filesTouchedIn([], before)).toEqual(before)
})

async function pathOf(calls: string[][]): Promise<Entry[]> {
  const session = await memoryStore().create()
  for (const [index, [name, path, failed]] of calls.entries()) {
    await assistant(session, call(`c${index}`, name, { path }))
    const toolResult = { toolUseId: `c${index}`, content: 'x', ...(failed !== undefined && { isError: true }) }
    await session.appendMessage('tool', [{ type: 'tool_result', toolResult }])
  }
  return session.getContextPath()
}
