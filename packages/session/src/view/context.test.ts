import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildContext, callsOf, resultsOf, type Context, type ContextInput, type ReasoningPolicy } from './context.ts'
import type {
  CompactionEntry,
  Entry,
  MessageEntry,
  ModelChangeEntry,
  SystemEntry,
  ThinkingLevelEntry,
} from '../line/entry.ts'
import { text, type Content, type Message, type MessageRole } from '../line/message.ts'

describe('messages', () => {
  test('messages come in path order, each with its source entry', () => {
    const context = build([user('u', 'hello'), assistant('a', text('hi'))])
    expect(context.messages).toEqual([
      { entryId: 'u', message: { role: 'user', content: [text('hello')] } },
      { entryId: 'a', message: { role: 'assistant', content: [text('hi')] } },
    ])
    expect(context.repairs).toEqual([])
  })

  test('an empty path gives an empty context with nothing in force', () => {
    expect(build([])).toEqual({
      messages: [],
      system: null,
      model: null,
      thinkingLevel: null,
      provenance: { systemId: null, modelId: null, thinkingLevelId: null },
      repairs: [],
    })
  })

  test('entries other than messages contribute nothing, except the summary of a branch', () => {
    const silent = ['custom', 'label', 'session_info', 'gap', 'unknown', 'system', 'model_change', 'compaction'].map(
      (type) => ({ ...base(type), type }) as unknown as Entry,
    )
    const summary: Entry = { ...base('b'), type: 'branch_summary', branchSummary: { summary: 'left', fromId: null } }
    expect(build([...silent, summary]).messages).toEqual([
      { entryId: 'b', message: { role: 'branchSummary', content: [text('left')] }, made: 'summary' },
    ])
  })

  test('a command is included unless it is excluded from the context', () => {
    const bash = (id: string, excludeFromContext?: boolean): Entry =>
      message(id, 'bashExecution', [text(id)], {
        bashExecution: { command: 'ls', output: id, ...(excludeFromContext !== undefined && { excludeFromContext }) },
      })
    expect(said(build([bash('one'), bash('two', true), bash('three', false)]))).toEqual([
      'bashExecution: one',
      'bashExecution: three',
    ])
  })

  test('the summary of a compaction comes first and names the compaction', () => {
    const compaction: CompactionEntry = {
      ...base('k'),
      type: 'compaction',
      compaction: { summary: 'so far', firstKeptEntryId: 'u', tokensBefore: 1 },
    }
    const context = build([user('u', 'kept'), compaction, user('v', 'after')], { compaction })
    expect(context.messages[0]).toEqual({
      entryId: 'k',
      message: { role: 'compactionSummary', content: [text('so far')] },
      made: 'summary',
    })
    expect(said(context)).toEqual(['compactionSummary: so far', 'user: kept', 'user: after'])
    expect(build([], { compaction, keptIsMissing: true }).repairs).toEqual([
      'The first entry kept by compaction k is not on this path.',
    ])
  })

  test('system, model and thinking level come with their source entries', () => {
    const system: SystemEntry = {
      ...base('s'),
      type: 'system',
      system: { prompt: 'Be brief.', tools: [], sha256: 'x' },
    }
    const model: ModelChangeEntry = {
      ...base('m'),
      type: 'model_change',
      modelChange: { provider: 'openai', modelId: 'gpt-4o' },
    }
    const thinking: ThinkingLevelEntry = {
      ...base('t'),
      type: 'thinking_level',
      thinkingLevel: { thinkingLevel: 'high' },
    }
    expect(build([], { system, model, thinking })).toEqual({
      messages: [],
      system: { prompt: 'Be brief.', tools: [], sha256: 'x' },
      model: { provider: 'openai', modelId: 'gpt-4o' },
      thinkingLevel: 'high',
      provenance: { systemId: 's', modelId: 'm', thinkingLevelId: 't' },
      repairs: [],
    })
  })
})

