import { expect, test } from 'vitest'
import { ScriptedHandle } from '../testing/scripted-handle.ts'
import { LoadedEntries } from './loaded-entries.ts'

test('a conversation is cut down where it is longer than anybody scrolls, and one that cannot be is not asked at every word', () => {
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
