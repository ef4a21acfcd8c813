import { expect, test } from 'vitest'
import type { RestClient } from '@tapetree/client'
import type { OpenedSession } from './use-session.ts'
import { completionsFor, ownCommandIn, ownCommands, wordAt } from './completion.ts'

test('a command is completed at the start of a message, its argument after it, and a file anywhere', () => {
  expect(wordAt('/co', 3)).toEqual({ kind: 'command', start: 0, typed: 'co' })
  expect(wordAt('/model fa', 9)).toEqual({ kind: 'argument', start: 7, typed: 'fa', command: 'model' })
  expect(wordAt('look at @src/in please', 15)).toEqual({ kind: 'file', start: 8, typed: 'src/in' })
  expect(wordAt('look /co', 8)).toBeUndefined()
  expect(wordAt('me@example', 10)).toBeUndefined()
  expect(wordAt('/rename a', 9)).toBeUndefined()
})

test('a path that begins like a command is a message', () => {
  expect(ownCommandIn('/retry/backoff.ts fails')).toBeUndefined()
  expect(ownCommandIn('/retry')).toEqual({ own: ownCommands['retry'], argument: '' })
  expect(ownCommandIn('/rename a  new name\n')).toEqual({ own: ownCommands['rename'], argument: 'a  new name' })
})

test('files of another machine are not offered: the server does not have them', async () => {
  const opened = (config: object): OpenedSession =>
    ({ session: { sessionId: 's', state: () => config } }) as unknown as OpenedSession
  const rest = { files: async () => ({ files: [{ path: 'a.txt', type: 'file' }] }) } as unknown as RestClient
  const word = { kind: 'file', start: 0, typed: 'a' } as const
  expect(await completionsFor(word, opened({}), rest)).toMatchObject([{ text: '@a.txt' }])
  const workspace = { name: 'app', host: 'laptop', folder: '/app' }
  expect(await completionsFor(word, opened({ workspace }), rest)).toEqual([])
})