describe('calls and results', () => {
  test('results follow the message with their calls, in call order; messages in between come after', () => {
    const context = build([
      assistant('a', call('1'), call('2'), call('3')),
      tool('t3', result('3', 'three')),
      user('u', 'meanwhile'),
      tool('t1', result('1', 'one')),
      tool('t2', result('2', 'two')),
    ])
    expect(said(context)).toEqual([
      'assistant: [1] [2] [3]',
      'tool: 1=one',
      'tool: 2=two',
      'tool: 3=three',
      'user: meanwhile',
    ])
    expect(context.messages.map(({ entryId }) => entryId)).toEqual(['a', 't1', 't2', 't3', 'u'])
  })

  test('several results of one entry are split, each with the members of its message', () => {
    const both = message('t', 'tool', [result('1', 'one'), result('2', 'two')], { runId: 'r' })
    const context = build([assistant('a', call('2')), assistant('b', call('1')), both])
    expect(context.messages).toEqual([
      { entryId: 'a', message: { role: 'assistant', content: [call('2')] } },
      { entryId: 't', message: { role: 'tool', runId: 'r', content: [result('2', 'two')] } },
      { entryId: 'b', message: { role: 'assistant', content: [call('1')] } },
      { entryId: 't', message: { role: 'tool', runId: 'r', content: [result('1', 'one')] } },
    ])
  })

  test('a call without a result gets a placeholder result', () => {
    const context = build([assistant('a', call('1'), call('2')), tool('t', result('2', 'two'))])
    expect(context.messages[1]).toEqual({
      entryId: 'a',
      message: {
        role: 'tool',
        content: [
          { type: 'tool_result', toolResult: { toolUseId: '1', isError: true, content: 'not run on this branch' } },
        ],
      },
      made: 'missing-result',
    })
    expect(said(context)).toEqual(['assistant: [1] [2]', 'tool: 1=not run on this branch', 'tool: 2=two'])
    expect(context.repairs).toEqual(['Call 1 of read has no result on this branch.'])
  })

  test('a result without its call becomes a user message in its place', () => {
    const picture: Content = {
      type: 'image',
      image: { source: { type: 'url', mediaType: 'image/png', data: 'https://example.com/a.png' } },
    }
    const blocks: Content = { type: 'tool_result', toolResult: { toolUseId: '8', content: [text('see'), picture] } }
    const context = build([user('u', 'go'), tool('t', result('9', 'late'), blocks), user('v', 'on')])
    expect(context.messages.slice(1, 3)).toEqual([
      {
        entryId: 't',
        message: { role: 'user', content: [text('Result of an earlier call (9):'), text('late')] },
        made: 'orphan-result',
      },
      {
        entryId: 't',
        message: { role: 'user', content: [text('Result of an earlier call (8):'), text('see'), picture] },
        made: 'orphan-result',
      },
    ])
    expect(context.repairs).toEqual([
      'Result 1 of entry t answers no call in the context.',
      'Result 2 of entry t answers no call in the context.',
    ])
  })

  test('a second result of a call, and a result before its call, answer no call', () => {
    const context = build([
      tool('t0', result('1', 'early')),
      assistant('a', call('1')),
      tool('t1', result('1', 'first')),
      tool('t2', result('1', 'second')),
    ])
    expect(context.messages.map(({ entryId, made }) => `${entryId} ${made ?? ''}`)).toEqual([
      't0 orphan-result',
      'a ',
      't1 ',
      't2 orphan-result',
    ])
  })

  test('a reused id belongs to the newer call', () => {
    const context = build([
      assistant('a', call('1')),
      tool('t1', result('1', 'first')),
      assistant('b', call('1')),
      tool('t2', result('1', 'second')),
    ])
    expect(said(context)).toEqual(['assistant: [1]', 'tool: 1=first', 'assistant: [1]', 'tool: 1=second'])
    expect(context.repairs).toEqual([])
  })

  test('a result in a user message follows its call, and other user content comes after', () => {
    const context = build([
      assistant('a', call('1')),
      message('u', 'user', [result('1', 'one'), text('go on')]),
      assistant('b', call('2')),
      message('v', 'user', [result('2', 'two')]),
    ])
    expect(said(context)).toEqual(['assistant: [1]', 'tool: 1=one', 'user: go on', 'assistant: [2]', 'tool: 2=two'])
    expect(context.messages.map(({ entryId }) => entryId)).toEqual(['a', 'u', 'u', 'b', 'v'])
    expect(context.repairs).toEqual([])
  })

  test('a block in a user message that looks like a call is not changed', () => {
    expect(build([message('u', 'user', [call('1')])]).messages).toEqual([
      { entryId: 'u', message: { role: 'user', content: [call('1')] } },
    ])
  })

  test('an answer with nothing to send is left out: empty, only empty text, only reasoning', () => {
    const context = build([
      assistant('a'),
      assistant('b', text('')),
      assistant('c', thought('hm')),
      assistant('d', thought('hm'), text('')),
      assistant('e', text(''), text('x')),
      message('u', 'user', []),
    ])
    expect(context.messages.map(({ entryId }) => entryId)).toEqual(['e', 'u'])
  })

  test('on random paths every call is followed by its result and nothing is duplicated or lost', () => {
    fc.assert(
      fc.property(fc.array(randomStep, { maxLength: 30 }), (steps) => {
        const path = steps.map((step, index) => entryOf(step, `e${index}`))
        const { messages, repairs } = build(path)
        const expected: string[] = []
        for (let index = 0; index < messages.length; index++) {
          const { message: each } = messages[index]!
          expect(each.role).not.toBe('tool')
          const calls = callsOf(each)
          const behind = messages.slice(index + 1, index + 1 + calls.length)
          expect(behind.flatMap((answer) => resultsOf(answer.message).map(({ toolUseId }) => toolUseId))).toEqual(
            calls.map(({ id }) => id),
          )
          index += calls.length
        }
        for (const entry of path) {
          const { role, content } = (entry as MessageEntry).message
          if (role !== 'tool') expected.push(entry.id)
          else expected.push(...content.map(() => entry.id))
        }
        const made = messages.filter((each) => each.made === 'missing-result')
        const kept = messages.filter((each) => each.made !== 'missing-result').map(({ entryId }) => entryId)
        expect(kept.toSorted()).toEqual(expected.toSorted())
        expect(repairs).toHaveLength(made.length + messages.filter((each) => each.made === 'orphan-result').length)
        expect(build(path)).toEqual(build(structuredClone(path)))
      }),
      { numRuns: 300 },
    )
  })
})

