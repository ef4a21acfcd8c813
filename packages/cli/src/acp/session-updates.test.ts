import { text } from '@tapetree/session'
import { expect, test } from 'vitest'
import { Talk } from '../tui/views/testing/talk.ts'
import { SessionUpdates } from './session-updates.ts'

test('an editor gets a notice of what a language server has told the model, once, and none of its environment', () => {
  const features = { terminals: false, notices: true, compaction: false, forms: false }
  const updates = new SessionUpdates({ cwd: '/', features, isOurs: () => true })
  const talk = new Talk()
    .message({ role: 'custom', content: [text('<environment>\nDate: today\n</environment>')] })
    .message({ role: 'custom', content: [text('<diagnostics>\nNew:\na.ts:1:1 error: No.\n</diagnostics>')] })
  const title = 'The language server reports 1 error in a.ts.'
  expect(updates.take(talk.transcript)).toEqual([{ sessionUpdate: 'notice', severity: 'warning', title }])
  expect(updates.take(talk.user('go on').transcript)).toEqual([])
})
