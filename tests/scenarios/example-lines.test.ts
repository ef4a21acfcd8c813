import { text, type Session } from '@tapetree/session'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { said, saidIn } from '../support/said.ts'
import { storedLine, textsOf } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

// The lines of sections 12 and 13, letter for letter. `"..."` is what the document has in the place of a time; it is valid JSON
// and is loaded as it stands.

const simple = [
  '{"type":"session","id":"sess-123","version":1,"timestamp":"2024-01-01T10:00:00Z"}',
  '{"type":"message","id":"msg-1","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Hello"}}]}}',
  '{"type":"message","id":"msg-2","parent_id":"msg-1","timestamp":"2024-01-01T10:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":{"content":"Hi there!"}}]}}',
]

const complex = [
  '{"type":"session","id":"sess-456","version":1,"timestamp":"2024-02-01T12:00:00Z"}',
  '{"type":"message","id":"m-1","parent_id":null,"timestamp":"2024-02-01T12:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Read main.go"}}]}}',
  '{"type":"message","id":"m-2","parent_id":"m-1","timestamp":"2024-02-01T12:00:02Z","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"call_abc","name":"read_file","input":{"path":"main.go"}}}]}}',
  '{"type":"message","id":"m-3","parent_id":"m-2","timestamp":"2024-02-01T12:00:03Z","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"call_abc","content":"package main..."}}]}}',
]

const usage = [
  '{"type":"session","id":"sess-123","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":"/path/to/project"}',
  '{"type":"message","id":"msg-1","parent_id":null,"timestamp":"...","message":{"role":"user","content":[{"type":"text","text":{"content":"Hello, Agent!"}}]}}',
  '{"type":"message","id":"msg-2","parent_id":"msg-1","timestamp":"...","message":{"role":"assistant","content":[{"type":"text","text":{"content":"Hello! How can I help?"}}]}}',
  '{"type":"message","id":"msg-3","parent_id":"msg-1","timestamp":"...","message":{"role":"user","content":[{"type":"text","text":{"content":"Actually, tell me a joke."}}]}}',
  '{"type":"label","id":"lbl-1","parent_id":"msg-3","target_id":"msg-1","label":"first-greeting","timestamp":"..."}',
  '{"type":"compaction","id":"comp-1","parent_id":"lbl-1","summary":"User greeted and then asked for a joke.","first_kept_entry_id":"msg-3","tokens_before":1500,"timestamp":"..."}',
]

