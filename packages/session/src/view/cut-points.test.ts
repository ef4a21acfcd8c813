import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { callsOf, resultsOf, type ContextMessage } from './context.ts'
import { chooseCutPoint, findCutPoints, type CutKind, type CutPoint } from './cut-points.ts'
import type { Entry } from '../line/entry.ts'
import type { Content, MessageRole } from '../line/message.ts'
import { text } from '../line/message.ts'
import type { Session } from '../store/session.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'

describe('findCutPoints', () => {
  test('finds a cut before every user message, answer without calls and other entry, with its kind', () => {
    const kinds = ['user', 'assistant', 'model_change', 'thinking_level', 'custom', 'system', 'label', 'branch_summary']
    expect(findCutPoints(path(...kinds))).toEqual([
      { entryId: 'e0', index: 0, kind: 'user' },
      { entryId: 'e1', index: 1, kind: 'assistant' },
      { entryId: 'e2', index: 2, kind: 'entry' },
      { entryId: 'e3', index: 3, kind: 'entry' },
      { entryId: 'e4', index: 4, kind: 'entry' },
      { entryId: 'e5', index: 5, kind: 'entry' },
      { entryId: 'e6', index: 6, kind: 'entry' },
      { entryId: 'e7', index: 7, kind: 'entry' },
    ])
  })

  test('treats a command, an injected message and a summary as other entries', () => {
    expect(kindsIn('bashExecution', 'customMessage', 'branchSummary', 'compactionSummary')).toEqual([
      '0 entry',
      '1 entry',
      '2 entry',
      '3 entry',
    ])
  })

  test('treats a message with a role of a newer version as another entry', () => {
    expect(findCutPoints([message('e0', 'narrator' as MessageRole, [text('meanwhile')])])).toEqual([
      { entryId: 'e0', index: 0, kind: 'entry' },
    ])
  })

  test('finds nothing in an empty path', () => {
    expect(findCutPoints([])).toEqual([])
  })

  test('a message with calls is a cut inside of a turn', () => {
    expect(kindsIn('user', 'call a', 'result a')).toEqual(['0 user', '1 inside-turn'])
  })

  test('no cut lies between a call and its result, and the entry after the result is one again', () => {
    expect(kindsIn('call a', 'user', 'model_change', 'result a', 'user')).toEqual(['0 inside-turn', '4 user'])
  })

  test('calls of one message with separate results prevent cuts until the last result', () => {
    expect(kindsIn('call a b', 'result b', 'user', 'result a', 'assistant')).toEqual(['0 inside-turn', '4 assistant'])
  })

  test('overlapping calls prevent cuts from the first call to the last result', () => {
    expect(kindsIn('call a', 'call b', 'result a', 'user', 'result b', 'user')).toEqual(['0 inside-turn', '5 user'])
  })

  test('a call that is answered at the very end leaves no cut after it', () => {
    expect(kindsIn('user', 'call a', 'user', 'result a')).toEqual(['0 user', '1 inside-turn'])
  })

  test('a result is never a cut, even if its call is missing', () => {
    expect(kindsIn('result z', 'user', 'result y')).toEqual(['1 user'])
  })

  test('a call without a result prevents no cut', () => {
    expect(kindsIn('call a', 'user', 'assistant')).toEqual(['0 inside-turn', '1 user', '2 assistant'])
  })

  test('a reused id belongs to the newer call', () => {
    expect(kindsIn('call a', 'user', 'call a', 'user', 'result a', 'user')).toEqual([
      '0 inside-turn',
      '1 user',
      '2 inside-turn',
      '5 user',
    ])
  })

  test('only the first result answers a call', () => {
    expect(kindsIn('call a', 'result a', 'user', 'result a', 'user')).toEqual(['0 inside-turn', '2 user', '4 user'])
  })

  test('a result in a user message counts as well, and a call only in an assistant message', () => {
    const quoting = [
      message('e0', 'assistant', [call('a')]),
      message('e1', 'user', [text('here it is')]),
      message('e2', 'user', [result('a'), text('and go on')]),
      message('e3', 'user', [call('b')]),
      message('e4', 'user', []),
      message('e5', 'tool', [result('b')]),
    ]
    expect(findCutPoints(quoting).map(({ index, kind }) => `${index} ${kind}`)).toEqual([
      '0 inside-turn',
      '3 user',
      '4 user',
    ])
  })

  test('a message that answers a call and calls again under the same id answers the older call', () => {
    const entries = [
      message('e0', 'assistant', [call('a')]),
      message('e1', 'assistant', [result('a'), call('a')]),
      message('e2', 'user', []),
      message('e3', 'tool', [result('a')]),
      message('e4', 'user', []),
    ]
    expect(findCutPoints(entries).map(({ index }) => index)).toEqual([0, 4])
  })

  test('agrees with the definition on random paths', () => {
    fc.assert(
      fc.property(randomPath, (steps) => {
        const entries = path(...steps)
        expect(findCutPoints(entries)).toEqual(cutPointsByDefinition(entries))
      }),
      { numRuns: 400 },
    )
  })
})

