import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, text, type Content, type ContextMessage, type Session } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { assistant, call, said, toolResult, user } from '@tapetree/session/testing'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ModelRequest } from '../models/model.ts'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import {
  compact,
  defaultCompaction,
  needsCompaction,
  type CompactionInput,
  type CompactionOutcome,
} from './compaction.ts'
import { contextSize } from './context-size.ts'

describe('needsCompaction', () => {
  test('returns true when the context reaches into the reserve', () => {
    const limits = { contextTokens: 200_000, outputTokens: 8000 }
    expect(needsCompaction({ tokens: 183_616, limits, settings: defaultCompaction })).toBe(false)
    expect(needsCompaction({ tokens: 183_617, limits, settings: defaultCompaction })).toBe(true)
  })

  test('leaves three quarters of a small window to the context', () => {
    const limits = { contextTokens: 8000, outputTokens: 4000 }
    expect(needsCompaction({ tokens: 6000, limits, settings: defaultCompaction })).toBe(false)
    expect(needsCompaction({ tokens: 6001, limits, settings: defaultCompaction })).toBe(true)
  })

  test('returns false if compaction is disabled', () => {
    const limits = { contextTokens: 8000, outputTokens: 4000 }
    expect(needsCompaction({ tokens: 9000, limits, settings: { ...defaultCompaction, isEnabled: false } })).toBe(false)
  })
})

