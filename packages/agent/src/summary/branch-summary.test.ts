import { memoryStore, type Session } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { assistant, call, said, toolResult, user } from '@tapetree/session/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelRequest } from '../models/model.ts'
import { script, scriptedModel, type ScriptedModel } from '../testing/scripted-model.ts'
import {
  abandonedEntries,
  summarizeBranch,
  type BranchSummaryInput,
  type BranchSummaryOutcome,
} from './branch-summary.ts'

describe('summarizeBranch', () => {
  test('moves the leaf and appends a summary of the abandoned branch only', async () => {
    const session = await memoryStore().create()
    await user(session, 'shared')
    const target = await assistant(session, 'common ground')
    await user(session, 'try it')
    await assistant(session, call('a', 'edit', { path: 'a.ts' }))
    await toolResult(session, 'a', 'edited')
    const leaf = await assistant(session, 'it did not work')

    const { outcome, model, lines } = await branching(session, { targetId: target, instructions: 'Be kind.' })

    const summary = 'tried and failed\n\n<files-changed>\na.ts\n</files-changed>'
    expect(outcome).toEqual({ type: 'summarized', entryId: session.leafId, summary })
    expect(await said(session)).toEqual(['user: shared', 'assistant: common ground', `branchSummary: ${summary}`])
    expect(model.requests).toHaveLength(1)
    expect(model.requests[0]?.system).toMatch(/^The user has returned to an earlier point/)
    expect(promptIn(model.requests[0]!)).toBe(
      '<conversation>\n[User]\ntry it\n\n[Assistant calls edit]\n{"path":"a.ts"}\n\n[Result of edit]\nedited\n\n' +
        '[Assistant]\nit did not work\n</conversation>\n\nThe user asks for this in particular:\nBe kind.\n\nWrite the summary now.',
    )
    const request = { ...model.prepare(model.requests[0]!).reference, leafId: leaf }
    expect(lines).toMatchObject([
      { type: 'usage', usage: { purpose: 'branch_summary', tokens: { inputTokens: 9 } }, request },
      { type: 'branch_summary', parentId: target, branchSummary: { summary, fromId: leaf }, request },
    ])
  })

  test('before the first entry everything is abandoned', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    expect((await branching(session, { targetId: null })).outcome).toMatchObject({ type: 'summarized' })
    expect(await said(session)).toEqual(['branchSummary: tried and failed'])
  })

  test('from one branch to another, only the entries after the common ancestor are summarized', async () => {
    const session = await memoryStore().create()
    const root = await user(session, 'root')
    const other = await assistant(session, 'other branch')
    await session.branch(root)
    await assistant(session, 'this branch')
    const { model } = await branching(session, { targetId: other })
    expect(promptIn(model.requests[0]!)).toContain('<conversation>\n[Assistant]\nthis branch\n</conversation>')
    expect(await said(session)).toEqual(['user: root', 'assistant: other branch', 'branchSummary: tried and failed'])
  })

  test('to a descendant, or past entries without content, it only moves the leaf', async () => {
    const session = await memoryStore().create()
    const root = await user(session, 'root')
    const later = await assistant(session, 'later')
    await session.branch(root)
    const forward = await branching(session, { targetId: later })
    await session.appendModelChange('openai', 'gpt')
    const back = await branching(session, { targetId: later })
    for (const { outcome, model, lines } of [forward, back]) {
      expect(outcome).toEqual({ type: 'branched' })
      expect(model.requests).toEqual([])
      expect(lines.map(({ type }) => type)).toEqual(['leaf'])
    }
    expect(session.leafId).toBe(later)
  })

  test('an empty session has nothing to abandon', async () => {
    const session = await memoryStore().create()
    expect((await branching(session, { targetId: null })).outcome).toEqual({ type: 'branched' })
  })

  test('entries that a compaction on the branch has summarized are not summarized again', async () => {
    const session = await memoryStore().create()
    const target = await user(session, 'root')
    await user(session, 'old and told')
    const kept = await user(session, 'kept')
    await session.appendCompaction('the old part\n\n<files-read>\nx.ts\n</files-read>', kept, 1)
    await user(session, 'new')
    const { model } = await branching(session, { targetId: target })
    expect(promptIn(model.requests[0]!)).toBe(
      '<previous-summary>\nthe old part\n</previous-summary>\n\n<conversation>\n[User]\nkept\n\n[User]\nnew\n</conversation>\n\n' +
        'Write the summary now.',
    )
  })

  test('a branch with nothing but a compaction needs no model call', async () => {
    const session = await memoryStore().create()
    const target = await user(session, 'root')
    await user(session, 'old and told')
    const kept = await session.appendModelChange('openai', 'gpt')
    await session.appendCompaction('the old part', kept, 1)
    const { outcome, model } = await branching(session, { targetId: target })
    expect(outcome).toMatchObject({ type: 'summarized', summary: 'the old part' })
    expect(model.requests).toEqual([])
  })

  test('rejects during a run, before any model call', async () => {
    const session = await memoryStore().create()
    const target = await user(session, 'root')
    await user(session, 'go')
    await session.append({ type: 'run_start', runStart: { runId: 'r1', leafId: session.leafId } })
    const { outcome, model } = await branching(session, { targetId: target })
    expect(outcome).toMatchObject({ type: 'failed', error: { code: 'session-busy' } })
    expect(model.requests).toEqual([])
  })

  test('rejects an unknown entry before any model call', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    const { outcome, model } = await branching(session, { targetId: '00000000-0000-7000-8000-000000000000' })
    expect(outcome).toMatchObject({ type: 'failed', error: { code: 'entry-not-found' } })
    expect(model.requests).toEqual([])
  })

  test('a leaf that was moved meanwhile stays', async () => {
    const session = await memoryStore().create()
    const target = await user(session, 'root')
    const middle = await user(session, 'middle')
    await user(session, 'go')
    const model = scriptedModel(
      script()
        .do(() => session.branch(middle))
        .text('tried'),
    )
    const { outcome, lines } = await branching(session, { targetId: target, model })
    expect(outcome).toEqual({ type: 'superseded' })
    expect(session.leafId).toBe(middle)
    expect(lines.map(({ type }) => type)).toEqual(['leaf', 'usage'])
  })

  test('an abort and a failed call leave the leaf unchanged', async () => {
    const session = await memoryStore().create()
    const target = await user(session, 'root')
    const leaf = await user(session, 'go')
    const controller = new AbortController()
    const steps = script().error('overloaded').step().text('tri').cancel().text('ed')
    const model = scriptedModel(steps, { onCancel: () => controller.abort(new Error('enough')) })
    const input = { targetId: target, model, signal: controller.signal }
    expect((await branching(session, input)).outcome).toMatchObject({ type: 'failed', error: { kind: 'overloaded' } })
    expect((await branching(session, input)).outcome).toEqual({ type: 'failed', error: new Error('enough') })
    expect(session.leafId).toBe(leaf)
  })
})

