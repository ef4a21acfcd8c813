import { text, type Session } from '@tapetree/session'
import type { EntryDraft } from '@tapetree/session/format'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask, saidIn } from '../support/said.ts'
import { storedIn, textsOf } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/1 history-manager'],
    'a history that was branched, compacted and appended to by many at once is the same after it is opened again',
    async () => {
      const { store } = place()
      const session = await store().create()
      const first = await ask(session, 'one')
      await Promise.all(['a', 'b', 'c'].map((words) => answer(session, words)))
      await session.branch(first)
      const kept = await ask(session, 'two')
      await session.appendCompaction('one was said', kept, 10)
      await session.close()
      const again = await store().open(session.id)
      expect(await saidIn(again)).toEqual(['compactionSummary: one was said', 'user: two'])
    },
  )

  verifies(
    ['session-manager/2 append-only-storage'],
    'nothing that is in the log changes, whatever is done to the session',
    async () => {
      const session = await place().store().create()
      const snapshots: string[][] = []
      for (const act of acts(session)) {
        await act()
        snapshots.push(await textsOf(session))
      }
      const last = snapshots.at(-1) ?? []
      expect(snapshots.map((texts) => last.slice(0, texts.length))).toEqual(snapshots)
    },
  )

  verifies(
    ['session-manager/2 tree-structure'],
    'many branches from one entry store what was said before them once',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'the only beginning')
      for (let branch = 0; branch < 20; branch++) {
        await session.branch(root)
        await answer(session, `ending ${branch}`)
      }
      const stored = await storedIn(session)
      expect(stored.filter((line) => JSON.stringify(line).includes('the only beginning'))).toHaveLength(1)
      expect(stored.filter((line) => line['parent_id'] === root)).toHaveLength(20)
      expect(await saidIn(session)).toEqual(['user: the only beginning', 'assistant: ending 19'])
    },
  )

  verifies(
    ['session-manager/2 context-compaction', 'session-manager/8 compaction-reduces'],
    'a compaction puts a summary in the place of a long beginning and points to where the rest begins',
    async () => {
      const session = await place().store().create()
      for (let turn = 0; turn < 50; turn++) await ask(session, `message ${turn}`)
      const kept = await ask(session, 'the last one')
      const before = await saidIn(session)
      await session.appendCompaction('fifty messages', kept, 5000)
      expect(before).toHaveLength(51)
      expect(await saidIn(session)).toEqual(['compactionSummary: fifty messages', 'user: the last one'])
    },
  )

  verifies(
    ['session-manager/2 checkpointing'],
    'a summary of what is left behind is part of the new branch',
    async () => {
      const session = await place().store().create()
      const start = await ask(session, 'start')
      await answer(session, 'a long detour')
      await session.branchWithSummary(start, 'the detour led nowhere')
      expect(await saidIn(session)).toEqual(['user: start', 'branchSummary: the detour led nowhere'])
    },
  )

  verifies(
    ['session-manager/2 concurrency', 'session-manager/6 session-lock'],
    'a hundred appends at once are all there, each under the one before it',
    async () => {
      const { store } = place()
      const session = await store().create()
      const words = Array.from({ length: 100 }, (_, index) => `message ${index}`)
      const ids = await Promise.all(words.map((each) => ask(session, each)))
      const entries = (await storedIn(session)).filter((line) => line['type'] === 'message')
      expect(entries.map((line) => line['id'])).toEqual(ids)
      expect(entries.map((line) => line['parent_id'])).toEqual([null, ...ids.slice(0, -1)])
      expect(await saidIn(session)).toEqual(words.map((each) => `user: ${each}`))
    },
  )

  verifies(
    ['session-manager/2 no-ui', 'session-manager/11.2 llm-agent'],
    'what is said comes back as it was said, Markdown, markup and control characters included',
    async () => {
      const { store } = place()
      const session = await store().create()
      const words = '# Title\n\u001B[31mred\u001B[0m <b>bold</b>\t*stars*\u0000 \u2028 你好 🌳'
      await answer(session, words)
      await session.close()
      const again = await store().open(session.id)
      const { messages } = await again.getContext()
      expect(messages.map(({ message }) => message)).toEqual([{ role: 'assistant', content: [text(words)] }])
    },
  )

  verifies(
    ['session-manager/2 no-legacy-formats'],
    'lines of the oldest formats are reported or left alone, and never rewritten',
    async () => {
      const lines = [
        '{"type":"session","id":"old","timestamp":"2024-01-01T10:00:00Z","cwd":"/"}',
        '{"type":"message","timestamp":"2024-01-01T10:00:01Z","message":{"role":"user","content":"no id"}}',
        '{"type":"message","id":"a1","parentId":null,"timestamp":"2024-01-01T10:00:02Z","message":{"role":"user","content":[]}}',
      ]
      const session = await place().load(lines)
      expect(await saidIn(session)).toEqual([])
      expect(session.damage.map(({ seq, count, reason }) => ({ seq, count, reason }))).toEqual([
        { seq: 2, count: 1, reason: 'no valid id' },
      ])
      expect(await textsOf(session)).toEqual([lines[0], 'lost 1', lines[2]])
    },
  )
})

verifies(['session-manager/2 strict-typing'], 'an entry with the wrong payload for its type does not compile', () => {
  const drafts: EntryDraft[] = [
    { type: 'thinking_level', thinkingLevel: { thinkingLevel: 'high' } },
    // @ts-expect-error: the payload of a message is a message
    { type: 'message', compaction: { summary: '', firstKeptEntryId: '', tokensBefore: 0 } },
    // @ts-expect-error: there is no such role
    { type: 'message', message: { role: 'robot', content: [] } },
    // @ts-expect-error: there is no such type
    { type: 'thought', thought: {} },
    // @ts-expect-error: tokens are counted
    { type: 'compaction', compaction: { summary: '', firstKeptEntryId: '', tokensBefore: 'many' } },
  ]
  expect(drafts).toHaveLength(5)
})

/** One of everything that a session can be told to do. */
function acts(session: Session): (() => Promise<unknown>)[] {
  let first = ''
  return [
    async () => (first = await ask(session, 'hello')),
    () => answer(session, 'hi'),
    () => session.setLabel(first, 'start'),
    () => session.setLabel(first, ''),
    () => session.appendSessionInfo('a name'),
    () => session.branch(first),
    () => session.appendModelChange('openai', 'gpt-4o'),
    () => session.appendCompaction('short', first, 3),
    () => session.branchWithSummary(first, 'left'),
    () => session.submit('later'),
    () => session.changeInbox({ action: 'clear' }),
  ]
}