inEveryStore((place) => {
  verifies(
    ['session-manager/12.1 header', 'session-manager/12.1 user-message', 'session-manager/12.1 assistant-message'],
    'the simple session of section 12.1 loads as it stands',
    async () => {
      const session = await place().load(simple)
      expect(session.header).toMatchObject({ id: 'sess-123', version: 1, timestamp: '2024-01-01T10:00:00Z' })
      expect(await saidIn(session)).toEqual(['user: Hello', 'assistant: Hi there!'])
      expect({ leafId: session.leafId, damage: session.damage, texts: await textsOf(session) }).toEqual({
        leafId: 'msg-2',
        damage: [],
        texts: simple,
      })
    },
  )

  verifies(
    ['session-manager/12.2 header', 'session-manager/12.2 user-message'],
    'the session with tools of section 12.2 loads as it stands and goes on',
    async () => {
      const session = await place().load(complex)
      await session.appendMessage('assistant', [text('It is a main package.')])
      expect(await saidIn(session)).toEqual([
        'user: Read main.go',
        'assistant: [call_abc]',
        'tool: call_abc=package main...',
        'assistant: It is a main package.',
      ])
      expect((await textsOf(session)).slice(0, 4)).toEqual(complex)
    },
  )

  verifies(
    ['session-manager/12.2 tool-call', 'session-manager/12.2 tool-result'],
    'the call of section 12.2 and its result are one pair in the context',
    async () => {
      const session = await place().load(complex)
      const { messages, repairs } = await session.getContext()
      expect(messages.slice(1)).toEqual([
        {
          entryId: 'm-2',
          message: {
            role: 'assistant',
            content: [{ type: 'tool_use', toolUse: { id: 'call_abc', name: 'read_file', input: { path: 'main.go' } } }],
          },
        },
        {
          entryId: 'm-3',
          message: {
            role: 'tool',
            content: [{ type: 'tool_result', toolResult: { toolUseId: 'call_abc', content: 'package main...' } }],
          },
        },
      ])
      expect(repairs).toEqual([])
    },
  )

  verifies(
    ['session-manager/13 header-line'],
    'the header of section 13 gives the session its working folder',
    async () => {
      const session = await place().load(usage)
      expect(session.header).toEqual({
        type: 'session',
        seq: 1,
        id: 'sess-123',
        version: 1,
        timestamp: '2024-01-01T10:00:00Z',
        cwd: '/path/to/project',
      })
    },
  )

  verifies(
    ['session-manager/13 user-line', 'session-manager/13 context-at-user-message', 'session-manager/13 context-length'],
    'with the user message of section 13 as the leaf, the context is that one message',
    async () => {
      const session = await place().load(usage.slice(0, 2))
      const { messages } = await session.getContext()
      expect(messages.map(({ entryId }) => entryId)).toEqual(['msg-1'])
    },
  )

  verifies(
    ['session-manager/13 assistant-line', 'session-manager/13 branched-line'],
    'the branched lines of section 13 load as two children of one message, and the leaf is on the second',
    async () => {
      const session = await place().load(usage.slice(0, 4))
      const [root] = await session.getTree()
      expect(root?.children.map(({ entry }) => entry.id)).toEqual(['msg-2', 'msg-3'])
      expect(await saidIn(session)).toEqual(['user: Hello, Agent!', 'user: Actually, tell me a joke.'])
      expect(said(await session.getContext({ leafId: 'msg-2' }))).toEqual([
        'user: Hello, Agent!',
        'assistant: Hello! How can I help?',
      ])
    },
  )

  verifies(
    ['session-manager/13 label-line'],
    'the flat label of section 13 is read, though it is the parent of the next line, and adds nothing to the context',
    async () => {
      const here = place()
      const session = await here.load(usage)
      expect(session.getLabels()).toEqual(new Map([['msg-1', 'first-greeting']]))
      expect(await session.getEntry('lbl-1')).toMatchObject({
        type: 'label',
        parentId: 'msg-3',
        label: { targetId: 'msg-1', label: 'first-greeting' },
      })
      expect((await session.getEntry('comp-1')).parentId).toBe('lbl-1')
      expect(await saidIn(session)).not.toContain('first-greeting')
    },
  )

  verifies(
    [
      'session-manager/13 compaction-line',
      'session-manager/13 summary-comes-first',
      'session-manager/13 kept-message-comes-second',
    ],
    'the flat compaction of section 13 gives the summary and msg-3, in this order',
    async () => {
      const session = await place().load(usage)
      expect(await session.getEntry('comp-1')).toMatchObject({
        type: 'compaction',
        compaction: {
          summary: 'User greeted and then asked for a joke.',
          firstKeptEntryId: 'msg-3',
          tokensBefore: 1500,
        },
      })
      const context = await session.getContext()
      expect(context.messages.map(({ entryId }) => entryId)).toEqual(['comp-1', 'msg-3'])
      expect(said(context)).toEqual([
        'compactionSummary: User greeted and then asked for a joke.',
        'user: Actually, tell me a joke.',
      ])
      expect({ repairs: context.repairs, damage: session.damage, leafId: session.leafId }).toEqual({
        repairs: [],
        damage: [],
        leafId: 'comp-1',
      })
    },
  )

  verifies(
    ['session-manager/13 append-user-message', 'session-manager/13 append-assistant-message'],
    'the messages of section 13 are stored as the document shows them',
    async () => {
      const { session, ids } = await useAsInTheDocument(await place().store().create({ cwd: '/path/to/project' }))
      const written = await Promise.all(ids.slice(0, 2).map((id) => storedLine(session, id)))
      const shown = usage.slice(1, 3).map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(written.map((line) => line['message'])).toEqual(shown.map((line) => line['message']))
      expect(written.map((line) => line['parent_id'])).toEqual([null, ids[0]])
    },
  )

  verifies(
    ['session-manager/13 branch-moves-leaf', 'session-manager/13 branch', 'session-manager/13 append-on-branch'],
    'going back to the user message of section 13 moves the leaf there, and the next message is its child',
    async () => {
      const session = await place().store().create()
      const first = await session.appendMessage('user', [text('Hello, Agent!')])
      await session.appendMessage('assistant', [text('Hello! How can I help?')])
      await session.branch(first)
      expect(session.leafId).toBe(first)
      const third = await session.appendMessage('user', [text('Actually, tell me a joke.')])
      expect(await storedLine(session, third)).toMatchObject({ parent_id: first })
    },
  )

  verifies(
    [
      'session-manager/13 set-label',
      'session-manager/13 append-compaction',
      'session-manager/13 append-compaction-arguments',
    ],
    'label and compaction of section 13 are stored with what they were given, nested',
    async () => {
      const { session, ids } = await useAsInTheDocument(await place().store().create())
      const [first, , third, label, compaction] = ids as [string, string, string, string, string]
      expect(await storedLine(session, label)).toMatchObject({
        type: 'label',
        parent_id: third,
        label: { target_id: first, label: 'first-greeting' },
      })
      expect(await storedLine(session, compaction)).toMatchObject({
        type: 'compaction',
        parent_id: third,
        compaction: {
          summary: 'User greeted and then asked for a joke.',
          first_kept_entry_id: third,
          tokens_before: 1500,
        },
      })
    },
  )

  verifies(
    [
      'session-manager/13 compaction-of-the-start',
      'session-manager/13 context-after-compaction',
      'session-manager/13 context-names-its-entries',
    ],
    'the context at the end of section 13 is the summary and the recent message, each naming its entry',
    async () => {
      const { session, ids } = await useAsInTheDocument(await place().store().create())
      const { messages } = await session.getContext()
      expect(messages.map(({ entryId, message, made }) => ({ entryId, role: message.role, made }))).toEqual([
        { entryId: ids[4], role: 'compactionSummary', made: 'summary' },
        { entryId: ids[2], role: 'user', made: undefined },
      ])
    },
  )
})

/** What the program of section 13 does, from its first message to its compaction; the ids of its entries in order. */
async function useAsInTheDocument(session: Session): Promise<{ session: Session; ids: string[] }> {
  const first = await session.appendMessage('user', [text('Hello, Agent!')])
  const second = await session.appendMessage('assistant', [text('Hello! How can I help?')])
  await session.branch(first)
  const third = await session.appendMessage('user', [text('Actually, tell me a joke.')])
  const label = await session.setLabel(first, 'first-greeting')
  const compaction = await session.appendCompaction('User greeted and then asked for a joke.', third, 1500)
  return { session, ids: [first, second, third, label, compaction] }
}