describe('chooseCutPoint', () => {
  const choose = (steps: string[], keep: number): string | undefined => {
    const point = chooseCutPoint({ path: path(...steps), sizeOf: () => 1, keep })
    return point && `${point.index} ${point.kind}`
  }

  test('takes the first user message from which everything fits', () => {
    const steps = ['user', 'assistant', 'user', 'assistant', 'user', 'assistant']
    expect([6, 5, 4, 3, 2, 1].map((keep) => choose(steps, keep))).toEqual([
      '2 user',
      '2 user',
      '2 user',
      '4 user',
      '4 user',
      '5 assistant',
    ])
  })

  test('prefers a user message to an answer, an answer to another entry, and that to a cut inside of a turn', () => {
    expect(choose(['user', 'call a', 'result a', 'model_change', 'assistant', 'user'], 5)).toBe('5 user')
    expect(choose(['user', 'call a', 'result a', 'model_change', 'assistant'], 4)).toBe('4 assistant')
    expect(choose(['user', 'call a', 'result a', 'model_change'], 3)).toBe('3 entry')
    expect(choose(['user', 'call a', 'result a'], 2)).toBe('1 inside-turn')
  })

  test('never cuts before the first entry', () => {
    expect(choose(['user'], 10)).toBeUndefined()
    expect(choose(['user', 'result a'], 10)).toBeUndefined()
    expect(choose([], 10)).toBeUndefined()
  })

  test('returns nothing if not even the last entry fits', () => {
    expect(choose(['user', 'user'], 0)).toBeUndefined()
    expect(choose(['user', 'user'], 1)).toBe('1 user')
  })

  test('adds up the sizes of all kept entries', () => {
    const sizes = [100, 40, 30, 20, 10]
    const entries = path('user', 'user', 'user', 'user', 'user')
    const sizeOf = (entry: Entry): number => sizes[Number(entry.id.slice(1))] ?? 0
    const indexes = [9, 10, 29, 30, 59, 60, 99, 100, 1000].map(
      (keep) => chooseCutPoint({ path: entries, sizeOf, keep })?.index,
    )
    expect(indexes).toEqual([undefined, 4, 4, 3, 3, 2, 2, 1, 1])
  })

  test('returns a point with its entry', () => {
    expect(chooseCutPoint({ path: path('user', 'user'), sizeOf: () => 1, keep: 1 })).toEqual({
      entryId: 'e1',
      index: 1,
      kind: 'user',
    })
  })

  test('is the best of all that fit, on random paths', () => {
    fc.assert(
      fc.property(randomPath, fc.infiniteStream(fc.nat(9)), fc.nat(60), (steps, stream, keep) => {
        const entries = path(...steps)
        const sizes = entries.map(() => stream.next().value)
        const sizeOf = (entry: Entry): number => sizes[Number(entry.id.slice(1))] ?? 0
        expect(chooseCutPoint({ path: entries, sizeOf, keep })).toEqual(bestByDefinition(entries, sizes, keep))
      }),
      { numRuns: 400 },
    )
  })
})