describe('compact', () => {
  test('replaces older entries by a summary, and returns what that freed', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    const kept = await user(session, words('three', 50))
    await assistant(session, words('answer three', 50))
    const before = await contextSize(session)
    const headId = session.leafId

    const { outcome, model, lines } = await compacting(session, { model: saying('## Goal\nall of it') })

    expect(outcome).toEqual({
      type: 'compacted',
      entryId: session.leafId,
      summary: '## Goal\nall of it',
      firstKeptId: kept,
      tokensBefore: before,
      tokensAfter: await contextSize(session),
      isWorthwhile: true,
    })
    expect(await roles(session)).toEqual(['compactionSummary', 'user', 'assistant'])
    const request = { ...model.prepare(model.requests[0]!).reference, leafId: headId }
    expect(typesOf(lines)).toEqual(['usage', 'compaction'])
    expect(lines[1]).toMatchObject({
      compaction: { summary: '## Goal\nall of it', firstKeptEntryId: kept, tokensBefore: before },
      parentId: headId,
      request,
    })
  })

  test('sends everything before the cut and nothing after it, as text, without tools', async () => {
    const session = await create()
    await user(session, 'look at a.ts')
    await assistant(session, call('a', 'read', { path: 'a.ts' }))
    await toolResult(session, 'a', words('content', 200))
    await assistant(session, 'seen')
    await user(session, words('kept', 100))
    const { model } = await compacting(session)
    expect(model.requests).toHaveLength(1)
    const { tools, messages, system } = model.requests[0]!
    expect(tools).toEqual([])
    expect(messages.map(({ role }) => role)).toEqual(['user'])
    expect(system).toMatch(/^You write the summary from which an agent continues/)
    const prompt = promptIn(model.requests[0]!)
    for (const told of ['look at a.ts', '[Assistant calls read]', '[Result of read]\ncontent', '[Assistant]\nseen']) {
      expect(prompt).toContain(told)
    }
    expect(prompt).not.toContain('kept')
  })

  test('keeps about the configured amount, starting at a user message', async () => {
    const session = await create()
    for (let turn = 0; turn < 20; turn++) await talk(session, `turn ${turn}`)
    const { outcome } = await compacting(session, { settings: { ...defaultCompaction, keepTokens: 1000 } })
    // A turn is about 212 tokens.
    expect((await roles(session)).length).toBe(1 + 2 * 4)
    expect(outcome).toMatchObject({ type: 'compacted', isWorthwhile: true })
  })

  test('keeps no more than a quarter of a small window', async () => {
    const session = await create()
    for (let turn = 0; turn < 20; turn++) await talk(session, `turn ${turn}`)
    await compacting(session, { model: saying('so far', { contextTokens: 3000, outputTokens: 500 }) })
    expect((await roles(session)).length).toBe(1 + 2 * 3)
  })

  test('after an overflow it keeps half as much: the provider counts more than we do', async () => {
    const session = await create()
    for (let turn = 0; turn < 20; turn++) await talk(session, `turn ${turn}`)
    await compacting(session, { reason: 'overflow', settings: { ...defaultCompaction, keepTokens: 1000 } })
    expect((await roles(session)).length).toBe(1 + 2 * 2)
  })

  test('scales the freed tokens to the count of the provider', async () => {
    const session = await create()
    await talk(session, 'one', 'two', 'three', 'four')
    const usage = { inputTokens: 190_000, outputTokens: 10 }
    await session.appendMessage('assistant', [text('done')], { with: { usage } })
    const { outcome } = await compacting(session)
    expect(outcome).toMatchObject({ type: 'compacted', tokensBefore: 190_010, isWorthwhile: true })
    const { tokensAfter } = outcome as CompactionOutcome & { type: 'compacted' }
    expect(tokensAfter).toBeGreaterThan(190_010 * 0.2)
    expect(tokensAfter).toBeLessThan(190_010 * 0.6)
  })

  test('the next compaction extends the summary, and only the newest one is in the context', async () => {
    const session = await create()
    await talk(session, 'one', 'two', 'three', 'four')
    await compacting(session, { model: saying('first summary') })
    await talk(session, 'five', 'six')
    const { model, outcome } = await compacting(session, { model: saying('second summary') })
    expect(outcome).toMatchObject({ tokensAfter: await contextSize(session) })
    expect(promptIn(model.requests[0]!)).toContain('<previous-summary>\nfirst summary\n</previous-summary>')
    expect(promptIn(model.requests[0]!)).toContain('three')
    expect(promptIn(model.requests[0]!)).not.toContain('one one')
    expect((await said(session)).filter((line) => line.includes('summary'))).toEqual([
      'compactionSummary: second summary',
    ])
  })

  test('includes the instructions of the user', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    const { model } = await compacting(session, { reason: 'manual', instructions: 'Keep the dates.' })
    expect(promptIn(model.requests[0]!)).toContain('The user asks for this in particular:\nKeep the dates.')
  })

  test('branching to before it undoes it', async () => {
    const session = await create()
    await talk(session, 'one', 'two', 'three')
    const before = { leaf: session.leafId, said: await said(session) }
    await compacting(session)
    expect(await said(session)).not.toEqual(before.said)
    await session.branch(before.leaf)
    expect(await said(session)).toEqual(before.said)
  })

  test('is the same after the session is opened again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-compaction-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const store = openFileStore({ folder })
    onTestFinished(() => store.close())
    const session = await store.create()
    await talk(session, 'one', 'two', 'three')
    await compacting(session)
    const before = { said: await said(session), size: await contextSize(session), totals: session.totals }
    await session.close()
    const again = await store.open(session.id)
    expect({ said: await said(again), size: await contextSize(again), totals: again.totals }).toEqual(before)
    expect(before.totals.tokens).toBe(110)
  })
})

