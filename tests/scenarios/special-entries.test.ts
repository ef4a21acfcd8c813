import type { TreeNode } from '@tapetree/session/view'
import { AgentSession, onlyModel, type PromptOutcome } from '@tapetree/agent'
import { ExtensionHost, type Extension } from '@tapetree/agent/extensions'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { expect, onTestFinished } from 'vitest'
import { inEveryStore } from '../support/places.ts'
import { answer, ask, saidIn } from '../support/said.ts'
import { verifies } from '../support/verifies.ts'

inEveryStore((place) => {
  verifies(
    ['session-manager/9 label-not-in-context', 'session-manager/9 label-target'],
    'a label names its target, and neither it nor its words come into the context',
    async () => {
      const session = await place().store().create()
      const target = await ask(session, 'hello')
      await session.setLabel(target, 'greeting')
      await answer(session, 'hi')
      expect(await saidIn(session)).toEqual(['user: hello', 'assistant: hi'])
      expect([...session.getLabels()]).toEqual([[target, 'greeting']])
    },
  )

  verifies(
    ['session-manager/9 label-bookmarking'],
    'bookmarks are found again after a restart, with the entries they mark',
    async () => {
      const { store } = place()
      const session = await store().create()
      const defined = await ask(session, 'we need a parser')
      await session.setLabel(defined, 'Requirement defined')
      const reproduced = await answer(session, 'it fails')
      await session.setLabel(reproduced, 'Bug reproduced')
      await session.close()
      const again = await store().open(session.id)
      const marked = await Promise.all([...again.getLabels().keys()].map((id) => again.getEntry(id)))
      expect([...again.getLabels().values()]).toEqual(['Requirement defined', 'Bug reproduced'])
      expect(marked.map(({ id }) => id)).toEqual([defined, reproduced])
    },
  )

  verifies(
    ['session-manager/9 label-navigation'],
    'the tree shows labels as a table of contents, and one can jump to each of them',
    async () => {
      const session = await place().store().create()
      for (const chapter of ['one', 'two', 'three']) {
        await session.setLabel(await ask(session, chapter), `Chapter ${chapter}`)
      }
      const contents = labelled(await session.getTree())
      expect(contents.map(({ label }) => label)).toEqual(['Chapter one', 'Chapter two', 'Chapter three'])
      await session.branch(contents[1]?.entry.id ?? '')
      expect(await saidIn(session)).toEqual(['user: one', 'user: two'])
    },
  )

  verifies(
    ['session-manager/9 label-automation'],
    'an extension finds all entries with a label, on every branch, and takes the label off when it is done',
    async () => {
      const session = await place().store().create()
      const root = await ask(session, 'root')
      const ids = [await answer(session, 'left')]
      await session.branch(root)
      ids.push(await answer(session, 'right'))
      for (const id of ids) await session.setLabel(id, 'needs_review')
      const found = [...session.getLabels()].filter(([, label]) => label === 'needs_review').map(([id]) => id)
      for (const id of found) await session.setLabel(id, '')
      expect({ found, left: session.getLabels() }).toEqual({ found: ids, left: new Map() })
    },
  )

  verifies(
    ['session-manager/9 latest-label'],
    'the latest label of an entry counts, also where it was set on another branch',
    async () => {
      const { store } = place()
      const session = await store().create()
      const root = await ask(session, 'root')
      const target = await answer(session, 'target')
      await session.setLabel(target, 'first')
      await session.branch(root)
      await answer(session, 'elsewhere')
      await session.setLabel(target, 'second')
      await session.close()
      expect((await store().open(session.id)).getLabels()).toEqual(new Map([[target, 'second']]))
    },
  )

  verifies(
    ['session-manager/9 session-info'],
    'the name of a session is shown in lists and is not part of the context',
    async () => {
      const store = place().store()
      const session = await store.create({ name: 'Greetings' })
      await ask(session, 'hello')
      expect((await store.list()).sessions.map(({ name }) => name)).toEqual(['Greetings'])
      expect(await saidIn(session)).toEqual(['user: hello'])
    },
  )

  verifies(['session-manager/9 custom-entry'], 'custom data stays in the log and out of the context', async () => {
    const { store } = place()
    const session = await store().create()
    await ask(session, 'hello')
    const id = await session.appendCustomEntry('acme', { secret: 'not for the model' })
    await answer(session, 'hi')
    await session.close()
    const again = await store().open(session.id)
    expect(JSON.stringify(await again.getContext())).not.toContain('not for the model')
    expect(await saidIn(again)).toEqual(['user: hello', 'assistant: hi'])
    expect(await again.getEntry(id)).toMatchObject({ custom: { data: { secret: 'not for the model' } } })
  })
})

function labelled(nodes: readonly TreeNode[]): TreeNode[] {
  return nodes.flatMap((node) => [...(node.label === undefined ? [] : [node]), ...labelled(node.children)])
}

verifies(
  ['session-manager/9 label-by-extension'],
  'an extension labels an entry that needs review, finds it after a restart of the session, and takes the label off',
  async () => {
    const reviewing: Extension = (api) => {
      api.on('turnEnd', async ({ turn }) => {
        if (turn === 1) await api.setLabel((await api.leafId()) ?? '', 'needs_review')
      })
      api.registerCommand({
        name: 'review',
        description: 'Looks at everything that needs review.',
        async run() {
          const due = (await api.labels()).filter(({ label }) => label === 'needs_review')
          for (const { entryId } of due) await api.setLabel(entryId, '')
          return { say: due.map(({ entryId }) => entryId).join() }
        },
      })
    }
    const host = await ExtensionHost.open({ cwd: '/', extensions: [{ name: 'review', extension: reviewing }] })
    onTestFinished(() => host.close())
    const store = memoryStore()
    const models = onlyModel(scriptedModel(script().toolCall('1', 'none').step().text('Done.')))
    const agent = await AgentSession.open({ store, models, hooks: host.hooks })
    const { run } = (await agent.prompt('go')) as PromptOutcome & { type: 'started' }
    await run.done
    const [labeled = ''] = agent.session.getLabels().keys()
    expect(agent.session.getLabels()).toEqual(new Map([[labeled, 'needs_review']]))
    await agent.close()
    const again = await AgentSession.open({ store, sessionId: agent.session.id, models, hooks: host.hooks })
    onTestFinished(() => again.close())
    expect(await host.runCommand('review', '')).toEqual({ type: 'done', say: labeled })
    expect(again.session.getLabels().size).toBe(0)
  },
)
