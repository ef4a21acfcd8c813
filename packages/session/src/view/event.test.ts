import { expect, test } from 'vitest'
import { eventsOf, type PlaybackEvent } from './event.ts'
import type { Line } from '../line/line.ts'
import { text, type Content, type Message } from '../line/message.ts'

const base = { id: 'line-1', timestamp: '2026-11-14T10:00:00Z', seq: 7 }

test('the header is the start of the session', () => {
  const header: Line = { ...base, type: 'session', version: 1, cwd: '/project', parentSession: 'older' }
  expect(eventsOf(header)).toEqual([
    {
      type: 'session_start',
      seq: 7,
      timestamp: '2026-11-14T10:00:00Z',
      lineId: 'line-1',
      version: 1,
      cwd: '/project',
      parentSession: 'older',
    },
  ])
})

test('an answer gives its reasoning, text, images and calls in order', () => {
  const image = { type: 'url', mediaType: 'image/png', data: 'https://example.org/a.png' } as const
  const content: Content[] = [
    { type: 'reasoning', reasoning: { text: 'hm' } },
    text('I look.'),
    { type: 'tool_use', toolUse: { id: 'c1', name: 'read', input: { path: 'a' } } },
    text('And draw.'),
    { type: 'image', image: { source: image } },
  ]
  expect(detailsOf(message({ role: 'assistant', content }))).toEqual([
    { type: 'agent_thought', text: 'hm' },
    { type: 'agent_message', text: 'I look.', images: [] },
    { type: 'tool_call', callId: 'c1', name: 'read', input: { path: 'a' } },
    { type: 'agent_message', text: 'And draw.', images: [] },
    { type: 'agent_message', text: '', images: [image] },
  ])
})

test('an answer that ended in an error gives its content and then the error', () => {
  const failed = message({
    role: 'assistant',
    content: [text('I wa')],
    error: { kind: 'network', message: 'The line went dead.' },
    runId: 'r1',
  })
  expect(detailsOf(failed)).toEqual([
    { type: 'agent_message', text: 'I wa', images: [] },
    { type: 'error', message: 'The line went dead.', kind: 'network', runId: 'r1' },
  ])
})

test('a prompt is one event with all its text and images', () => {
  const source = { type: 'base64', mediaType: 'image/png', data: 'AAAA' } as const
  const content: Content[] = [text('Look'), { type: 'image', image: { source } }, text('here')]
  expect(detailsOf(message({ role: 'user', content, submissionId: 'q-1-a' }))).toEqual([
    { type: 'user_prompt', text: 'Look\nhere', images: [source], submissionId: 'q-1-a' },
  ])
})

test('a call runs from its start until each result reports how it ended', () => {
  const start: Line = { ...base, type: 'tool_start', toolStart: { runId: 'r1', callId: 'c1', name: 'read' } }
  const results = message({
    role: 'tool',
    content: [
      { type: 'tool_result', toolResult: { toolUseId: 'c1', content: 'fine' } },
      { type: 'tool_result', toolResult: { toolUseId: 'c2', isError: true, content: [text('no such file')] } },
    ],
  })
  expect([...detailsOf(start), ...detailsOf(results)]).toEqual([
    { type: 'tool_call_update', callId: 'c1', status: 'running' },
    { type: 'tool_call_update', callId: 'c1', status: 'completed', output: 'fine' },
    { type: 'tool_call_update', callId: 'c2', status: 'failed', output: [text('no such file')] },
  ])
})

test.each([
  ['completed', { exitCode: 0 }],
  ['failed', { exitCode: 2 }],
  ['failed', { exitCode: 0, cancelled: true }],
  ['failed', {}],
])('a user command is a call and its update: %s with %o', (status, end) => {
  const ran = message({ role: 'bashExecution', content: [], bashExecution: { command: 'ls', output: 'a b', ...end } })
  expect(detailsOf(ran)).toEqual([
    { type: 'tool_call', callId: 'line-1', name: 'bash', input: { command: 'ls' } },
    { type: 'tool_call_update', callId: 'line-1', status, output: 'a b' },
  ])
})

test('a permission is asked and then answered', () => {
  const options = [{ optionId: 'yes', label: 'Allow', kind: 'allow_once' as const }]
  const asked: Line = {
    ...base,
    type: 'permission_request',
    permissionRequest: { requestId: 'p1', callId: 'c1', tool: 'bash', title: 'Run ls', options },
  }
  const answered: Line = {
    ...base,
    type: 'permission_result',
    permissionResult: { requestId: 'p1', outcome: 'allowed', optionId: 'yes', clientId: 'tab' },
  }
  expect([...detailsOf(asked), ...detailsOf(answered)]).toEqual([
    { type: 'permission', requestId: 'p1', status: 'requested', tool: 'bash', title: 'Run ls', options, callId: 'c1' },
    { type: 'permission', requestId: 'p1', status: 'allowed', optionId: 'yes', clientId: 'tab' },
  ])
})

test('plans, files, errors, failed attempts, gaps and the end of a session are events of their own', () => {
  const items = [{ text: 'read', status: 'pending' as const }]
  const error = { kind: 'overloaded', message: 'Too busy.' }
  const lines: Line[] = [
    { ...base, type: 'plan', plan: { items } },
    { ...base, type: 'file_read', fileRead: { path: 'a', size: 1, callId: 'c1' } },
    { ...base, type: 'file_write', fileWrite: { path: 'b', size: 2 } },
    { ...base, type: 'error', error: { message: 'No key.' } },
    { ...base, type: 'attempt', attempt: { runId: 'r1', item: 'i1', error, content: [text('half')] } },
    { ...base, type: 'attempt', attempt: { runId: 'r1', item: 'i2', content: [text('cut off')] } },
    { ...base, type: 'gap', parentId: null, gap: { reason: 'this line was lost' } },
    { ...base, type: 'session_end', sessionEnd: { reason: 'done' } },
  ]
  expect(lines.flatMap(detailsOf)).toEqual([
    { type: 'plan', items },
    { type: 'file_read', path: 'a', size: 1, callId: 'c1' },
    { type: 'file_write', path: 'b', size: 2 },
    { type: 'error', message: 'No key.' },
    { type: 'error', message: 'Too busy.', kind: 'overloaded', runId: 'r1' },
    { type: 'error', message: 'this line was lost', kind: 'damage' },
    { type: 'session_end', reason: 'done' },
  ])
})

test('bookkeeping lines give no events', () => {
  const lines: Line[] = [
    { ...base, type: 'writer', writer: { term: 1, host: 'h', process: 'p', format: 1 } },
    { ...base, type: 'leaf', leaf: { targetId: null } },
    { ...base, type: 'label', parentId: null, label: { targetId: 'x', label: 'here' } },
    {
      ...base,
      type: 'compaction',
      parentId: null,
      compaction: { summary: 's', firstKeptEntryId: 'x', tokensBefore: 1 },
    },
    message({ role: 'custom', content: [text('from an extension')] }),
    { ...base, type: 'unknown', parentId: null, unknown: { type: 'later', line: {} } },
    { ...base, type: 'unknown_record', unknownRecord: { type: 'later', line: {} } },
  ]
  expect(lines.flatMap(detailsOf)).toEqual([])
})

function message(content: Message): Line {
  return { ...base, type: 'message', parentId: null, message: content }
}

function detailsOf(line: Line): Omit<PlaybackEvent, 'seq' | 'timestamp' | 'lineId'>[] {
  return eventsOf(line).map(({ seq: _seq, timestamp: _timestamp, lineId: _lineId, ...detail }) => detail)
}