describe('a cut inside a turn', () => {
  test('summarizes the beginning of that turn separately, after the history, and marks it', async () => {
    const session = await create()
    await talk(session, 'earlier')
    await user(session, 'the long request')
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await step(session, id)
    const model = scriptedModel(script().text('the history').step().text('the beginning'))
    const { outcome, lines } = await compacting(session, { model })
    expect(outcome).toMatchObject({
      summary:
        'the history\n\n## The request being worked on (only how it began; what was done last follows below)\n\nthe beginning' +
        '\n\n<files-read>\na.ts\nb.ts\nc.ts\n</files-read>',
    })
    const [history, beginning] = model.requests.map(promptIn) as [string, string]
    expect([history.includes('earlier'), history.includes('the long request')]).toEqual([true, false])
    expect([beginning.includes('earlier'), beginning.includes('the long request')]).toEqual([false, true])
    expect(model.requests[1]?.system).toMatch(/^An agent is in the middle of working on one request/)
    expect(await said(session)).toEqual(
      expect.arrayContaining(['assistant: [d]', expect.stringMatching(/^tool: d=/), 'assistant: [f]']),
    )
    expect(typesOf(lines)).toEqual(['usage', 'usage', 'compaction'])
  })

  test('a turn that is cut twice has its beginning updated, and the history stays unchanged', async () => {
    const session = await create()
    await talk(session, 'earlier')
    await user(session, 'the long request')
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await step(session, id)
    await compacting(session, { model: scriptedModel(script().text('the history').step().text('the beginning')) })
    for (const id of ['g', 'h', 'i', 'j', 'k', 'l']) await step(session, id)
    const model = saying('more of it')
    const { outcome } = await compacting(session, { model })
    expect(model.requests).toHaveLength(1)
    expect(promptIn(model.requests[0]!)).toContain('<previous-summary>\nthe beginning\n</previous-summary>')
    const { summary } = outcome as CompactionOutcome & { type: 'compacted' }
    expect(summary).toMatch(
      /^the history\n\n## The request being worked on .*\n\nmore of it\n\n<files-read>\na.ts\nb.ts\n/,
    )
  })

  test('after that turn ends, all of it becomes history', async () => {
    const session = await create()
    await user(session, 'the long request')
    for (const id of ['a', 'b', 'c', 'd']) await step(session, id)
    await compacting(session, { model: saying('the beginning') })
    await assistant(session, 'done')
    await user(session, words('next', 200))
    const model = saying('the history')
    const { outcome } = await compacting(session, { model })
    expect(model.requests).toHaveLength(1)
    expect(promptIn(model.requests[0]!)).toMatch(
      /<previous-summary>\n## The request being worked on .*\n\nthe beginning\n/,
    )
    expect(outcome).toMatchObject({ summary: expect.stringMatching(/^the history\n\n<files-read>/) })
  })

  test('a turn that was interrupted before the next request is history', async () => {
    const session = await create()
    await user(session, 'the request')
    for (const id of ['a', 'b']) await step(session, id)
    await user(session, words('something else', 100))
    const { outcome } = await compacting(session)
    expect(outcome).toMatchObject({ summary: expect.stringMatching(/^so far\n\n<files-read>/) })
  })

  test('a turn that ends at the cut is history', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    await session.appendModelChange('openai', 'gpt')
    await session.appendMessage('custom', [text(words('a hint', 300))])
    const { model, outcome } = await compacting(session)
    expect(outcome).toMatchObject({ type: 'compacted', summary: 'so far' })
    expect(model.requests).toHaveLength(1)
  })
})

describe('files', () => {
  test('are listed from the calls themselves, over all compactions', async () => {
    const session = await create()
    for (const id of ['a', 'b']) await step(session, id)
    await assistant(session, call('w', 'edit', { path: 'a.ts' }))
    await toolResult(session, 'w', words('diff', 100))
    await assistant(session, 'done')
    await user(session, words('next', 200))
    await compacting(session)
    await step(session, 'c')
    await assistant(session, 'done')
    await user(session, words('next', 300))
    const { outcome, model } = await compacting(session)
    expect(outcome).toMatchObject({
      summary: 'so far\n\n<files-read>\nb.ts\nc.ts\n</files-read>\n\n<files-changed>\na.ts\n</files-changed>',
    })
    expect(promptIn(model.requests[0]!)).not.toContain('<files-')
  })
})

