import { text, type Session } from '@tapetree/session'
import { chooseCutPoint, findCutPoints } from '@tapetree/session/view'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask, call, result, said, saidIn } from '../support/said.ts'
import { storedLine } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/8.1 summary', 'session-manager/8.1 tokens-before'],
    'a compaction keeps the words of its summary and the count of tokens before it',
    async () => {
      const session = await place().store().create()
      const kept = await ask(session, 'hello')
      const summary = '## Goal\nGreet.\n\n## Done\n- nothing'
      const id = await session.appendCompaction(summary, kept, 123_456)
      expect(await session.getEntry(id)).toMatchObject({
        type: 'compaction',
        compaction: { summary, tokensBefore: 123_456 },
      })
    },
  )

  verifies(
    ['session-manager/8.1 first-kept-entry-id'],
    'what remains after the summary begins with the entry that the compaction names',
    async () => {
      const session = await place().store().create()
      await ask(session, 'one')
      const kept = await ask(session, 'two')
      await answer(session, 'three')
      await session.appendCompaction('short', kept, 1)
      const { messages } = await session.getContext()
      expect(messages.map(({ entryId }) => entryId).indexOf(kept)).toBe(1)
      expect(await saidIn(session)).toEqual(['compactionSummary: short', 'user: two', 'assistant: three'])
    },
  )

  verifies(
    ['session-manager/8.1 tokens-before-snapshot'],
    'the counts of all compactions can be read from the tree later, newest last',
    async () => {
      const { store } = place()
      const session = await store().create()
      for (const tokens of [1000, 900, 1100]) {
        const kept = await ask(session, 'again')
        await session.appendCompaction('short', kept, tokens)
      }
      await session.close()
      const again = await store().open(session.id)
      const counts = (await allEntries(again)).flatMap((entry) =>
        entry.type === 'compaction' ? [entry.compaction.tokensBefore] : [],
      )
      expect(counts).toEqual([1000, 900, 1100])
    },
  )

  verifies(
    ['session-manager/8.2 semantic-integrity', 'session-manager/8.2 call-and-result-are-one'],
    'after a cut at any point that was found, every call has its result directly behind it and no result is alone',
    async () => {
      const session = await place().store().create()
      await talkWithTools(session)
      const points = findCutPoints(await session.getContextPath())
      const leaf = session.leafId
      expect(points.length).toBeGreaterThan(4)
      for (const { entryId } of points) {
        await session.branch(leaf)
        await session.appendCompaction('short', entryId, 1)
        const context = await session.getContext()
        expect({ entryId, repairs: context.repairs }).toEqual({ entryId, repairs: [] })
        expect(unansweredIn(said(context))).toEqual([])
      }
    },
  )

  verifies(
    ['session-manager/8.2 no-tool-splitting'],
    'no cut lies between a call and its result, also where something was said in between',
    async () => {
      const session = await place().store().create()
      await ask(session, 'go')
      const asked = await session.appendMessage('assistant', [call('c1'), call('c2')])
      const between = await ask(session, 'wait')
      const first = await session.appendMessage('tool', [result('c2')])
      const second = await session.appendMessage('tool', [result('c1')])
      const after = await ask(session, 'go on')
      const points = findCutPoints(await session.getContextPath()).map(({ entryId }) => entryId)
      expect(points.filter((id) => [between, first, second].includes(id))).toEqual([])
      expect(points).toEqual(expect.arrayContaining([asked, after]))
    },
  )

  verifies(
    ['session-manager/8.2 cut-before-user'],
    'a cut before a user message is preferred to any other that keeps more',
    async () => {
      const session = await place().store().create()
      await ask(session, 'one')
      await answer(session, 'two')
      await session.appendModelChange('a', 'b')
      await answer(session, 'three')
      const turn = await ask(session, 'four')
      await answer(session, 'five')
      expect(await cutOf(session, 5)).toEqual({ entryId: turn, kind: 'user' })
    },
  )

  verifies(
    ['session-manager/8.2 cut-before-answer'],
    'without a user message that fits, the cut is before an answer without calls; before one with calls only if nothing else fits',
    async () => {
      const session = await place().store().create()
      await ask(session, 'one long turn')
      const asking = await session.appendMessage('assistant', [call('c1')])
      await session.appendMessage('tool', [result('c1')])
      expect(await cutOf(session, 2)).toEqual({ entryId: asking, kind: 'inside-turn' })
      const plain = await answer(session, 'so far')
      await session.appendMessage('assistant', [call('c2')])
      await session.appendMessage('tool', [result('c2')])
      expect(await cutOf(session, 5)).toEqual({ entryId: plain, kind: 'assistant' })
    },
  )

  verifies(
    ['session-manager/8.2 cut-before-other-entry'],
    'a cut may lie before an entry that is no message, such as a change of model or of thinking level',
    async () => {
      const session = await place().store().create()
      await ask(session, 'hello')
      const ids = [await session.appendModelChange('a', 'b'), await session.appendThinkingLevelChange('high')]
      await session.appendMessage('assistant', [call('c1')])
      await session.appendMessage('tool', [result('c1')])
      const points = findCutPoints(await session.getContextPath())
      expect(points.filter(({ kind }) => kind === 'entry').map(({ entryId }) => entryId)).toEqual(ids)
      expect(await cutOf(session, 4)).toEqual({ entryId: ids[0], kind: 'entry' })
    },
  )

  verifies(
    [
      'session-manager/8.2 caller-chooses',
      'session-manager/11.1 safe-cut-points',
      'session-manager/11.2 compaction-utils',
    ],
    'the caller says what an entry weighs and how much to keep, and gets the place to hand to appendCompaction',
    async () => {
      const session = await place().store().create()
      for (const words of ['x'.repeat(100), 'y'.repeat(100), 'z'.repeat(10)]) await ask(session, words)
      const path = await session.getContextPath()
      const cut = chooseCutPoint({ path, sizeOf: (entry) => JSON.stringify(entry).length, keep: 600 })
      expect(cut?.index).toBe(1)
      await session.appendCompaction('an x', cut?.entryId ?? '', 1)
      expect(await saidIn(session)).toEqual([
        'compactionSummary: an x',
        `user: ${'y'.repeat(100)}`,
        `user: ${'z'.repeat(10)}`,
      ])
    },
  )

  verifies(
    ['session-manager/8.2 identify-leaf', 'session-manager/8.2 find-path'],
    'the context is the path from the root to the leaf, and nothing from beside it',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const left = await answer(session, 'left')
      await session.branch(root)
      await answer(session, 'right')
      const atRight = await saidIn(session)
      await session.branch(left)
      expect([atRight, await saidIn(session)]).toEqual([
        ['user: root', 'assistant: right'],
        ['user: root', 'assistant: left'],
      ])
    },
  )

  verifies(
    ['session-manager/8.2 find-compaction'],
    'only the newest compaction on the path speaks, and going back to before it undoes it',
    async () => {
      const session = await place().store().create()
      await ask(session, 'one')
      const two = await ask(session, 'two')
      await session.appendCompaction('first summary', two, 1)
      const three = await ask(session, 'three')
      await session.appendCompaction('second summary', three, 1)
      const both = await saidIn(session)
      await session.branch(three)
      const first = await saidIn(session)
      await session.branch(two)
      expect([both, first, await saidIn(session)]).toEqual([
        ['compactionSummary: second summary', 'user: three'],
        ['compactionSummary: first summary', 'user: two', 'user: three'],
        ['user: one', 'user: two'],
      ])
    },
  )

  verifies(
    ['session-manager/8.2 without-compaction'],
    'without a compaction every message of the path is in the context',
    async () => {
      const session = await place().store().create()
      const words = Array.from({ length: 40 }, (_, index) => `message ${index}`)
      for (const each of words) await ask(session, each)
      expect(await saidIn(session)).toEqual(words.map((each) => `user: ${each}`))
    },
  )

  verifies(
    ['session-manager/8.2 summary-first', 'session-manager/8.2 up-to-leaf'],
    'with a compaction the summary comes first, then everything from the first kept entry to the leaf, past the compaction too',
    async () => {
      const session = await place().store().create()
      await ask(session, 'gone')
      const kept = await ask(session, 'kept')
      await answer(session, 'before')
      await session.appendCompaction('short', kept, 1)
      await ask(session, 'after')
      expect(await saidIn(session)).toEqual([
        'compactionSummary: short',
        'user: kept',
        'assistant: before',
        'user: after',
      ])
    },
  )

  verifies(
    ['session-manager/8.2 from-first-kept'],
    'a kept entry that is not on the path leaves the summary and what comes after it, and is reported',
    async () => {
      const session = await place().load([
        '{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00Z"}',
        '{"type":"message","id":"m1","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"before"}}]}}',
        '{"type":"compaction","id":"k","parent_id":"m1","timestamp":"2024-01-01T10:00:02Z","compaction":{"summary":"short","first_kept_entry_id":"elsewhere","tokens_before":1}}',
        '{"type":"message","id":"m2","parent_id":"k","timestamp":"2024-01-01T10:00:03Z","message":{"role":"user","content":[{"type":"text","text":{"content":"after"}}]}}',
      ])
      const context = await session.getContext()
      expect(said(context)).toEqual(['compactionSummary: short', 'user: after'])
      expect(context.repairs).toEqual(['The first entry kept by compaction k is not on this path.'])
    },
  )

  verifies(
    ['session-manager/8.2 inject-system-info'],
    'model and thinking level are those last set on the path, before a cut too, and each branch has its own',
    async () => {
      const session = await place().store().create()
      await session.appendModelChange('openai', 'gpt-4o')
      await session.appendThinkingLevelChange('high')
      const kept = await ask(session, 'hello')
      await session.appendCompaction('short', kept, 1)
      const compacted = await session.getContext()
      await session.branch(kept)
      await session.appendThinkingLevelChange('off')
      const branched = await session.getContext()
      const model = { provider: 'openai', modelId: 'gpt-4o' }
      expect([compacted, branched].map((each) => [each.model, each.thinkingLevel])).toEqual([
        [model, 'high'],
        [model, 'off'],
      ])
    },
  )

  verifies(
    ['session-manager/11.1 token-usage', 'session-manager/11.1 when-to-compact'],
    'the usage of each answer and the count before each compaction are kept for whoever decides when to compact',
    async () => {
      const { store } = place()
      const session = await store().create()
      const kept = await ask(session, 'hello')
      const usage = { inputTokens: 900, outputTokens: 100, totalTokens: 1000, cost: 0.01 }
      const id = await session.appendMessage('assistant', [text('hi')], { with: { usage } })
      const compaction = await session.appendCompaction('short', kept, usage.totalTokens)
      await session.close()
      const again = await store().open(session.id)
      expect(await again.getEntry(id)).toMatchObject({ message: { usage } })
      expect((await storedLine(again, compaction))['compaction']).toMatchObject({ tokens_before: 1000 })
      expect(again.info.cost).toBeCloseTo(0.01)
    },
  )
})

