import { memoryStore, type Message, type Session, type SessionStore } from '@tapetree/session'
import { createRedactor } from '@tapetree/agent/settings'
import { expect, test, vi } from 'vitest'
import { importSession, type ImportedSession, type LineReport } from './import-session.ts'
import type { FoundSession, SourceName } from './import-source.ts'
import { sourceLineOfText } from './source-lines.ts'

const time = '2026-11-18T20:00:00.000Z'

function found(source: SourceName, lines: readonly object[]): FoundSession {
  return {
    source,
    session: { id: 's1' },
    path: 's1',
    bytes: 0,
    modified: time,
    lines: async function* read() {
      for (const [index, line] of lines.entries()) yield sourceLineOfText(JSON.stringify(line), index + 1)
    },
  }
}

interface Opened {
  session: Session
  result: ImportedSession
  reports: LineReport[]
}

async function opened(
  source: SourceName,
  lines: readonly object[],
  store: SessionStore = memoryStore(),
): Promise<Opened> {
  const reports: LineReport[] = []
  const redactor = createRedactor()
  const result = await importSession(found(source, lines), { store, redactor, onLine: (line) => reports.push(line) })
  return { session: await store.open(result.id), result, reports }
}

async function messagesOf(session: Session): Promise<Message[]> {
  return (await session.getContext()).messages.map(({ message }) => message)
}

function claude(uuid: string, parentUuid: string | null, message: object, more: object = {}): object {
  const type = 'role' in message && message.role === 'assistant' ? 'assistant' : 'user'
  return { type, uuid, parentUuid, sessionId: 's1', timestamp: time, message, ...more }
}

function codex(type: string, payload: object): object {
  return { timestamp: time, type, payload }
}

test('Claude Code: the costs that older versions wrote beside each answer survive, once for each answer', async () => {
  const answer = (text: string): object => ({
    role: 'assistant',
    id: 'msg_1',
    model: 'claude-sonnet-4-5',
    content: [{ type: 'text', text }],
    usage: { input_tokens: 10, output_tokens: 2 },
  })
  const { session } = await opened('claude-code', [
    claude('a', null, { role: 'user', content: 'How?' }),
    claude('b', 'a', answer('So.'), { costUSD: 0.25 }),
    claude('c', 'b', answer('And so.'), { costUSD: 0.25 }),
  ])
  expect(session.totals).toMatchObject({ tokens: 12, cost: 0.25 })
})

test('Claude Code: a summary of another session, which older versions wrote here, does not name this one', async () => {
  const { session, reports } = await opened('claude-code', [
    { type: 'summary', summary: 'Somebody else', leafUuid: 'elsewhere' },
    claude('a', null, { role: 'user', content: 'How?' }),
    { type: 'summary', summary: 'Caches', leafUuid: 'a' },
    { type: 'summary', summary: 'Another one', leafUuid: 'elsewhere' },
  ])
  expect(session.name).toBe('Caches')
  expect(reports.map(({ kind }) => kind)).toEqual([
    'summary (of another session)',
    'user',
    'summary',
    'summary (of another session)',
  ])
})

test('Codex: a summary that only the provider can read does not replace the conversation by its last message', async () => {
  const said = (role: string, text: string): object => ({ type: 'message', role, content: [{ type: 'text', text }] })
  const { session } = await opened('codex', [
    codex('response_item', said('user', 'How is the cache keyed?')),
    codex('response_item', said('assistant', 'By path.')),
    codex('compacted', {
      message: '',
      replacement_history: [
        said('user', 'How is the cache keyed?'),
        { type: 'compaction', encrypted_content: 'c2VjcmV0' },
      ],
    }),
    codex('response_item', said('user', 'And then?')),
  ])
  const messages = await messagesOf(session)
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  expect(JSON.stringify(await session.getTree())).toContain('c2VjcmV0')
})

test('Codex: a command that failed in an older version keeps its exit code and is an error', async () => {
  const output = (code: number): string =>
    JSON.stringify({ output: 'no such file', metadata: { exit_code: code, duration_seconds: 0.1 } })
  const { session } = await opened('codex', [
    codex('response_item', { type: 'message', role: 'user', content: 'Look.' }),
    codex('response_item', { type: 'function_call', call_id: 'c1', name: 'shell', arguments: '{}' }),
    codex('response_item', { type: 'function_call_output', call_id: 'c1', output: output(2) }),
    codex('response_item', { type: 'function_call', call_id: 'c2', name: 'shell', arguments: '{}' }),
    codex('response_item', { type: 'function_call_output', call_id: 'c2', output: output(0) }),
  ])
  const results = (await messagesOf(session)).flatMap(({ content }) =>
    content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult] : [])),
  )
  expect(results).toEqual([
    { toolUseId: 'c1', isError: true, content: 'no such file\nExit code: 2' },
    { toolUseId: 'c2', content: 'no such file' },
  ])
})

