import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type Transcript } from '@tapetree/session/view'
import { expect, test } from 'vitest'
import { testIo } from '../testing/test-io.ts'
import { Progress, toolLine } from './progress.ts'

const line = (seq: number, message: object): DiskLine => ({
  type: 'message',
  id: `m${seq}`,
  parent_id: seq > 1 ? `m${seq - 1}` : null,
  timestamp: '',
  message,
})

const call = (id: string, name: string, input: object): object => ({ type: 'tool_use', tool_use: { id, name, input } })
const result = (id: string, content: string): object => ({
  role: 'tool',
  content: [{ type: 'tool_result', tool_result: { tool_use_id: id, is_error: true, content } }],
})

test('each call is printed once when it is made, and once more when it fails', async () => {
  const io = testIo()
  const progress = new Progress({ io, after: 1, showsWords: true, endLine: async () => undefined })
  const lines = [
    line(1, { role: 'assistant', content: [call('old', 'ls', {})] }),
    line(2, {
      role: 'assistant',
      content: [call('a', 'bash', { command: 'one\ntwo' }), call('b', 'read', { path: 'x' })],
    }),
    line(3, result('b', '\n\u001b[2JNo such file.\nmore')),
    line(4, { role: 'assistant', content: [call('c', 'todo', { items: [] })] }),
  ]
  let transcript: Transcript = emptyTranscript()
  for (const [index, disk] of lines.entries()) {
    transcript = reduceTranscript(transcript, { type: 'line', line: fromDisk(disk, index + 1) })
    await progress.print(transcript)
    await progress.print(transcript)
  }
  expect(io.err()).toBe('> bash one two\n> read x\nx read failed: ␛[2JNo such file.\n> todo {"items":[]}\n')
})

test('a call fits on a line, and cannot move the cursor', () => {
  expect(toolLine({ name: 'bash', input: { command: 'echo \u001b[2J' } })).toBe('bash echo ␛[2J')
  expect(toolLine({ name: 'bash', input: { command: 'x'.repeat(200) } }, 20)).toBe(`bash ${'x'.repeat(14)}…`)
})