describe('reasoning', () => {
  const model: ModelChangeEntry = {
    ...base('m'),
    type: 'model_change',
    modelChange: { provider: 'openai', modelId: 'gpt-4o' },
  }
  const thinking = (id: string, more: Partial<Message> = {}): Entry =>
    message(id, 'assistant', [thought(id), text(id)], { provider: 'openai', model: 'gpt-4o', ...more })
  const reasoned = (path: Entry[], reasoning?: ReasoningPolicy): string[] =>
    build(path, { model, ...(reasoning && { reasoning }) })
      .messages.filter((each) => each.message.content.some(({ type }) => type === 'reasoning'))
      .map(({ entryId }) => entryId)

  test('is sent back only to the provider and model that produced it', () => {
    const path = [
      thinking('own'),
      thinking('otherModel', { model: 'o3' }),
      thinking('otherProvider', { provider: 'azure' }),
    ]
    expect(reasoned(path)).toEqual(['own'])
    expect(reasoned(path, 'auto')).toEqual(['own'])
    expect(said(build(path, { model }))).toEqual([
      'assistant: (own) own',
      'assistant: otherModel',
      'assistant: otherProvider',
    ])
  })

  test('of an aborted answer is never sent back', () => {
    expect(
      reasoned([thinking('whole', { stopReason: 'end_turn' }), thinking('half', { stopReason: 'aborted' })]),
    ).toEqual(['whole'])
  })

  test('is sent back only within the current turn, or never, depending on the policy', () => {
    const path = [user('u', 'one'), thinking('old'), user('v', 'two'), thinking('new')]
    expect(reasoned(path, 'turn')).toEqual(['new'])
    expect(reasoned(path, 'never')).toEqual([])
    expect(reasoned(path, 'auto')).toEqual(['old', 'new'])
    expect(reasoned([thinking('first')], 'turn')).toEqual(['first'])
  })

  test('of the current turn stays even if an orphan result came after it', () => {
    expect(reasoned([user('u', 'one'), thinking('a'), tool('t', result('9', 'late'))], 'turn')).toEqual(['a'])
  })

  test('stays in the entry that it is left out of', () => {
    const entry = thinking('a') as MessageEntry
    build([entry], { model, reasoning: 'never' })
    expect(entry.message.content).toEqual([thought('a'), text('a')])
  })

  test('does not change answers without reasoning, nor other roles', () => {
    const plain = assistant('a', text('x'))
    const quoting = message('u', 'user', [thought('quoted')])
    expect(build([plain, quoting], { model, reasoning: 'never' }).messages.map((each) => each.message)).toEqual([
      (plain as MessageEntry).message,
      (quoting as MessageEntry).message,
    ])
  })
})

