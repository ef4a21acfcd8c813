import { memoryStore, text } from '@tapetree/session'
import { expect, test } from 'vitest'
import { outcomeInLog } from './printed-run.ts'

test('the outcome of a command is found by its id: a run, a queued message, or nothing', async () => {
  const store = memoryStore()
  const session = await store.create({ id: 's1' })
  await session.appendMessage('user', [text('one')], { with: { runId: 'r1' }, cause: { cmd: 'c1' } })
  const { id } = await session.submit('two', { cause: { cmd: 'c2' } })
  const found = (command: string) => outcomeInLog(store, { sessionId: 's1', command, after: 0 })
  expect(await found('c1')).toEqual({ outcome: 'started', runId: 'r1' })
  expect(await found('c2')).toEqual({ outcome: 'queued', runId: null, messageId: id })
  expect(await found('c3')).toBeUndefined()
  await store.close()
})
