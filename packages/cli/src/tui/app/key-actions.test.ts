import { expect, test } from 'vitest'
import { keys } from '../testing/chat-driver.ts'
import { actionFor, keyTable, type KeySituation } from './key-actions.ts'

const idle: KeySituation = {
  isBusy: false,
  isComposerEmpty: true,
  hasQueued: false,
  takesEscape: false,
  isAtNewest: true,
  hasPostponed: false,
  canScroll: true,
}

test('no key has two meanings', () => {
  const all = keyTable.flatMap((row) => row.keys)
  expect(new Set(all).size).toBe(all.length)
})

test('a key belongs to the chat only if the composer does not use it', () => {
  const meanings = [
    actionFor(keys.ctrlD, idle),
    actionFor(keys.ctrlD, { ...idle, isComposerEmpty: false }),
    actionFor(keys.altEnter, idle),
    actionFor(keys.altEnter, { ...idle, isBusy: true }),
    actionFor(keys.escape, { ...idle, takesEscape: true }),
    actionFor(keys.end, idle),
    actionFor(keys.end, { ...idle, isAtNewest: false }),
    actionFor(keys.pageUp, { ...idle, canScroll: false }),
    actionFor('a', idle),
    actionFor(keys.up, idle),
    actionFor(keys.up, { ...idle, hasQueued: true }),
    actionFor(keys.enter, idle),
    actionFor(keys.enter, { ...idle, hasPostponed: true }),
    actionFor(keys.enter, { ...idle, hasPostponed: true, isComposerEmpty: false }),
  ]
  const [no, enter] = [undefined, 'enter']
  expect(meanings).toEqual(['end', no, no, 'steer', no, no, 'newest', no, no, no, 'edit_queued', no, enter, no])
})
