import { text, type Content } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript } from '@tapetree/session/view'
import { expect, test } from 'vitest'
import { openMatters } from './open-matters.ts'

test('calls without a result, unanswered questions and an unanswered message are open', () => {
  const call = (id: string, command: string): Content => ({
    type: 'tool_use',
    toolUse: { id, name: 'bash', input: { command } },
  })
  const lines = [
    { type: 'message', id: 'u', parentId: null, message: { role: 'user', content: [text('go')] } },
    {
      type: 'message',
      id: 'a',
      parentId: 'u',
      message: { role: 'assistant', content: [call('1', 'npm test'), call('2', 'ls\n-l')] },
    },
    { type: 'tool_start', id: 't', toolStart: { callId: '1', runId: 'r', name: 'bash', input: {} } },
    {
      type: 'permission_request',
      id: 'p',
      permissionRequest: { requestId: 'q', tool: 'bash', title: 'Run ls\nwhy', options: [] },
    },
  ]
  const steps = [emptyTranscript()]
  for (const [index, line] of lines.entries()) {
    const before = steps.at(-1) ?? emptyTranscript()
    steps.push(
      reduceTranscript(before, { type: 'line', line: { seq: index + 1, timestamp: '', ...line } as unknown as Line }),
    )
  }
  expect(steps.map(openMatters)).toEqual([
    [],
    ['your last message has no answer yet'],
    ['not started: bash npm test', 'not started: bash ls'],
    ['started: bash npm test', 'not started: bash ls'],
    ['started: bash npm test', 'not started: bash ls', 'waiting for your answer: Run ls'],
  ])
})
