import { text, type Content, type Message, type MessageRole } from '@tapetree/session'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask, call, result, saidIn } from '../support/said.ts'
import { storedLine } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/6.1 append', 'session-manager/6.1 append-signature'],
    'append adds an entry under the leaf, moves the leaf there, and gives the line as it was written',
    async () => {
      const session = await place().store().create()
      const first = await ask(session, 'hello')
      const line = await session.append({ type: 'custom', custom: { customType: 'mark', data: { at: 1 } } })
      expect(line).toMatchObject({ type: 'custom', parentId: first, custom: { customType: 'mark', data: { at: 1 } } })
      expect({ leafId: session.leafId, seq: session.head.seq }).toEqual({ leafId: line.id, seq: line.seq })
    },
  )

  verifies(
    ['session-manager/6.1 append-entry'],
    'append takes every kind of entry with an id of the caller or one of its own, and refuses an id that is none',
    async () => {
      const session = await place().store().create()
      const message: Message = { role: 'user', content: [text('hello')] }
      const named = await session.append({ type: 'message', id: 'mine-1', message })
      const unnamed = await session.append({ type: 'system', system: { prompt: 'Be brief.', tools: [], sha256: 'x' } })
      expect([named.id, unnamed.id.length]).toEqual(['mine-1', 36])
      await expect(session.append({ type: 'message', id: '../up', message })).rejects.toMatchObject({
        code: 'invalid-id',
      })
      expect(session.leafId).toBe(unnamed.id)
    },
  )

  verifies(
    [
      'session-manager/6.1 append-message',
      'session-manager/6.1 append-message-role',
      'session-manager/6.1 append-message-signature',
    ],
    'appendMessage appends a message of any role and gives the id of its entry',
    async () => {
      const session = await place().store().create()
      const roles: MessageRole[] = [
        'user',
        'assistant',
        'bashExecution',
        'custom',
        'branchSummary',
        'compactionSummary',
      ]
      const ids: string[] = []
      for (const role of roles) ids.push(await session.appendMessage(role, [text(role)]))
      const { messages } = await session.getContext()
      expect(messages.map(({ entryId, message }) => [entryId, message.role])).toEqual(
        roles.map((role, index) => [ids[index], role]),
      )
    },
  )

  verifies(
    ['session-manager/6.1 append-message-content'],
    'a message may hold text, images and calls in any order',
    async () => {
      const session = await place().store().create()
      const image: Content = {
        type: 'image',
        image: { source: { type: 'url', mediaType: 'image/png', data: 'https://example.com/a.png' } },
      }
      await session.appendMessage('assistant', [text('look'), image, call('c1')])
      await session.appendMessage('tool', [result('c1')])
      expect(await saidIn(session)).toEqual(['assistant: look <url image/png> [c1]', 'tool: c1=done'])
    },
  )

  verifies(
    [
      'session-manager/6.1 append-thinking-level-change',
      'session-manager/6.1 append-thinking-level-change-level',
      'session-manager/6.1 append-thinking-level-change-signature',
    ],
    'appendThinkingLevelChange sets the level from here on and gives the id of its entry',
    async () => {
      const session = await place().store().create()
      const levels = []
      for (const level of ['high', 'low', 'off']) {
        const id = await session.appendThinkingLevelChange(level)
        const { thinkingLevel, provenance } = await session.getContext()
        levels.push([thinkingLevel, provenance.thinkingLevelId === id])
      }
      expect(levels).toEqual([
        ['high', true],
        ['low', true],
        ['off', true],
      ])
    },
  )

  verifies(
    [
      'session-manager/6.1 append-model-change',
      'session-manager/6.1 append-model-change-provider',
      'session-manager/6.1 append-model-change-model-id',
    ],
    'appendModelChange sets provider and model from here on',
    async () => {
      const session = await place().store().create()
      await session.appendModelChange('openai', 'gpt-4o')
      const before = (await session.getContext()).model
      await session.appendModelChange('anthropic', 'claude')
      expect([before, (await session.getContext()).model]).toEqual([
        { provider: 'openai', modelId: 'gpt-4o' },
        { provider: 'anthropic', modelId: 'claude' },
      ])
    },
  )

  verifies(
    ['session-manager/6.1 append-model-change-signature'],
    'appendModelChange gives the id of its entry, which the context names as where the model comes from',
    async () => {
      const session = await place().store().create()
      const id = await session.appendModelChange('openai', 'gpt-4o')
      expect((await session.getContext()).provenance).toEqual({ systemId: null, modelId: id, thinkingLevelId: null })
    },
  )

  verifies(
    [
      'session-manager/6.1 append-compaction',
      'session-manager/6.1 append-compaction-summary',
      'session-manager/6.1 append-compaction-tokens',
    ],
    'appendCompaction keeps the summary and the count of tokens from before it',
    async () => {
      const session = await place().store().create()
      await ask(session, 'one')
      const kept = await ask(session, 'two')
      const id = await session.appendCompaction('one was said', kept, 1234)
      expect(await session.getEntry(id)).toMatchObject({
        compaction: { summary: 'one was said', tokensBefore: 1234 },
      })
      expect(await saidIn(session)).toEqual(['compactionSummary: one was said', 'user: two'])
    },
  )

  verifies(
    ['session-manager/6.1 append-compaction-first-kept-id', 'session-manager/6.1 append-compaction-signature'],
    'appendCompaction refuses an entry that is not in the context: elsewhere, compacted away, or not there',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const elsewhere = await answer(session, 'another branch')
      await session.branch(root)
      const away = await ask(session, 'compacted away')
      const kept = await ask(session, 'kept')
      const first = await session.appendCompaction('short', kept, 10)
      const head = session.head
      for (const id of [elsewhere, away, 'nobody']) {
        await expect(session.appendCompaction('x', id, 1)).rejects.toMatchObject({ code: 'not-in-context' })
      }
      expect({ leafId: session.leafId, head: session.head }).toEqual({ leafId: first, head })
    },
  )

  verifies(
    [
      'session-manager/6.1 append-session-info',
      'session-manager/6.1 append-session-info-name',
      'session-manager/6.1 append-session-info-signature',
    ],
    'appendSessionInfo names the session, the last name counts, and the leaf stays',
    async () => {
      const { store } = place()
      const session = await store().create()
      const leaf = await ask(session, 'hello')
      await session.appendSessionInfo('First')
      const id = await session.appendSessionInfo('Zweiter Name ✓')
      expect(await storedLine(session, id)).toMatchObject({ type: 'session_info', parent_id: leaf })
      await session.close()
      const again = await store().open(session.id)
      expect({ name: again.name, info: again.info.name, leafId: again.leafId }).toEqual({
        name: 'Zweiter Name ✓',
        info: 'Zweiter Name ✓',
        leafId: leaf,
      })
    },
  )

  verifies(
    [
      'session-manager/6.1 append-custom-entry',
      'session-manager/6.1 append-custom-entry-custom-type',
      'session-manager/6.1 append-custom-entry-data',
    ],
    'the data of an extension survives a restart, unchanged, under its type',
    async () => {
      const { store } = place()
      const session = await store().create()
      const data = { list: [1, 'two', null, { deep: true }], 'odd name': '', first_kept_entry_id: 'not ours' }
      const id = await session.appendCustomEntry('acme.todo', data)
      await session.close()
      const again = await store().open(session.id)
      expect(await again.getEntry(id)).toMatchObject({ type: 'custom', custom: { customType: 'acme.todo', data } })
    },
  )

  verifies(
    ['session-manager/6.1 append-custom-entry-signature'],
    'a custom entry is a node of the tree: the next entry is its child',
    async () => {
      const session = await place().store().create()
      const id = await session.appendCustomEntry('acme', {})
      const next = await ask(session, 'hello')
      expect((await session.getEntry(next)).parentId).toBe(id)
    },
  )

  verifies(
    [
      'session-manager/6.1 set-label',
      'session-manager/6.1 set-label-target-id',
      'session-manager/6.1 set-label-signature',
    ],
    'setLabel bookmarks an entry anywhere in the tree, gives the id of the note, and refuses an entry that is not there',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const other = await answer(session, 'other')
      await session.branch(root)
      const note = await session.setLabel(other, 'elsewhere')
      expect(session.getLabels()).toEqual(new Map([[other, 'elsewhere']]))
      expect((await session.getEntry(note)).type).toBe('label')
      await expect(session.setLabel('nobody', 'x')).rejects.toMatchObject({ code: 'entry-not-found' })
    },
  )

  verifies(
    ['session-manager/6.1 set-label-label', 'session-manager/9 empty-label-removes'],
    'an empty label removes the bookmark, also after a restart',
    async () => {
      const { store } = place()
      const session = await store().create()
      const target = await ask(session, 'hello')
      await session.setLabel(target, 'here')
      await session.setLabel(target, '')
      const now = session.getLabels()
      await session.close()
      expect([now, (await store().open(session.id)).getLabels()]).toEqual([new Map(), new Map()])
    },
  )
})