describe('without enough to free', () => {
  test('an empty session, a single message and one call with its result have nothing to cut', async () => {
    const session = await create()
    expect((await compacting(session)).outcome).toEqual({ type: 'nothing-to-cut' })
    await assistant(session, call('a', 'read', {}))
    expect((await compacting(session)).outcome).toEqual({ type: 'nothing-to-cut' })
    await toolResult(session, 'a', words('result', 1000))
    const { outcome, model, lines } = await compacting(session)
    expect(outcome).toEqual({ type: 'nothing-to-cut' })
    expect(model.requests).toEqual([])
    expect(lines).toEqual([])
  })

  test('there is no model call if even an empty summary would free almost nothing', async () => {
    const session = await create()
    await user(session, 'a short request')
    await step(session, 'a', 2000)
    const { outcome, model, lines } = await compacting(session)
    expect(outcome).toEqual({ type: 'nothing-to-cut' })
    expect(model.requests).toEqual([])
    expect(lines).toEqual([])
  })

  test('a long system prompt is not made shorter', async () => {
    const session = await create()
    await session.append({ type: 'system', system: { prompt: words('prompt', 50_000), tools: [], sha256: '' } })
    await talk(session, 'one', 'two')
    expect((await compacting(session)).outcome).toEqual({ type: 'nothing-to-cut' })
  })

  test('entries without content are not cut', async () => {
    const session = await create()
    await session.appendModelChange('openai', 'gpt')
    await session.appendThinkingLevelChange('high')
    await user(session, 'hello')
    expect((await compacting(session)).outcome).toEqual({ type: 'nothing-to-cut' })
  })

  test('a summary that is longer than what it replaces is discarded, and its cost is in the log', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    const before = await said(session)
    const { outcome, lines } = await compacting(session, { model: saying(words('much', 1000)) })
    expect(outcome).toEqual({ type: 'futile' })
    expect(await said(session)).toEqual(before)
    expect(typesOf(lines)).toEqual(['usage'])
  })

  test('one that frees less than a twentieth is not worth another try', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    const { outcome } = await compacting(session, { model: saying(words('much', 200)) })
    expect(outcome).toMatchObject({ type: 'compacted', isWorthwhile: false })
  })

  test('a request that is longer than the kept amount is kept, and everything before it is not', async () => {
    const session = await create()
    await talk(session, 'one', 'two', 'three')
    const huge = await user(session, words('huge', 5000))
    const { outcome } = await compacting(session, { settings: { ...defaultCompaction, keepTokens: 1000 } })
    expect(outcome).toMatchObject({ type: 'compacted', firstKeptId: huge, isWorthwhile: true })
  })
})

describe('during a compaction', () => {
  test('an abort leaves nothing but the usage of finished calls', async () => {
    const session = await create()
    await talk(session, 'earlier')
    await user(session, 'the long request')
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await step(session, id)
    const leaf = session.leafId
    const controller = new AbortController()
    const steps = script().text('the history').usage({ inputTokens: 1 }).step().text('the').cancel().text('beginning')
    const model = scriptedModel(steps, { onCancel: () => controller.abort(new Error('enough')) })
    const { outcome, lines } = await compacting(session, { model, signal: controller.signal })
    expect(outcome).toEqual({ type: 'failed', error: new Error('enough') })
    expect(typesOf(lines)).toEqual(['usage'])
    expect(session.leafId).toBe(leaf)
  })

  test('an abort at the very end counts too', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    const controller = new AbortController()
    session.subscribe(({ line }) => line.type === 'usage' && controller.abort(new Error('enough')))
    const { outcome, lines } = await compacting(session, { signal: controller.signal })
    expect(outcome).toEqual({ type: 'failed', error: new Error('enough') })
    expect(typesOf(lines)).toEqual(['usage'])
  })

  test('a failed call leaves the session as it was', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    const model = scriptedModel(script().error('overloaded'))
    const { outcome, lines } = await compacting(session, { model })
    expect(outcome).toMatchObject({ type: 'failed', error: { kind: 'overloaded' } })
    expect(lines).toEqual([])
  })

  test('entries that were appended meanwhile stay, and the compaction comes after them', async () => {
    const session = await create()
    await talk(session, 'one', 'two', 'three')
    const model = scriptedModel(
      script()
        .do(() => session.appendModelChange('openai', 'gpt'))
        .text('so far'),
    )
    const { outcome } = await compacting(session, { model })
    expect(outcome).toMatchObject({ type: 'compacted', entryId: session.leafId })
    expect((await session.getContext()).model).toEqual({ provider: 'openai', modelId: 'gpt' })
  })

  test('a leaf that was moved meanwhile is not moved back', async () => {
    const session = await create()
    const first = await user(session, words('first', 100))
    await talk(session, 'one', 'two', 'three')
    const model = scriptedModel(
      script()
        .do(() => session.branch(first))
        .text('so far'),
    )
    const { outcome, lines } = await compacting(session, { model })
    expect(outcome).toEqual({ type: 'superseded' })
    expect(session.leafId).toBe(first)
    expect(typesOf(lines)).toEqual(['leaf', 'usage'])
  })

  test('also if it was moved within the kept part', async () => {
    const session = await create()
    await talk(session, 'one', 'two')
    const middle = await user(session, words('middle', 100))
    await assistant(session, 'last')
    const model = scriptedModel(
      script()
        .do(() => session.branch(middle))
        .text('so far'),
    )
    expect((await compacting(session, { model })).outcome).toEqual({ type: 'superseded' })
    expect(session.leafId).toBe(middle)
  })

  test('a compaction by another writer stays the newest', async () => {
    const session = await create()
    await talk(session, 'one', 'two', 'three')
    const last = session.leafId as string
    const model = scriptedModel(
      script()
        .do(() => session.appendCompaction('theirs', last, 1))
        .text('so far'),
    )
    expect((await compacting(session, { model })).outcome).toEqual({ type: 'superseded' })
    expect((await said(session))[0]).toBe('compactionSummary: theirs')
  })
})