test('pi: a summary in the first version keeps the messages after the line that it names', async () => {
  const said = (content: string): object => ({ type: 'message', timestamp: time, message: { role: 'user', content } })
  const { session } = await opened('pi', [
    { type: 'session', id: 's1', timestamp: time, cwd: '/' },
    ...['one', 'two', 'three'].map(said),
    { type: 'compaction', timestamp: time, summary: 'Counted.', firstKeptEntryIndex: 2, tokensBefore: 9 },
    said('four'),
  ])
  const messages = (await messagesOf(session)).map(
    ({ content: [block] }) => block?.type === 'text' && block.text.content,
  )
  expect(messages).toEqual(['Counted.', 'two', 'three', 'four'])
})

test('opencode: what the program added to a message is not said by the user, and what it hid from the model stays hidden', async () => {
  const part = (id: string, text: string, more: object = {}): object => {
    return { table: 'part', id, message: 'm1', data: { type: 'text', text, ...more } }
  }
  const { session } = await opened('opencode', [
    { table: 'session', id: 's1', data: { title: 'Notes', time: { created: Date.parse(time) } } },
    { table: 'message', id: 'm1', data: { role: 'user', time: { created: Date.parse(time) } } },
    part('p1', 'Called the Read tool', { synthetic: true }),
    part('p2', 'Only for the screen', { ignored: true }),
    part('p3', 'What is in it?'),
  ])
  const messages = await messagesOf(session)
  expect(messages.map(({ role }) => role)).toEqual(['custom', 'user'])
  expect(JSON.stringify(messages)).not.toContain('Only for the screen')
  expect(JSON.stringify(await session.getTree())).toContain('Only for the screen')
})

test('a document that no message can hold is named, and its bytes do not become text for the model', async () => {
  const data = Buffer.alloc(30_000, 'tapetree').toString('base64')
  const source = { type: 'base64', media_type: 'application/pdf', data }
  const ofClaude = await opened('claude-code', [
    claude('a', null, { role: 'user', content: [{ type: 'document', title: 'plan.pdf', source }] }),
  ])
  const ofGemini = await opened('gemini', [
    { sessionId: 's1', projectHash: 'h', startTime: time },
    { id: 'a', timestamp: time, type: 'user', content: [{ inlineData: { data, mimeType: 'application/pdf' } }] },
  ])
  for (const { session } of [ofClaude, ofGemini]) {
    const said = JSON.stringify(await messagesOf(session))
    expect(said.length).toBeLessThan(2000)
    expect(said).toContain('application/pdf')
    expect(said).not.toContain('not those of an image')
  }
  expect(JSON.stringify(await messagesOf(ofClaude.session))).toContain('plan.pdf')
})

test('opencode: an answer that was imported while it streamed goes on in the whole answer', async () => {
  const rows = (text: string): object[] => [
    { table: 'session', id: 's1', data: { title: 'Notes', time: { created: Date.parse(time) } } },
    { table: 'message', id: 'm1', data: { role: 'user', time: { created: Date.parse(time) } } },
    { table: 'part', id: 'p1', message: 'm1', data: { type: 'text', text: 'How?' } },
    { table: 'message', id: 'm2', data: { role: 'assistant', time: { created: Date.parse(time) } } },
    { table: 'part', id: 'p2', message: 'm2', data: { type: 'text', text } },
  ]
  const store = memoryStore()
  for (const part of ['By', 'By path', 'By path.']) await (await opened('opencode', rows(part), store)).session.close()
  const { session, result } = await opened('opencode', rows('By path.'), store)
  const said = (await messagesOf(session)).map(({ content: [block] }) => block?.type === 'text' && block.text.content)
  expect([result.outcome, ...said]).toEqual(['unchanged', 'How?', 'By path.'])
})

test('a line with more small values than fit into a line of ours is kept, and what comes after it', async () => {
  const words = Array.from({ length: 1500 }, (_, index) => ({ type: 'text', text: `${index} ${'word '.repeat(150)}` }))
  const numbers = Array.from({ length: 100_000 }, (_, index) => index)
  const call = (id: string): object => ({ type: 'tool_use', id, name: 'sum', input: { numbers } })
  const calls = Array.from({ length: 3000 }, (_, index) => ({
    type: 'tool_use',
    id: `d${index}`,
    name: 'a',
    input: {},
  }))
  const { session } = await opened('claude-code', [
    claude('a', null, { role: 'user', content: 'Sum.' }),
    claude('b', 'a', { role: 'assistant', content: [{ type: 'text', text: 'Gladly.' }, call('c1')] }),
    claude('c', 'b', { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: words }] }),
    claude('d', 'c', { role: 'user', content: words }),
    { type: 'hologram', uuid: 'e', parentUuid: 'd', sessionId: 's1', timestamp: time, numbers },
    claude('f', 'e', { role: 'assistant', content: calls }),
    claude('g', 'f', { role: 'user', content: 'And then?' }),
  ])
  const messages = await messagesOf(session)
  expect(messages.map(({ role }) => role).filter((role) => role !== 'tool')).toEqual([
    'user',
    'assistant',
    'user',
    'assistant',
    'user',
  ])
  const whole = JSON.stringify(await session.getTree())
  for (const said of ['1499 word', '99998,99999', 'd2999', 'And then?']) expect(whole).toContain(said)
})