test('a compaction at any cut point gives a context in which every call is followed by its result and no result is an orphan', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(randomTurn, { minLength: 1, maxLength: 6 }), async (turns) => {
      const session = await memoryStore().create()
      await talk(session, turns)
      const leaf = session.leafId
      const answered = answeredCalls((await session.getContext()).messages)
      for (const { entryId } of findCutPoints(await session.getContextPath())) {
        await session.branch(leaf)
        await session.appendCompaction('so far', entryId, 1)
        const { messages, repairs } = await session.getContext()
        expect(repairs).toEqual([])
        expect(messages[0]?.message.role).toBe('compactionSummary')
        expectPaired(messages)
        expect(answered).toEqual(expect.arrayContaining(answeredCalls(messages)))
      }
    }),
    { numRuns: 40 },
  )
})

const randomStep = fc.oneof(
  fc.constantFrom('user', 'assistant', 'model_change', 'label', 'custom', 'bashExecution', 'customMessage'),
  fc.subarray(['a', 'b', 'c', 'd'], { minLength: 1 }).map((ids) => `call ${ids.join(' ')}`),
  fc.subarray(['a', 'b', 'c', 'd'], { minLength: 1, maxLength: 2 }).map((ids) => `result ${ids.join(' ')}`),
  fc.constantFrom('a', 'b', 'c', 'd').map((id) => `userResult ${id}`),
)
const randomPath = fc.array(randomStep, { maxLength: 24 })

/** A turn: calls whose results come in any order, with messages in between. */
interface Turn {
  calls: number
  order: number[]
  between: ('user' | 'model' | 'label' | 'custom' | 'bash')[]
  answer: boolean
}

const randomTurn: fc.Arbitrary<Turn> = fc.record({
  calls: fc.nat(3),
  order: fc.array(fc.nat(2), { minLength: 3, maxLength: 3 }),
  between: fc.array(fc.constantFrom('user', 'model', 'label', 'custom', 'bash'), { maxLength: 3 }),
  answer: fc.boolean(),
})

async function talk(session: Session, turns: readonly Turn[]): Promise<void> {
  for (const [number, { calls, order, between, answer }] of turns.entries()) {
    const first = await session.appendMessage('user', [text(`turn ${number}`)])
    const ids = Array.from({ length: calls }, (_, nth) => `c${number}-${nth}`)
    if (ids.length > 0) await session.appendMessage('assistant', [text('calling'), ...ids.map(call)])
    const said = [...between]
    for (const id of ids.toSorted(
      (left, right) => (order[ids.indexOf(left)] ?? 0) - (order[ids.indexOf(right)] ?? 0),
    )) {
      await interrupt(session, said.shift(), first)
      await session.appendMessage('tool', [result(id)])
    }
    for (const each of said) await interrupt(session, each, first)
    if (answer) await session.appendMessage('assistant', [text('answer')])
  }
}

async function interrupt(session: Session, what: Turn['between'][number] | undefined, target: string): Promise<void> {
  if (what === 'user') await session.appendMessage('user', [text('meanwhile')])
  if (what === 'model') await session.appendModelChange('openai', 'gpt-4o')
  if (what === 'label') await session.setLabel(target, 'mark')
  if (what === 'custom') await session.appendCustomEntry('x', {})
  if (what === 'bash') await session.appendMessage('bashExecution', [text('ls')])
}

function expectPaired(messages: readonly ContextMessage[]): void {
  const expected = messages.flatMap(({ message }) => callsOf(message).map(({ id }) => id))
  expect(answeredCalls(messages)).toEqual(expected)
  for (const [index, { message }] of messages.entries()) {
    const calls = callsOf(message)
    const behind = messages.slice(index + 1, index + 1 + calls.length)
    expect(behind.map((each) => each.message.role)).toEqual(calls.map(() => 'tool'))
  }
}