type Step = { role: 'user' } | { role: 'assistant'; calls: string[] } | { role: 'tool'; results: string[] }

const someIds = fc.subarray(['1', '2', '3', '4', '5'], { maxLength: 3 })
const randomStep: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>({ role: 'user' }),
  someIds.map((calls): Step => ({ role: 'assistant', calls })),
  someIds.map((results): Step => ({ role: 'tool', results })),
)

function entryOf(step: Step, id: string): Entry {
  if (step.role === 'user') return user(id, 'x')
  if (step.role === 'assistant') return assistant(id, text('x'), ...step.calls.map((each) => call(each)))
  return tool(id, ...step.results.map((each) => result(each, 'x')))
}

function build(path: Entry[], more: Partial<ContextInput> = {}): Context {
  return buildContext({ path, compaction: null, system: null, model: null, thinking: null, ...more })
}

function said(context: Context): string[] {
  return context.messages.map(({ message: each }) => `${each.role}: ${each.content.map(briefly).join(' ')}`)
}

function briefly(block: Content): string {
  if (block.type === 'text') return block.text.content
  if (block.type === 'tool_use') return `[${block.toolUse.id}]`
  if (block.type === 'tool_result')
    return `${block.toolResult.toolUseId}=${JSON.stringify(block.toolResult.content).replaceAll('"', '')}`
  return block.type === 'reasoning' ? `(${block.reasoning.text})` : '<image>'
}

function user(id: string, words: string): Entry {
  return message(id, 'user', [text(words)])
}

function assistant(id: string, ...content: Content[]): Entry {
  return message(id, 'assistant', content)
}

function tool(id: string, ...content: Content[]): Entry {
  return message(id, 'tool', content)
}

function message(id: string, role: MessageRole, content: Content[], more: Partial<Message> = {}): Entry {
  return { ...base(id), type: 'message', message: { role, content, ...more } }
}

function base(id: string): { id: string; parentId: null; seq: number; timestamp: string } {
  return { id, parentId: null, seq: 1, timestamp: '' }
}

function call(id: string): Content {
  return { type: 'tool_use', toolUse: { id, name: 'read', input: {} } }
}

function result(toolUseId: string, content: string): Content {
  return { type: 'tool_result', toolResult: { toolUseId, content } }
}

function thought(words: string): Content {
  return { type: 'reasoning', reasoning: { text: words } }
}