async function cutOf(session: Session, keep: number): Promise<{ entryId: string; kind: string } | undefined> {
  const cut = chooseCutPoint({ path: await session.getContextPath(), sizeOf: () => 1, keep })
  return cut && { entryId: cut.entryId, kind: cut.kind }
}

async function talkWithTools(session: Session): Promise<void> {
  await ask(session, 'go')
  await session.appendMessage('assistant', [text('let me see'), call('a1'), call('a2')])
  await session.appendMessage('tool', [result('a2')])
  await ask(session, 'hurry')
  await session.appendMessage('tool', [result('a1')])
  await session.appendModelChange('openai', 'gpt-4o')
  await answer(session, 'seen')
  await ask(session, 'more')
  await session.appendMessage('assistant', [call('b1')])
  await session.appendMessage('tool', [result('b1')])
  await answer(session, 'done')
}

/** Calls whose result does not follow, in what was said. */
function unansweredIn(lines: readonly string[]): string[] {
  return lines.flatMap((line, index) => {
    const calls = [...line.matchAll(/\[(\w+)\]/g)].map(([, id]) => id)
    return calls.filter((id, nth) => lines[index + 1 + nth] !== `tool: ${id}=done`).map(() => line)
  })
}

async function allEntries(session: Session): Promise<Awaited<ReturnType<Session['getEntry']>>[]> {
  const path = []
  for (let id = session.leafId; id !== null;) {
    const entry = await session.getEntry(id)
    path.unshift(entry)
    id = entry.parentId
  }
  return path
}