function answeredCalls(messages: readonly ContextMessage[]): string[] {
  return messages.flatMap(({ message }) => resultsOf(message).map(({ toolUseId }) => toolUseId))
}

/** The definition, literally and slowly: no call before a cut has its result at or after it. */
function cutPointsByDefinition(entries: readonly Entry[]): CutPoint[] {
  const pairs = pairsIn(entries)
  return entries.flatMap((entry, index) => {
    const kind = kindByDefinition(entry)
    const isParting = pairs.some((pair) => pair.call < index && pair.result >= index)
    return kind === undefined || isParting ? [] : [{ entryId: entry.id, index, kind }]
  })
}

/** Each result answers the last open call of its id. */
function pairsIn(entries: readonly Entry[]): { call: number; result: number }[] {
  const pairs: { call: number; result: number }[] = []
  for (const [at, entry] of entries.entries()) {
    if (entry.type !== 'message') continue
    for (const { toolUseId } of resultsOf(entry.message)) {
      const asked = entries.findLastIndex(
        (each, index) =>
          index < at && each.type === 'message' && callsOf(each.message).some(({ id }) => id === toolUseId),
      )
      const isTaken = pairs.some((pair) => pair.call === asked && pair.result <= at && ids.get(pair) === toolUseId)
      if (asked === -1 || isTaken) continue
      const pair = { call: asked, result: at }
      ids.set(pair, toolUseId)
      pairs.push(pair)
    }
  }
  return pairs
}

const ids = new WeakMap<object, string>()

function kindByDefinition(entry: Entry): CutKind | undefined {
  if (entry.type !== 'message') return 'entry'
  const { role, content } = entry.message
  if (role === 'tool') return undefined
  if (role === 'user') return 'user'
  if (role !== 'assistant') return 'entry'
  return content.some(({ type }) => type === 'tool_use') ? 'inside-turn' : 'assistant'
}

function bestByDefinition(entries: readonly Entry[], sizes: readonly number[], keep: number): CutPoint | undefined {
  const ranks: CutKind[] = ['user', 'assistant', 'entry', 'inside-turn']
  const fits = cutPointsByDefinition(entries).filter(
    ({ index }) => index > 0 && sizes.slice(index).reduce((sum, size) => sum + size, 0) <= keep,
  )
  return fits.toSorted((a, b) => ranks.indexOf(a.kind) - ranks.indexOf(b.kind) || a.index - b.index)[0]
}

function kindsIn(...steps: string[]): string[] {
  return findCutPoints(path(...steps)).map(({ index, kind }) => `${index} ${kind}`)
}

/** Entries `e0`, `e1` and so on from words such as `user`, `call a b`, `result a` or the type of an entry. */
function path(...steps: string[]): Entry[] {
  return steps.map((step, index) => entryOf(`e${index}`, step))
}

function entryOf(id: string, step: string): Entry {
  const [what = '', ...names] = step.split(' ')
  switch (what) {
    case 'user':
    case 'assistant':
    case 'bashExecution':
    case 'branchSummary':
    case 'compactionSummary':
      return message(id, what, [text(step)])
    case 'customMessage':
      return message(id, 'custom', [text(step)])
    case 'call':
      return message(id, 'assistant', [text('calling'), ...names.map(call)])
    case 'result':
      return message(id, 'tool', names.map(result))
    case 'userResult':
      return message(id, 'user', [text('here it is'), ...names.map(result)])
    default:
      return { ...base(id), type: what } as unknown as Entry
  }
}

function message(id: string, role: MessageRole, content: Content[]): Entry {
  return { ...base(id), type: 'message', message: { role, content } }
}

function base(id: string): { id: string; parentId: null; seq: number; timestamp: string } {
  return { id, parentId: null, seq: 1, timestamp: '' }
}

function call(id: string): Content {
  return { type: 'tool_use', toolUse: { id, name: 'read', input: {} } }
}

function result(toolUseId: string): Content {
  return { type: 'tool_result', toolResult: { toolUseId, content: 'ok' } }
}