describe('abandonedEntries', () => {
  test('agrees with the definition on random trees', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(20), { minLength: 1, maxLength: 12 }),
        fc.nat(12),
        fc.nat(12),
        async (parents, from, to) => {
          const session = await memoryStore().create()
          const ids: (string | null)[] = [null]
          for (const [index, parent] of parents.entries()) {
            await session.branch(ids[parent % ids.length] as string | null)
            ids.push(await user(session, `entry ${index}`))
          }
          const leaf = ids[from % ids.length] as string | null
          const target = ids[to % ids.length] as string | null
          await session.branch(leaf)
          const onTheWay = new Set(await wayTo(session, target))
          const expected = (await wayTo(session, leaf)).filter((id) => !onTheWay.has(id))
          expect((await abandonedEntries(session, target)).map(({ id }) => id)).toEqual(expected)
        },
      ),
      { numRuns: 60 },
    )
  })
})

test('a duplicate id in a damaged log does not cause an endless loop', async () => {
  const session = await memoryStore().create()
  const root = await user(session, 'root')
  const twin = await user(session, 'twin')
  const between = await user(session, 'between')
  await session.append({ type: 'message', id: twin, message: { role: 'user', content: [] } })
  expect((await abandonedEntries(session, root)).map(({ id }) => id)).toEqual([between, twin])
})

async function wayTo(session: Session, id: string | null): Promise<string[]> {
  if (id === null) return []
  return [...(await wayTo(session, (await session.getEntry(id)).parentId)), id]
}

interface Branching {
  outcome: BranchSummaryOutcome | { type: 'failed'; error: unknown }
  model: ScriptedModel
  /** The appended lines. */
  lines: Line[]
}

async function branching(
  session: Session,
  given: Pick<BranchSummaryInput, 'targetId'> & Partial<Omit<BranchSummaryInput, 'model'>> & { model?: ScriptedModel },
): Promise<Branching> {
  const model = given.model ?? scriptedModel(script().text('tried and failed').usage({ inputTokens: 9 }))
  const lines: Line[] = []
  const stop = session.subscribe(({ line }) => lines.push(line))
  const { signal } = new AbortController()
  const failed = (error: unknown): Branching['outcome'] => ({ type: 'failed', error })
  const outcome = await summarizeBranch({ session, signal, ...given, model }).catch(failed)
  stop()
  return { outcome, model, lines }
}

function promptIn({ messages }: ModelRequest): string {
  const [block] = messages[0]?.content ?? []
  return block?.type === 'text' ? block.text.content : ''
}
