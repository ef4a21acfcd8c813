import { text } from '@tapetree/session'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask, call, result, saidIn } from '../support/said.ts'
import { textsOf } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/11 passive', 'session-manager/11 active-layer-outside'],
    'opening, reading and closing a session with an open run, an open call and a waiting message writes nothing',
    async () => {
      const { store } = place()
      const session = await store().create()
      await ask(session, 'go')
      await session.append({ type: 'run_start', runStart: { runId: 'r1', leafId: session.leafId } })
      await session.appendMessage('assistant', [call('c1')])
      await session.submit('next')
      const before = await textsOf(session)
      await session.close()
      const again = await store().open(session.id)
      expect({ run: again.openRun?.runId, waiting: again.inbox.messages.length }).toEqual({ run: 'r1', waiting: 1 })
      expect(await saidIn(again)).toEqual(['user: go', 'assistant: [c1]', 'tool: c1=not run on this branch'])
      await again.close()
      const last = await store().open(session.id, { readOnly: true })
      expect(await textsOf(last)).toEqual(before)
      await last.close()
    },
  )

  verifies(
    ['session-manager/11.1 event-handling'],
    'each message is in the log when its append resolves, and whoever subscribed has been told',
    async () => {
      const { store } = place()
      const session = await store().create()
      const told: string[] = []
      session.subscribe(({ line, text: stored }) => told.push(`${line.type} ${JSON.parse(stored).seq === line.seq}`))
      for (const words of ['one', 'two']) {
        await answer(session, words)
        const reader = await store().open(session.id, { readOnly: true })
        expect(await saidIn(reader)).toEqual(await saidIn(session))
        await reader.close()
      }
      expect(told).toEqual(['writer true', 'message true', 'message true'])
    },
  )

  verifies(
    ['session-manager/11.1 context-management'],
    'the context before each request is that of the leaf at that moment',
    async () => {
      const session = await place().store().create()
      const lengths: number[] = []
      for (const words of ['one', 'two', 'three']) {
        await ask(session, words)
        lengths.push((await saidIn(session)).length)
        await answer(session, `${words} it is`)
      }
      expect(lengths).toEqual([1, 3, 5])
    },
  )

  verifies(
    ['session-manager/11.1 leaf-during-switches'],
    'the leaf cannot be moved while a run is open, and can be when it has ended',
    async () => {
      const session = await place().store().create()
      const first = await ask(session, 'one')
      await session.append({ type: 'run_start', runStart: { runId: 'r1', leafId: first } })
      await answer(session, 'two')
      await expect(session.branch(first)).rejects.toMatchObject({ code: 'session-busy' })
      await expect(session.branchWithSummary(first, 'x')).rejects.toMatchObject({ code: 'session-busy' })
      await session.append({ type: 'run_end', runEnd: { runId: 'r1', outcome: 'failed' } })
      await session.branch(first)
      expect(await saidIn(session)).toEqual(['user: one'])
    },
  )

  verifies(
    ['session-manager/11.1 when-to-summarise'],
    'a summary of an abandoned path names the leaf that was abandoned, which can still be opened',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const left = await answer(session, 'abandoned')
      const id = await session.branchWithSummary(root, 'it was abandoned')
      const entry = await session.getEntry(id)
      const fromId = entry.type === 'branch_summary' ? entry.branchSummary.fromId : null
      expect(fromId).toBe(left)
      await session.branch(fromId)
      expect(await saidIn(session)).toEqual(['user: root', 'assistant: abandoned'])
    },
  )

  verifies(
    ['session-manager/11.2 agent-session'],
    'the session does what it is told, wise or not: a compaction inside of a turn is stored and the context is mended',
    async () => {
      const session = await place().store().create()
      await ask(session, 'go')
      await session.appendMessage('assistant', [call('c1')])
      const kept = await session.appendMessage('tool', [result('c1', 'ok')])
      await session.appendCompaction('short', kept, 1)
      const context = await session.getContext()
      expect(context.messages.map(({ message }) => message.content)).toEqual([
        [text('short')],
        [text('Result of an earlier call (c1):'), text('ok')],
      ])
      expect(context.repairs).toHaveLength(1)
    },
  )

  verifies(
    ['session-manager/11.2 session-manager'],
    'lines, tree and path are the same whether they come from memory or from the log again',
    async () => {
      const { store } = place()
      const session = await store().create()
      const root = await ask(session, 'root')
      await answer(session, 'left')
      await session.branch(root)
      await answer(session, 'right')
      const before = [await textsOf(session), await session.getTree(), await session.getContext()]
      await session.close()
      const again = await store().open(session.id)
      expect([await textsOf(again), await again.getTree(), await again.getContext()]).toEqual(before)
    },
  )
})
