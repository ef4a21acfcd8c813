import { expect, test } from 'vitest'
import { ScriptedHandle } from '../testing/scripted-handle.ts'
import { LoadedEntries } from './current-session.ts'

test('a very long conversation is trimmed, and one that cannot be trimmed is not retried at every token', () => {
  const handle = new ScriptedHandle()
  const loaded = new LoadedEntries()
  for (let item = 1; item <= 3000; item++) handle.user(`message ${item}`)
  loaded.trim(handle)
  expect(handle.forgotten).toEqual([])
  handle.user('one more')
  loaded.trim(handle)
  // The scripted one keeps them all.
  loaded.trim(handle)
  expect(handle.forgotten).toEqual([1500])
  for (let item = 1; item <= 1001; item++) handle.user(`further message ${item}`)
  loaded.trim(handle)
  expect(handle.forgotten).toEqual([1500, 1500])
})
