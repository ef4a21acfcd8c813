import { text } from '@tapetree/session'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask } from '../support/said.ts'
import { storedLine } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/4.2 message-role', 'session-manager/4.2 message-content', 'session-manager/4.2 message-model'],
    'a message is stored with role, a list of content and, only where it is known, its model',
    async () => {
      const session = await place().store().create()
      const plain = await ask(session, 'hello')
      const modelled = await session.appendMessage('assistant', [text('hi'), text('there')], {
        with: { model: 'gpt-4o', stopReason: 'end_turn', usage: { inputTokens: 3, outputTokens: 2 } },
      })
      expect((await storedLine(session, plain))['message']).toEqual({
        role: 'user',
        content: [{ type: 'text', text: { content: 'hello' } }],
      })
      expect((await storedLine(session, modelled))['message']).toEqual({
        role: 'assistant',
        content: [
          { type: 'text', text: { content: 'hi' } },
          { type: 'text', text: { content: 'there' } },
        ],
        model: 'gpt-4o',
        stop_reason: 'end_turn',
        usage: { input_tokens: 3, output_tokens: 2 },
      })
    },
  )

  verifies(
    ['session-manager/4.2 model-change-provider', 'session-manager/4.2 model-change-model-id'],
    'a change of model is stored with provider and model_id',
    async () => {
      const session = await place().store().create()
      const id = await session.appendModelChange('anthropic', 'claude-opus')
      expect((await storedLine(session, id))['model_change']).toEqual({
        provider: 'anthropic',
        model_id: 'claude-opus',
      })
    },
  )

  verifies(
    ['session-manager/4.2 thinking-level'],
    'a thinking level is stored as any word, such as high, low and off',
    async () => {
      const session = await place().store().create()
      for (const level of ['high', 'low', 'off', 'utmost']) {
        const id = await session.appendThinkingLevelChange(level)
        expect((await storedLine(session, id))['thinking_level']).toEqual({ thinking_level: level })
      }
    },
  )

  verifies(
    ['session-manager/4.2 label-target-id', 'session-manager/4.2 label-label'],
    'a label is stored with its target; an empty, null or absent label removes it',
    async () => {
      const here = place()
      const session = await here.store().create()
      const target = await ask(session, 'hello')
      const set = await session.setLabel(target, 'greeting')
      expect((await storedLine(session, set))['label']).toEqual({ target_id: target, label: 'greeting' })
      const note = { type: 'label', parent_id: 'm1', timestamp: '2024-01-01T10:00:02Z' }
      const loaded = await here.load(
        [
          { type: 'session', id: 's', version: 1, timestamp: '2024-01-01T10:00:00Z' },
          ...['m1', 'm2', 'm3'].map((id, index) => ({
            type: 'message',
            id,
            parent_id: index === 0 ? null : `m${index}`,
            timestamp: '2024-01-01T10:00:01Z',
            message: { role: 'user', content: [] },
          })),
          ...['m1', 'm2', 'm3'].map((id) => ({ ...note, id: `l-${id}`, label: { target_id: id, label: 'mark' } })),
          { ...note, id: 'r1', label: { target_id: 'm1', label: '' } },
          { ...note, id: 'r2', label: { target_id: 'm2', label: null } },
          { ...note, id: 'r3', label: { target_id: 'm3' } },
        ].map((line) => JSON.stringify(line)),
      )
      expect(loaded.getLabels()).toEqual(new Map())
    },
  )

  verifies(['session-manager/4.2 session-info-name'], 'a session info is stored with the name', async () => {
    const session = await place().store().create()
    const id = await session.appendSessionInfo('Greetings')
    expect((await storedLine(session, id))['session_info']).toEqual({ name: 'Greetings' })
  })

  verifies(
    [
      'session-manager/4.2 compaction-summary',
      'session-manager/4.2 compaction-first-kept-entry-id',
      'session-manager/4.2 compaction-tokens-before',
    ],
    'a compaction is stored with summary, first_kept_entry_id and tokens_before',
    async () => {
      const session = await place().store().create()
      await ask(session, 'one')
      const kept = await ask(session, 'two')
      const id = await session.appendCompaction('one was said', kept, 1500)
      expect((await storedLine(session, id))['compaction']).toEqual({
        summary: 'one was said',
        first_kept_entry_id: kept,
        tokens_before: 1500,
      })
    },
  )

  verifies(
    ['session-manager/4.2 branch-summary-summary', 'session-manager/4.2 branch-summary-from-id'],
    'a branch summary is stored with its words and the leaf that was left, which is null where nothing had been said',
    async () => {
      const session = await place().store().create()
      const empty = await session.branchWithSummary(null, 'nothing yet')
      const root = await ask(session, 'hello')
      const left = await answer(session, 'hi')
      const id = await session.branchWithSummary(root, 'we greeted')
      const payloads = await Promise.all([empty, id].map(async (each) => storedLine(session, each)))
      expect(payloads.map((line) => line['branch_summary'])).toEqual([
        { summary: 'nothing yet', from_id: null },
        { summary: 'we greeted', from_id: left },
      ])
    },
  )

  verifies(
    ['session-manager/4.2 custom-type', 'session-manager/4.2 custom-data'],
    'custom data is stored under its type with every name as it was given',
    async () => {
      const session = await place().store().create()
      const data = { camelCase: 1, snake_case: { innerName: [true, null, 'x'] }, parentId: 'not ours', __proto: {} }
      const id = await session.appendCustomEntry('extension/todo', data)
      expect((await storedLine(session, id))['custom']).toEqual({ custom_type: 'extension/todo', data })
      expect(await session.getEntry(id)).toMatchObject({ custom: { customType: 'extension/todo', data } })
    },
  )
})
