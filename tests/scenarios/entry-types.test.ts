import { text, type Message, type Session } from '@tapetree/session'
import { expect } from 'vitest'
import { inEveryStore, type Place } from '../support/places.ts'
import { answer, ask, call, result, saidIn } from '../support/said.ts'
import { storedLine, type Stored } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

const payloadNames = [
  'message',
  'model_change',
  'thinking_level',
  'label',
  'session_info',
  'compaction',
  'branch_summary',
  'custom',
]

inEveryStore((place) => {
  verifies(
    ['session-manager/4.1 entry-type', 'session-manager/4.1 one-payload', 'session-manager/4.1 entry-tagged-union'],
    'an entry has one payload, under the name of its type',
    async () => {
      const session = await place().store().create()
      const ids = await oneOfEach(session)
      for (const [type, id] of Object.entries(ids)) {
        const line = await storedLine(session, id)
        expect(line['type']).toBe(type)
        expect(Object.keys(line).filter((name) => payloadNames.includes(name))).toEqual([type])
      }
      expect(Object.keys(ids).toSorted()).toEqual(payloadNames.toSorted())
    },
  )

  verifies(
    [
      'session-manager/4.1 type-session',
      'session-manager/4.1 type-session-info',
      'session-manager/4.1 payload-session-info',
    ],
    'the header has type session; the name of a session is an entry of type session_info',
    async () => {
      const session = await place().store().create({ name: 'Greetings' })
      const id = await session.appendSessionInfo('Farewells')
      expect(session.header?.type).toBe('session')
      expect(await storedLine(session, id)).toMatchObject({
        type: 'session_info',
        session_info: { name: 'Farewells' },
      })
    },
  )

  verifies(
    ['session-manager/4.1 type-message', 'session-manager/4.1 payload-message'],
    'what is said is an entry of type message with its payload under message',
    async () => {
      const { session, line } = await stored(place(), (each) => ask(each, 'hello'))
      expect(line).toMatchObject({
        type: 'message',
        message: { role: 'user', content: [{ type: 'text', text: { content: 'hello' } }] },
      })
      expect(await session.getEntry(String(line['id']))).toMatchObject({
        type: 'message',
        message: { role: 'user', content: [text('hello')] },
      })
    },
  )

  verifies(
    ['session-manager/4.1 type-model-change', 'session-manager/4.1 payload-model-change'],
    'another model is an entry of type model_change',
    async () => {
      const { session, line } = await stored(place(), (each) => each.appendModelChange('openai', 'gpt-4o'))
      expect(line).toMatchObject({ type: 'model_change', model_change: { provider: 'openai', model_id: 'gpt-4o' } })
      expect(await session.getEntry(String(line['id']))).toMatchObject({
        type: 'model_change',
        modelChange: { provider: 'openai', modelId: 'gpt-4o' },
      })
    },
  )

  verifies(
    ['session-manager/4.1 type-thinking-level', 'session-manager/4.1 payload-thinking-level'],
    'another thinking level is an entry of type thinking_level, and thinking_level_change is read as one',
    async () => {
      const here = place()
      const { line } = await stored(here, (each) => each.appendThinkingLevelChange('low'))
      expect(line).toMatchObject({ type: 'thinking_level', thinking_level: { thinking_level: 'low' } })
      const older = await here.load([
        '{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00Z"}',
        '{"type":"thinking_level_change","id":"t1","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","thinking_level":"high"}',
      ])
      expect((await older.getContext()).thinkingLevel).toBe('high')
      expect(await older.getEntry('t1')).toMatchObject({
        type: 'thinking_level',
        thinkingLevel: { thinkingLevel: 'high' },
      })
    },
  )

  verifies(
    ['session-manager/4.1 type-label', 'session-manager/4.1 payload-label'],
    'a bookmark is an entry of type label',
    async () => {
      const session = await place().store().create()
      const target = await ask(session, 'hello')
      const id = await session.setLabel(target, 'greeting')
      expect(await storedLine(session, id)).toMatchObject({
        type: 'label',
        label: { target_id: target, label: 'greeting' },
      })
    },
  )

  verifies(
    ['session-manager/4.1 type-compaction', 'session-manager/4.1 payload-compaction'],
    'a summary of the beginning is an entry of type compaction',
    async () => {
      const session = await place().store().create()
      const kept = await ask(session, 'hello')
      const id = await session.appendCompaction('short', kept, 7)
      expect(await storedLine(session, id)).toMatchObject({
        type: 'compaction',
        compaction: { summary: 'short', first_kept_entry_id: kept, tokens_before: 7 },
      })
    },
  )

  verifies(
    ['session-manager/4.1 type-branch-summary', 'session-manager/4.1 payload-branch-summary'],
    'a summary of an abandoned branch is an entry of type branch_summary',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'hello')
      const left = await answer(session, 'hi')
      const id = await session.branchWithSummary(root, 'we greeted')
      expect(await storedLine(session, id)).toMatchObject({
        type: 'branch_summary',
        branch_summary: { summary: 'we greeted', from_id: left },
      })
    },
  )

  verifies(
    ['session-manager/4.1 type-custom', 'session-manager/4.1 payload-custom'],
    'the data of an extension is an entry of type custom',
    async () => {
      const { line } = await stored(place(), (each) => each.appendCustomEntry('todo', { open: 2 }))
      expect(line).toMatchObject({ type: 'custom', custom: { custom_type: 'todo', data: { open: 2 } } })
    },
  )

  verifies(
    ['session-manager/4.1 message-role', 'session-manager/4.1 role-user', 'session-manager/4.1 role-assistant'],
    'the roles user and assistant are stored as they are and sent as they are',
    async () => {
      const session = await place().store().create()
      const roles = [await ask(session, 'hello'), await answer(session, 'hi')]
      const lines = await Promise.all(roles.map((id) => storedLine(session, id)))
      expect(lines.map(roleOf)).toEqual(['user', 'assistant'])
      expect(await saidIn(session)).toEqual(['user: hello', 'assistant: hi'])
    },
  )

  verifies(
    ['session-manager/4.1 role-tool'],
    'a result has the role tool, and toolResult is read as tool',
    async () => {
      const here = place()
      const session = await here.store().create()
      await session.appendMessage('assistant', [call('c1')])
      const id = await session.appendMessage('tool', [result('c1', 'ok')])
      expect(roleOf(await storedLine(session, id))).toBe('tool')
      const older = await here.load([
        '{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00Z"}',
        '{"type":"message","id":"a","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c1","name":"ls","input":{}}}]}}',
        '{"type":"message","id":"b","parent_id":"a","timestamp":"2024-01-01T10:00:02Z","message":{"role":"toolResult","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c1","content":"ok"}}]}}',
      ])
      expect(await saidIn(older)).toEqual(await saidIn(session))
    },
  )

  verifies(
    ['session-manager/4.1 role-bash-execution'],
    'a command that was run is in the context unless it is excluded from it',
    async () => {
      const session = await place().store().create()
      const bash = (output: string, excludeFromContext: boolean): Promise<string> =>
        session.appendMessage('bashExecution', [text(output)], {
          with: { bashExecution: { command: 'ls', output, exitCode: 0, excludeFromContext } },
        })
      const id = await bash('a.txt', false)
      await bash('secret.txt', true)
      expect(await storedLine(session, id)).toMatchObject({
        message: { role: 'bashExecution', bash_execution: { command: 'ls', output: 'a.txt', exit_code: 0 } },
      })
      expect(await saidIn(session)).toEqual(['bashExecution: a.txt'])
    },
  )

  verifies(
    ['session-manager/4.1 role-custom'],
    'a message with role custom is sent, an entry of type custom is not',
    async () => {
      const session = await place().store().create()
      await session.appendMessage('custom', [text('the build is green')])
      await session.appendCustomEntry('build', { status: 'green' })
      expect(await saidIn(session)).toEqual(['custom: the build is green'])
    },
  )

  verifies(
    ['session-manager/4.1 role-branch-summary', 'session-manager/4.1 role-compaction-summary'],
    'the summary of a branch and that of a compaction are messages with roles of their own',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'hello')
      const summary = await session.branchWithSummary(root, 'an abandoned path')
      await session.appendCompaction('what came before', summary, 9)
      const { messages } = await session.getContext()
      expect(messages.map(({ message, made }) => ({ role: message.role, made }))).toEqual([
        { role: 'compactionSummary', made: 'summary' },
        { role: 'branchSummary', made: 'summary' },
      ])
    },
  )
})

/** One entry of each type of the document, by type. */
async function oneOfEach(session: Session): Promise<Record<string, string>> {
  const message = await ask(session, 'hello')
  return {
    message,
    model_change: await session.appendModelChange('openai', 'gpt-4o'),
    thinking_level: await session.appendThinkingLevelChange('high'),
    label: await session.setLabel(message, 'start'),
    session_info: await session.appendSessionInfo('a name'),
    custom: await session.appendCustomEntry('todo', {}),
    compaction: await session.appendCompaction('short', message, 1),
    branch_summary: await session.branchWithSummary(message, 'left'),
  }
}

async function stored(
  place: Place,
  append: (session: Session) => Promise<string>,
): Promise<{ session: Session; line: Stored }> {
  const session = await place.store().create()
  return { session, line: await storedLine(session, await append(session)) }
}

function roleOf(line: Stored): string {
  return (line['message'] as Message).role
}
