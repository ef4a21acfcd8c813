import { expect, test } from 'vitest'
import { printJson } from './io.ts'
import { snakeNames } from '../text/json-text.ts'
import { testIo } from '../testing/test-io.ts'

test('printed JSON is safe for a terminal and keeps its value', async () => {
  const io = testIo()
  const value = { text: 'a\u001b[31m\u009b31m\u202e\u2028b' }
  await printJson(io, value)
  expect(io.out()).toBe('{"text":"a\\u001b[31m\\u009b31m\\u202e\\u2028b"}\n')
  expect(JSON.parse(io.out())).toEqual(value)
})

test('members are named as on disk, and foreign data keeps its names', () => {
  expect(
    snakeNames({ messageCount: 1, hits: [{ entryId: 'a' }], input: { filePath: 'b' }, labels: { idA: 'c' } }),
  ).toEqual({
    message_count: 1,
    hits: [{ entry_id: 'a' }],
    input: { filePath: 'b' },
    labels: { idA: 'c' },
  })
})