test('a conversation that is longer than the window of the summarizing model is summarized in parts', async () => {
  const session = await create()
  for (let turn = 0; turn < 40; turn++) await talk(session, `turn ${turn}`)
  const limits = { contextTokens: 3000, outputTokens: 300 }
  const { outcome, model, lines } = await compacting(session, { model: saying('so far', limits) })
  expect(outcome).toMatchObject({ type: 'compacted', summary: 'so far', isWorthwhile: true })
  expect(model.requests.length).toBeGreaterThan(3)
  expect(typesOf(lines)).toEqual([...model.requests.map(() => 'usage'), 'compaction'])
})

test('on random paths the summary comes first, pairs stay together, and a worthwhile compaction is smaller', async () => {
  const randomTurns = fc.boolean().chain((isCounted) => fc.array(randomTurn(isCounted), { minLength: 1, maxLength: 8 }))
  let compactions = 0
  await fc.assert(
    fc.asyncProperty(randomTurns, fc.nat(400), async (turns, keepTokens) => {
      const session = await create()
      for (const turn of turns) {
        await play(session, turn)
        if (!turn.compactAfter) continue
        const before = await seen(session)
        const settings = { ...defaultCompaction, keepTokens }
        const { outcome } = await compacting(session, { settings, model: saying(words('sum', turn.summaryWords)) })
        if (outcome.type === 'compacted') {
          compactions++
          await expectCompacted(session, before, outcome)
        } else {
          expectUnchanged(before, await seen(session))
        }
      }
    }),
    { numRuns: 60 },
  )
  expect(compactions).toBeGreaterThan(0)
})

interface Seen {
  leaf: string | null
  said: string[]
  messages: ContextMessage[]
  repairs: string[]
  size: number
}

async function seen(session: Session): Promise<Seen> {
  const { messages, repairs } = await session.getContext()
  return { leaf: session.leafId, said: await said(session), messages, repairs, size: await contextSize(session) }
}

function expectUnchanged(before: Seen, after: Seen): void {
  expect(after).toEqual(before)
}

async function expectCompacted(
  session: Session,
  before: Seen,
  { tokensBefore, tokensAfter, isWorthwhile }: CompactionOutcome & { type: 'compacted' },
): Promise<void> {
  const after = await seen(session)
  expect(after.repairs).toEqual([])
  expect(after.messages.map(({ message }) => message.role).lastIndexOf('compactionSummary')).toBe(0)
  expectPaired(after.messages)
  expect(callIds(before.messages)).toEqual(expect.arrayContaining(callIds(after.messages)))
  expect(tokensBefore).toBe(before.size)
  expect(tokensAfter < tokensBefore || !isWorthwhile).toBe(true)
  // If no provider has counted, both are estimates of the same kind.
  const isCounted = before.messages.some(({ message }) => message.usage)
  expect(isCounted || Math.abs(tokensAfter - after.size) <= 1).toBe(true)
  await session.branch(before.leaf)
  expect(await said(session)).toEqual(before.said)
  await session.branch(after.leaf)
}

interface Turn {
  calls: number[]
  between: 'user' | 'model' | 'custom' | 'none'
  size: number
  usage: number
  answer: boolean
  compactAfter: boolean
  summaryWords: number
}

