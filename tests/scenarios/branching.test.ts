import { text } from '@tapetree/session'
import type { TreeNode } from '@tapetree/session/view'
import { expect } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask, call, result, saidIn } from '../support/said.ts'
import { storedIn, storedLine, textsOf } from '../support/stored.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/7.1 entries-form-a-tree', 'session-manager/7.1 leaf-is-current'],
    'the entries form a tree and the leaf is where the session goes on',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const left = await answer(session, 'left')
      await session.branch(root)
      const right = await answer(session, 'right')
      expect(outlineOf(await session.getTree())).toEqual([[root, [[left], [right]]]])
      expect(session.leafId).toBe(right)
    },
  )

  verifies(
    ['session-manager/7.1 unique-id', 'session-manager/7.1 parent-is-leaf'],
    'a new entry has an id that no other has, and the leaf as its parent',
    async () => {
      const session = await place().store().create()
      const ids: string[] = []
      for (let index = 0; index < 100; index++) {
        const leaf = session.leafId
        const id = await session.appendCustomEntry('n', { index })
        expect((await session.getEntry(id)).parentId).toBe(leaf)
        ids.push(id)
      }
      expect(new Set(ids).size).toBe(100)
    },
  )

  verifies(
    ['session-manager/7.1 appended-and-indexed'],
    'an entry is in the log and can be found when its append resolves, and not before',
    async () => {
      const { store } = place()
      const session = await store().create()
      const appending = session.append({ type: 'message', id: 'm-1', message: { role: 'user', content: [text('hi')] } })
      const meanwhile = { leafId: session.leafId, seq: session.head.seq }
      await appending
      expect(meanwhile).toEqual({ leafId: null, seq: 1 })
      expect((await session.getEntry('m-1')).id).toBe('m-1')
      const reader = await store().open(session.id, { readOnly: true })
      expect(await saidIn(reader)).toEqual(['user: hi'])
      await reader.close()
    },
  )

  verifies(
    ['session-manager/7.1 leaf-advances'],
    'every node becomes the leaf; labels, names and records do not',
    async () => {
      const session = await place().store().create()
      const moves: boolean[] = []
      const watch = async (append: Promise<unknown>): Promise<void> => {
        const before = session.leafId
        await append
        moves.push(session.leafId !== before)
      }
      await watch(ask(session, 'hello'))
      const first = session.leafId ?? ''
      await watch(session.appendModelChange('a', 'b'))
      await watch(session.appendThinkingLevelChange('high'))
      await watch(session.appendCustomEntry('x', {}))
      await watch(session.append({ type: 'system', system: { prompt: '', tools: [], sha256: '' } }))
      await watch(session.appendCompaction('s', first, 1))
      await watch(session.branchWithSummary(first, 's'))
      await watch(session.setLabel(first, 'label'))
      await watch(session.appendSessionInfo('name'))
      await watch(session.submit('waiting'))
      await watch(session.append({ type: 'plan', plan: { items: [] } }))
      expect(moves).toEqual([true, true, true, true, true, true, true, false, false, false, false])
    },
  )

  verifies(
    ['session-manager/6.1 branch', 'session-manager/6.1 branch-signature', 'session-manager/7.2 back-in-time'],
    'branch goes back to an earlier entry, and that survives a restart',
    async () => {
      const { store } = place()
      const session = await store().create()
      const first = await ask(session, 'one')
      await answer(session, 'two')
      await ask(session, 'three')
      await expect(session.branch(first)).resolves.toBeUndefined()
      await session.close()
      const again = await store().open(session.id)
      expect({ leafId: again.leafId, said: await saidIn(again) }).toEqual({ leafId: first, said: ['user: one'] })
    },
  )

  verifies(
    ['session-manager/6.1 branch-entry-id'],
    'branch takes any entry of the tree or null, and refuses a note and what is not there',
    async () => {
      const session = await place().store().create()
      const first = await ask(session, 'one')
      const note = await session.setLabel(first, 'note')
      await expect(session.branch(note)).rejects.toMatchObject({ code: 'invalid-entry' })
      await expect(session.branch('nobody')).rejects.toMatchObject({ code: 'entry-not-found' })
      expect(session.leafId).toBe(first)
      await session.branch(null)
      expect([session.leafId, await saidIn(session)]).toEqual([null, []])
    },
  )

  verifies(
    ['session-manager/7.2 branch-moves-leaf', 'session-manager/7.2 next-append-is-child'],
    'branch only moves the leaf; the next append is a child of the chosen entry, beside what was there',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const old = await answer(session, 'old')
      const before = (await storedIn(session)).filter((line) => 'parent_id' in line)
      await session.branch(root)
      expect((await storedIn(session)).filter((line) => 'parent_id' in line)).toEqual(before)
      const fresh = await answer(session, 'fresh')
      expect(outlineOf(await session.getTree())).toEqual([[root, [[old], [fresh]]]])
    },
  )

  verifies(
    ['session-manager/6.1 branch-with-summary', 'session-manager/7.2 branch-with-summary-order'],
    'branchWithSummary appends the summary under its target and makes it the leaf, in one line',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      await answer(session, 'abandoned')
      const before = await textsOf(session)
      const id = await session.branchWithSummary(root, 'went wrong')
      expect(await storedLine(session, id)).toMatchObject({ type: 'branch_summary', parent_id: root })
      expect([session.leafId, (await textsOf(session)).length - before.length]).toEqual([id, 1])
    },
  )

  verifies(
    [
      'session-manager/6.1 branch-with-summary-from-id',
      'session-manager/6.1 branch-with-summary-summary',
      'session-manager/6.1 branch-with-summary-signature',
    ],
    'branchWithSummary takes the entry to branch from and the words, and refuses an entry that is not there',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const left = await answer(session, 'abandoned')
      const id = await session.branchWithSummary(root, 'the words')
      expect(await session.getEntry(id)).toMatchObject({
        parentId: root,
        branchSummary: { summary: 'the words', fromId: left },
      })
      await expect(session.branchWithSummary('nobody', 'x')).rejects.toMatchObject({ code: 'entry-not-found' })
      expect(session.leafId).toBe(id)
    },
  )

  verifies(
    ['session-manager/7.2 branch-with-summary-use', 'session-manager/7.2 branch-with-summary-checkpoint'],
    'after a long branch its summary is what the new branch knows of it, and the branch is still there',
    async () => {
      const { store } = place()
      const session = await store().create()
      const root = await ask(session, 'root')
      for (let step = 0; step < 30; step++) await answer(session, `step ${step}`)
      const left = session.leafId
      await session.branchWithSummary(root, 'thirty steps in vain')
      await ask(session, 'another way')
      await session.close()
      const again = await store().open(session.id)
      expect(await saidIn(again)).toEqual(['user: root', 'branchSummary: thirty steps in vain', 'user: another way'])
      expect((await again.getContext({ leafId: left })).messages).toHaveLength(31)
    },
  )

  verifies(
    ['session-manager/6.1 create-branched-session', 'session-manager/6.1 create-branched-session-signature'],
    'createBranchedSession writes one path as a session of its own, with its labels and blobs, and gives its id',
    async () => {
      const store = place().store()
      const session = await store.create({ name: 'Original' })
      const root = await ask(session, 'root')
      const blob = await session.putBlob(Uint8Array.of(7))
      const left = await session.appendMessage('user', [
        { type: 'image', image: { source: { type: 'blob', mediaType: 'image/png', ...blob } } },
      ])
      await session.branch(root)
      await answer(session, 'right')
      await session.setLabel(left, 'picture')
      const id = await session.createBranchedSession(left)
      const branched = await store.open(id)
      expect(outlineOf(await branched.getTree()).flat(9)).toEqual(expect.arrayContaining([root, left]))
      expect(await saidIn(branched)).toEqual(['user: root', 'user: <blob image/png>'])
      expect(branched.getLabels()).toEqual(new Map([[left, 'picture']]))
      expect(new Uint8Array(await branched.getBlob(blob.sha256))).toEqual(Uint8Array.of(7))
      expect(JSON.stringify(await textsOf(branched))).not.toContain('right')
    },
  )

  verifies(
    ['session-manager/6.1 create-branched-session-leaf-id'],
    'the path that is exported ends at the given entry, wherever the leaf is, and the session stays as it is',
    async () => {
      const store = place().store()
      const session = await store.create()
      const first = await ask(session, 'one')
      await answer(session, 'two')
      const before = await textsOf(session)
      const branched = await store.open(await session.createBranchedSession(first))
      expect({ leafId: branched.leafId, said: await saidIn(branched) }).toEqual({ leafId: first, said: ['user: one'] })
      expect(await textsOf(session)).toEqual(before)
      await expect(session.createBranchedSession('nobody')).rejects.toMatchObject({ code: 'entry-not-found' })
    },
  )

  verifies(
    [
      'session-manager/6.1 get-tree',
      'session-manager/6.1 get-tree-signature',
      'session-manager/6.1 tree-node-children',
    ],
    'getTree gives all roots with their children in the order of the log',
    async () => {
      const session = await place().store().create()
      const a = await ask(session, 'a')
      const b = await answer(session, 'b')
      await session.branch(a)
      const c = await answer(session, 'c')
      await session.branch(b)
      const d = await ask(session, 'd')
      await session.branch(null)
      const e = await ask(session, 'e')
      expect(outlineOf(await session.getTree())).toEqual([[a, [[b, [[d]]], [c]]], [e]])
    },
  )

  verifies(
    ['session-manager/6.1 tree-node-entry', 'session-manager/6.1 tree-node-label'],
    'a node of the tree has its entry and its latest label',
    async () => {
      const session = await place().store().create()
      const first = await ask(session, 'hello')
      await session.setLabel(first, 'old')
      await session.setLabel(first, 'new')
      const [node] = await session.getTree()
      expect(node).toMatchObject({
        entry: { id: first, type: 'message', message: { role: 'user', content: [text('hello')] } },
        label: 'new',
      })
      expect(node?.children.map((child) => 'label' in child)).toEqual([false, false])
    },
  )

  verifies(
    ['session-manager/6.1 get-context', 'session-manager/6.1 get-context-signature'],
    'getContext gives the messages from the root to the leaf, each with its entry, and what is in force there',
    async () => {
      const session = await place().store().create()
      const system = await session.append({ type: 'system', system: { prompt: 'Be brief.', tools: [], sha256: 'x' } })
      await session.appendModelChange('openai', 'gpt-4o')
      const first = await ask(session, 'hello')
      const second = await session.appendMessage('assistant', [call('c1')])
      const third = await session.appendMessage('tool', [result('c1', 'ok')])
      const context = await session.getContext()
      expect(context.messages.map(({ entryId }) => entryId)).toEqual([first, second, third])
      expect(context).toMatchObject({
        system: { prompt: 'Be brief.' },
        model: { provider: 'openai', modelId: 'gpt-4o' },
        thinkingLevel: null,
        provenance: { systemId: system.id },
        repairs: [],
      })
    },
  )
})

/** A tree of ids: a node is `[id]` or `[id, children]`. */
type Outline = [string] | [string, Outline[]]

function outlineOf(nodes: readonly TreeNode[]): Outline[] {
  return nodes.map(({ entry, children }) => (children.length > 0 ? [entry.id, outlineOf(children)] : [entry.id]))
}
