import { isId } from '@tapetree/session'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask, saidIn } from '../support/said.ts'
import { storedIn, storedLine, textsOf } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

inEveryStore((place) => {
  verifies(
    ['session-manager/3 jsonl', 'session-manager/3 one-line-one-event'],
    'every line is one JSON object, and every append is one line',
    async () => {
      const session = await place().store().create()
      await ask(session, 'two\nlines')
      const before = await textsOf(session)
      await session.appendModelChange('openai', 'gpt-4o')
      const after = await textsOf(session)
      expect(after.map((line) => typeof JSON.parse(line))).toEqual(after.map(() => 'object'))
      expect(after.filter((line) => line.includes('\n'))).toEqual([])
      expect(after).toHaveLength(before.length + 1)
    },
  )

  verifies(
    ['session-manager/3 header-first', 'session-manager/4.1 header', 'session-manager/4.1 header-type'],
    'the first line is the header, and it is the only line of type session',
    async () => {
      const session = await place().store().create({ cwd: '/project' })
      await ask(session, 'hello')
      const stored = await storedIn(session)
      expect(stored.map((line) => line['type'] === 'session')).toEqual([true, ...stored.slice(1).map(() => false)])
      expect(session.header).toMatchObject({ type: 'session', seq: 1, cwd: '/project' })
    },
  )

  verifies(
    ['session-manager/4.1 header-id', 'session-manager/4.1 header-version', 'session-manager/4.1 header-timestamp'],
    'the header says which session this is, since when, and in which version',
    async () => {
      const now = new Date('2026-11-20T10:00:00.000Z')
      const session = await place()
        .store({ now: () => now })
        .create({ id: 'sess-123' })
      const [header] = await storedIn(session)
      expect(header).toEqual({
        seq: 1,
        type: 'session',
        id: 'sess-123',
        timestamp: now.toISOString(),
        version: 1,
        crc: expect.stringMatching(/^[0-9a-f]{8}$/),
      })
    },
  )

  verifies(
    ['session-manager/4.1 header-parent-session'],
    'the header names the session and the entry that this one was taken from, and nothing where there is none',
    async () => {
      const store = place().store()
      const session = await store.create()
      const leaf = await ask(session, 'hello')
      const copy = await store.open(await session.createBranchedSession(leaf))
      expect((await storedIn(session))[0]).not.toHaveProperty('parent_session')
      expect((await storedIn(copy))[0]).toMatchObject({ parent_session: session.id, parent_entry: leaf })
      expect(copy.header).toMatchObject({ parentSession: session.id, parentEntry: leaf })
    },
  )

  verifies(
    ['session-manager/3 body-ordered'],
    'the lines after the header are in the order of what happened, numbered one by one',
    async () => {
      const session = await place().store().create()
      const ids = [await ask(session, 'one'), await answer(session, 'two'), await session.appendModelChange('a', 'b')]
      const stored = await storedIn(session)
      expect(stored.map((line) => line['seq'])).toEqual(stored.map((_, index) => index + 1))
      expect(stored.filter((line) => 'parent_id' in line).map((line) => line['id'])).toEqual(ids)
    },
  )

  verifies(
    ['session-manager/3 base-structure', 'session-manager/4.1 entry-type-member', 'session-manager/4.1 entry-id'],
    'every entry begins with seq, type, id and parent_id and ends with its checksum; its id is a UUID of version 7',
    async () => {
      const session = await place().store().create()
      const first = await ask(session, 'one')
      const ids = [
        first,
        await session.appendModelChange('openai', 'gpt-4o'),
        await session.appendThinkingLevelChange('high'),
        await session.setLabel(first, 'start'),
        await session.appendSessionInfo('a name'),
        await session.appendCustomEntry('notes', {}),
        await session.appendCompaction('short', first, 1),
        await session.branchWithSummary(first, 'left'),
      ]
      const lines = await Promise.all(ids.map((id) => storedLine(session, id)))
      for (const line of lines) {
        const names = Object.keys(line)
        expect(names.slice(0, 5)).toEqual(['seq', 'type', 'id', 'parent_id', 'timestamp'])
        expect(names.at(-1)).toBe('crc')
      }
      expect(ids.filter((id) => !uuidV7.test(id) || !isId(id))).toEqual([])
      expect(ids.toSorted()).toEqual(ids)
    },
  )

  verifies(
    ['session-manager/4.1 entry-parent-id'],
    'the first entry has parent_id null, and so has one that begins again at the root',
    async () => {
      const session = await place().store().create()
      const first = await ask(session, 'one')
      const second = await answer(session, 'two')
      await session.branch(null)
      const other = await ask(session, 'a new start')
      const parents = await Promise.all([first, second, other].map(async (id) => storedLine(session, id)))
      expect(parents.map((line) => line['parent_id'])).toEqual([null, first, null])
      expect(await saidIn(session)).toEqual(['user: a new start'])
    },
  )

  verifies(
    ['session-manager/4.1 entry-timestamp'],
    'an entry has the time of its append as an ISO 8601 time in UTC',
    async () => {
      const now = new Date('2024-01-01T12:00:00.000Z')
      const session = await place()
        .store({ now: () => now })
        .create()
      const id = await ask(session, 'hello')
      expect((await storedLine(session, id))['timestamp']).toBe('2024-01-01T12:00:00.000Z')
      expect((await session.getEntry(id)).timestamp).toBe('2024-01-01T12:00:00.000Z')
    },
  )
})