const randomTurn = (isCounted: boolean): fc.Arbitrary<Turn> =>
  fc.record({
    calls: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
    between: fc.constantFrom('user', 'model', 'custom', 'none'),
    size: fc.nat(200),
    usage: isCounted ? fc.oneof(fc.constant(0), fc.nat(100_000)) : fc.constant(0),
    answer: fc.boolean(),
    compactAfter: fc.boolean(),
    summaryWords: fc.integer({ min: 1, max: 60 }),
  })

let number = 0

async function play(session: Session, { calls, between, size, usage, answer }: Turn): Promise<void> {
  const counted = usage > 0 ? { with: { usage: { inputTokens: usage, outputTokens: 3 } } } : {}
  await user(session, words('request', size))
  for (const count of calls) {
    const ids = Array.from({ length: count }, () => `c${number++}`)
    const asked: Content[] = ids.map((id) => call(id, 'read', { path: `${id}.ts` }))
    await session.appendMessage('assistant', asked, counted)
    for (const id of ids.toReversed()) {
      if (between === 'user') await user(session, 'meanwhile')
      if (between === 'model') await session.appendModelChange('openai', 'gpt')
      if (between === 'custom') await session.appendCustomEntry('x', {})
      await toolResult(session, id, words('result', size))
    }
  }
  if (answer) await session.appendMessage('assistant', [text(words('answer', size + 1))], counted)
}

async function messagesOf(session: Session): Promise<ContextMessage[]> {
  return (await session.getContext()).messages
}

function callIds(messages: readonly ContextMessage[]): string[] {
  return messages.flatMap(({ message }) =>
    message.content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.id] : [])),
  )
}

function expectPaired(messages: readonly ContextMessage[]): void {
  const answered = messages.flatMap(({ message }) =>
    message.content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult.toolUseId] : [])),
  )
  expect(answered).toEqual(callIds(messages))
}

function create(): Promise<Session> {
  return memoryStore().create()
}

interface Compacting {
  outcome: CompactionOutcome | { type: 'failed'; error: unknown }
  model: ScriptedModel
  /** The appended lines. */
  lines: Line[]
}

async function compacting(
  session: Session,
  given: Partial<Omit<CompactionInput, 'model'>> & { model?: ScriptedModel } = {},
): Promise<Compacting> {
  const model = given.model ?? saying('so far')
  const lines: Line[] = []
  const stop = session.subscribe(({ line }) => lines.push(line))
  const { signal } = new AbortController()
  const input = { session, headId: session.leafId, settings: defaultCompaction, reason: 'threshold', signal } as const
  const failed = (error: unknown): Compacting['outcome'] => ({ type: 'failed', error })
  const outcome = await compact({ ...input, ...given, model }).catch(failed)
  stop()
  return { outcome, model, lines }
}

function typesOf(lines: readonly Line[]): string[] {
  return lines.map(({ type }) => type)
}

/** Always answers the same. */
function saying(summary: string, limits = { contextTokens: 200_000, outputTokens: 8000 }): ScriptedModel {
  const answer = (): ScriptBuilder => script().text(summary).usage({ inputTokens: 100, outputTokens: 10 })
  return scriptedModel([], { limits, otherwise: answer })
}

async function talk(session: Session, ...requests: string[]): Promise<void> {
  for (const request of requests) {
    await user(session, words(request, 100))
    await assistant(session, words(`answer ${request}`, 100))
  }
}

async function step(session: Session, id: string, size = 100): Promise<void> {
  await assistant(session, call(id, 'read', { path: `${id}.ts` }))
  await toolResult(session, id, words('result', size))
}

/** About as many tokens. */
function words(what: string, count: number): string {
  const each = what.split(' ')
  return Array.from({ length: count }, (_, index) => each[index % each.length]).join(' ')
}

async function roles(session: Session): Promise<string[]> {
  return (await messagesOf(session)).map(({ message }) => message.role)
}

function promptIn({ messages }: ModelRequest): string {
  const [block] = messages[0]?.content ?? []
  return block?.type === 'text' ? block.text.content : ''
}
