import { expect, test } from 'vitest'
import { wordAt } from './completion.ts'

test('a command is completed at the start of a message, its argument after it, and a file anywhere', () => {
  expect(wordAt('/co', 3)).toEqual({ kind: 'command', start: 0, typed: 'co' })
  expect(wordAt('/model fa', 9)).toEqual({ kind: 'argument', start: 7, typed: 'fa', command: 'model' })
  expect(wordAt('look at @src/in please', 15)).toEqual({ kind: 'file', start: 8, typed: 'src/in' })
  expect(wordAt('look /co', 8)).toBeUndefined()
  expect(wordAt('me@example', 10)).toBeUndefined()
  expect(wordAt('/rename a', 9)).toBeUndefined()
})