test('thousands of calls without a result are closed, where the conversation stopped', async () => {
  const calls = Array.from({ length: 900 }, (_, index) => ({ type: 'tool_use', id: `c${index}`, name: 'a', input: {} }))
  const lines = [
    claude('u', null, { role: 'user', content: 'Go.' }),
    claude('a', 'u', { role: 'assistant', content: calls }),
  ]
  const { session, result } = await opened('claude-code', lines)
  expect(result.closed).toBe(900)
  expect(JSON.stringify(await messagesOf(session)).split('No result: Claude Code stopped').length - 1).toBe(900)
  expect((await opened('claude-code', lines)).result.outcome).toBe('imported')
})

test('an import that was cut off leaves people where they went on, and the next one does too', async () => {
  const store = memoryStore()
  const lines = [
    claude('a', null, { role: 'user', content: 'How?' }),
    claude('b', 'a', { role: 'assistant', content: [{ type: 'text', text: 'So.' }] }),
  ]
  const first = await opened('claude-code', lines, store)
  const own = await first.session.appendMessage('user', [{ type: 'text', text: { content: 'I go on here.' } }])
  await first.session.close()
  const more = [...lines, claude('c', 'b', { role: 'user', content: 'And there.' })]
  const branch = vi.spyOn(Object.getPrototypeOf(first.session) as Session, 'branch')
  branch.mockRejectedValueOnce(new Error('killed'))
  await expect(opened('claude-code', more, store)).rejects.toThrow('killed')
  branch.mockRestore()
  const { session } = await opened('claude-code', more, store)
  expect(session.leafId).toBe(own)
})

const parallel = (...states: ('running' | 'completed')[]): object[] => [
  { table: 'session', id: 's1', data: { title: 'Notes', time: { created: Date.parse(time) } } },
  { table: 'message', id: 'm1', data: { role: 'user', time: { created: Date.parse(time) } } },
  { table: 'part', id: 'p1', message: 'm1', data: { type: 'text', text: 'Look.' } },
  { table: 'message', id: 'm2', data: { role: 'assistant', time: { created: Date.parse(time) } } },
  ...states.map((status, index) => {
    const state = {
      status,
      input: { path: `f${index}` },
      ...(status === 'completed' && { output: `content ${index}` }),
    }
    return {
      table: 'part',
      id: `p2${index}`,
      message: 'm2',
      data: { type: 'tool', callID: `c${index}`, tool: 'read', state },
    }
  }),
]

test.each<('running' | 'completed')[][]>([
  [
    ['running', 'running'],
    ['completed', 'running'],
    ['completed', 'completed'],
  ],
  [
    ['running', 'running'],
    ['running', 'completed'],
    ['completed', 'completed'],
  ],
  [
    ['completed', 'running'],
    ['completed', 'completed', 'running'],
    ['completed', 'completed', 'completed'],
  ],
])('opencode: calls that ended after an import have their results after the next one (%j, %j)', async (...states) => {
  const store = memoryStore()
  for (const state of states) await (await opened('opencode', parallel(...state), store)).session.close()
  const last = states.at(-1) ?? []
  const { session, result } = await opened('opencode', parallel(...last), store)
  expect(result.outcome).toBe('unchanged')
  const whole = await opened('opencode', parallel(...last))
  expect(await messagesOf(session)).toEqual(await messagesOf(whole.session))
})

test('what changes in a source while it is read is left to the next import', async () => {
  const store = memoryStore()
  const source = found('opencode', parallel('running', 'running'))
  let pass = 0
  const changing = {
    ...source,
    lines: () => found('opencode', parallel(pass++ === 0 ? 'running' : 'completed', 'running')).lines(),
  }
  const { id } = await importSession(changing, { store, redactor: createRedactor() })
  {
    await using session = await store.open(id)
    expect(session.damage).toEqual([])
  }
  const { session } = await opened('opencode', parallel('completed', 'completed'), store)
  const whole = await opened('opencode', parallel('completed', 'completed'))
  expect(await messagesOf(session)).toEqual(await messagesOf(whole.session))
})
