import { memoryStore, text, type Content } from '@tapetree/session'
import fc from 'fast-check'
import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { defineTool, type Tool, type ToolContext, type ToolOptions, type ToolOutput } from '../tools/tool.ts'

/** A tool whose behavior the test provides. */
function tool(
  name: string,
  run: (context: ToolContext) => Promise<ToolOutput> | ToolOutput = () => ({ content: 'ok' }),
  options: Partial<ToolOptions<z.ZodObject>> = {},
): Tool {
  const schema = z.looseObject({})
  return defineTool({
    name,
    description: name,
    schema,
    access: () => [],
    ...options,
    run: async (_, context) => run(context),
  })
}

const threeCalls = () => script().toolCall('1', 'a').toolCall('2', 'a').toolCall('3', 'a').step().text('done')

describe('a run', () => {
  test('appends the answer of the model and ends', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().text('he', 'llo')) })
    expect(await agent.prompt('hi')).toMatchObject({ outcome: 'completed' })
    expect(await agent.path()).toEqual(['user: hi', 'assistant: hello'])
    expect(await agent.lineTypes()).toEqual([
      'session',
      'writer',
      'model_change',
      'system',
      'message',
      'run_start',
      'message',
      'run_end',
    ])
    expect(agent.events).toMatchObject([
      { off: 0, text: 'he' },
      { off: 2, text: 'llo' },
    ])
  })

  test('runs a call whose input has more small values than fit into a line of the log', async () => {
    const numbers = Array.from({ length: 60_000 }, (_, index) => index)
    const sum = defineTool({
      name: 'sum',
      description: 'Adds.',
      schema: z.object({ numbers: z.array(z.number()) }),
      access: () => [],
      run: async (input) => ({ content: `${input.numbers.length} numbers` }),
    })
    const model = scriptedModel(script().toolCall('1', 'sum', { numbers }).step().text('done'))
    const agent = await TestAgent.open({ model, tools: [sum] })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    expect((await agent.path()).slice(2)).toEqual(['tool: 1 60000 numbers', 'assistant: done'])
  })

  test('a call whose input is nested too deeply for the log is sent back to the model', async () => {
    const deep = (levels: number): Record<string, unknown> => (levels === 0 ? {} : { inner: deep(levels - 1) })
    const model = scriptedModel(script().toolCall('1', 'a', deep(70)).step().text('done'))
    const agent = await TestAgent.open({ model, tools: [tool('a')] })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    expect((await agent.path()).at(-1)).toBe('assistant: done')
  })

  test('runs calls in order and continues until an answer has no calls', async () => {
    const order: string[] = []
    const a = tool('a', ({ callId }) => ({ content: `${order.push(callId)}` }))
    const agent = await TestAgent.open({ model: scriptedModel(threeCalls()), tools: [a] })
    await agent.prompt('go')
    expect(await agent.path()).toEqual([
      'user: go',
      'assistant: [a 1] [a 2] [a 3]',
      'tool: 1 1',
      'tool: 2 2',
      'tool: 3 3',
      'assistant: done',
    ])
  })

  test.each(['with a new message', 'by a retry'])(
    'does not run the calls of an answer again to which the user went back, %s',
    async (how) => {
      const ran: string[] = []
      const a = tool('a', ({ callId }) => ({ content: `${ran.push(callId)}` }))
      const model = scriptedModel(threeCalls().step().text('done again'))
      const agent = await TestAgent.open({ model, tools: [a] })
      await agent.prompt('go')
      const path = await agent.session.getContextPath()
      const answer = path.find((entry) => entry.type === 'message' && entry.message.role === 'assistant')
      await agent.session.branch(answer?.id ?? null)
      if (how === 'by a retry') await agent.run({ type: 'leaf' })
      else await agent.prompt('go on')
      expect(ran).toEqual(['1', '2', '3'])
      const results = model.requests.at(-1)?.messages.filter(({ role }) => role === 'tool')
      expect(JSON.stringify(results).match(/not run on this branch/g)).toHaveLength(3)
      expect((await agent.path()).at(-1)).toBe('assistant: done again')
    },
  )

  test('does not run the calls of an answer again that was copied', async () => {
    const ran: string[] = []
    const a = tool('a', ({ callId }) => ({ content: `${ran.push(callId)}` }))
    const store = memoryStore()
    const agent = await TestAgent.open({ model: scriptedModel(threeCalls()), tools: [a], store })
    await agent.prompt('go')
    const path = await agent.session.getContextPath()
    const answer = path.find((entry) => entry.type === 'message' && entry.message.role === 'assistant')
    const sessionId = await agent.session.createBranchedSession(answer?.id ?? '')
    const copy = await TestAgent.open({ model: scriptedModel(script().text('done')), tools: [a], store, sessionId })
    await copy.run({ type: 'leaf' })
    expect(ran).toEqual(['1', '2', '3'])
    expect((await copy.path()).at(-1)).toBe('assistant: done')
  })

  test('does not append the model and the system prompt again if they have not changed', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().text('1').step().text('2')) })
    await agent.prompt('a')
    await agent.prompt('b')
    expect((await agent.lineTypes()).filter((type) => type === 'system' || type === 'model_change')).toHaveLength(2)
  })

  test('read-only tools run in parallel, and each result is kept as soon as it exists', async () => {
    const gates = new Map<string, () => void>()
    const a = tool(
      'a',
      ({ callId }) => new Promise((resolve) => gates.set(callId, () => resolve({ content: callId }))),
      {
        readOnly: true,
      },
    )
    const agent = await TestAgent.open({ model: scriptedModel(threeCalls()), tools: [a] })
    const stop = agent.session.subscribe(({ line }) => {
      if (line.type === 'tool_start' && gates.size === 3) gates.get('3')?.()
      if (line.type !== 'message' || line.message.role !== 'tool') return
      for (const [id, open] of gates) if (id !== '3') open()
    })
    const done = agent.prompt('go')
    await expect.poll(() => gates.size).toBe(3)
    gates.get('3')?.()
    await done
    stop()
    expect((await agent.path())[2]).toBe('tool: 3 3')
  })
})

describe('a steer during the first of three calls', () => {
  async function steered(steerPolicy: 'skip-remaining' | 'after-batch' | 'interrupt'): Promise<string[]> {
    const a = tool('a', async ({ callId, signal }) => {
      if (callId === '1') await agent.session.submit('wait', { delivery: 'steer' })
      return { content: signal.aborted ? 'stopped' : 'ok' }
    })
    const agent: TestAgent = await TestAgent.open({
      model: scriptedModel(threeCalls()),
      tools: [a],
      settings: { steerPolicy },
    })
    await agent.prompt('go')
    return (await agent.path()).slice(2)
  }

  test('skips the calls that have not started', async () => {
    const skipped = 'failed: Not run: the user sent a new message first.'
    expect(await steered('skip-remaining')).toEqual([
      'tool: 1 ok',
      `tool: 2 ${skipped}`,
      `tool: 3 ${skipped}`,
      'user: wait',
      'assistant: done',
    ])
  })

  test('is delivered after all of them under `after-batch`', async () => {
    expect(await steered('after-batch')).toEqual([
      'tool: 1 ok',
      'tool: 2 ok',
      'tool: 3 ok',
      'user: wait',
      'assistant: done',
    ])
  })

  test('also stops the running one under `interrupt`', async () => {
    expect((await steered('interrupt')).slice(0, 2)).toEqual([
      'tool: 1 stopped',
      'tool: 2 failed: Not run: the user sent a new message first.',
    ])
  })
})

describe('queued messages', () => {
  test('a follow-up gets its own run, after the first one ended by itself', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().text('1').step().text('2').step().text('3')) })
    await agent.session.submit('second')
    await agent.session.submit('third')
    await agent.prompt('first')
    expect(await agent.path()).toEqual([
      'user: first',
      'assistant: 1',
      'user: second',
      'assistant: 2',
      'user: third',
      'assistant: 3',
    ])
    expect((await agent.lineTypes()).filter((type) => type.startsWith('run_'))).toEqual([
      'run_start',
      'run_end',
      'run_start',
      'run_end',
      'run_start',
      'run_end',
    ])
    expect(agent.session.inbox.messages).toEqual([])
  })

  test('a steer during the last answer is delivered in the same run', async () => {
    const model = scriptedModel(
      script()
        .text('1')
        .do(() => agent.session.submit('and?', { delivery: 'steer' }))
        .step()
        .text('2'),
    )
    const agent: TestAgent = await TestAgent.open({ model })
    await agent.prompt('go')
    expect(await agent.path()).toEqual(['user: go', 'assistant: 1', 'user: and?', 'assistant: 2'])
    expect((await agent.lineTypes()).filter((type) => type === 'run_start')).toHaveLength(1)
  })

  test('a steer just after the end of a run is delivered at once, in its own run', async () => {
    const agent = await TestAgent.open({
      model: scriptedModel(script().text('1').step().text('2')),
      settings: { followUpDelayMs: 1000 },
    })
    const stop = agent.session.subscribe(({ line }) => {
      if (line.type !== 'run_end') return
      stop()
      void agent.session.submit('and?', { delivery: 'steer' })
    })
    await agent.prompt('go')
    expect(await agent.path()).toEqual(['user: go', 'assistant: 1', 'user: and?', 'assistant: 2'])
  })

  test('a steer during a compaction is delivered in the request after it', async () => {
    const long = 'some words to sum up, '.repeat(50)
    const model = scriptedModel(
      script()
        .text(long)
        .step()
        .toolCall('1', 'a')
        .usage({ inputTokens: 5000, outputTokens: 1 })
        .step()
        .do(() => agent.session.submit('and?', { delivery: 'steer' }))
        .text('a summary')
        .step()
        .text('2'),
      { limits: { contextTokens: 4000, outputTokens: 1000 } },
    )
    const agent: TestAgent = await TestAgent.open({ model, tools: [tool('a')] })
    await agent.prompt(long)
    await agent.prompt('go')
    expect((await agent.path()).slice(-4)).toEqual(['assistant: [a 1]', 'tool: 1 ok', 'user: and?', 'assistant: 2'])
    expect(await agent.lineTypes()).toContain('compaction')
  })

  test('a message that is removed at the last moment is not delivered', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().text('1').step().text('2')) })
    const { id } = await agent.session.submit('second')
    await agent.session.submit('third')
    let runs = 0
    agent.deps.systemPrompt = () => {
      if (++runs === 2) void agent.session.changeInbox({ action: 'remove', id })
      return 'You are a test.'
    }
    expect(await agent.prompt('first')).toMatchObject({ outcome: 'completed' })
    expect(await agent.path()).toEqual(['user: first', 'assistant: 1', 'user: third', 'assistant: 2'])
  })

  test('if follow-ups are not sent automatically, they wait until a person releases them or sends a later prompt', async () => {
    const model = scriptedModel(script().text('1').step().text('2').step().text('3').step().text('4'))
    const agent = await TestAgent.open({ model, settings: { sendsFollowUps: false } })
    const stop = agent.session.subscribe(({ line }) => {
      if (line.type !== 'run_start') return
      stop()
      void agent.session.submit('second')
    })
    await agent.prompt('first')
    expect(agent.session.inbox).toMatchObject({ hold: null, messages: [{ message: 'second' }] })
    const { id } = await agent.session.submit('third')
    await agent.session.changeInbox({ action: 'release', id })
    await agent.run({ type: 'waiting' })
    await agent.prompt('fourth')
    const said = (await agent.path()).filter((entry) => entry.startsWith('user'))
    expect(said).toEqual(['user: first', 'user: third', 'user: fourth', 'user: second'])
  })

  test('an abort between two runs holds them', async () => {
    const agent = await TestAgent.open({
      model: scriptedModel(script().text('1')),
      settings: { followUpDelayMs: 1000 },
    })
    await agent.session.submit('second')
    const done = agent.prompt('first')
    await agent.clock.waited()
    agent.abort()
    expect(await done).toMatchObject({ outcome: 'completed' })
    expect(agent.session.inbox).toMatchObject({ hold: {}, messages: [{ message: 'second' }] })
  })

  test('a failed run holds them', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().error('auth')) })
    await agent.session.submit('later')
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'failed', reason: 'auth' })
    expect(agent.session.inbox).toMatchObject({ hold: {}, messages: [{ message: 'later' }] })
  })
})

describe('a model call that fails', () => {
  test('is retried after a wait that doubles, and leaves an attempt beside the path', async () => {
    const model = scriptedModel(script().text('half').error('network').step().error('overloaded').step().text('whole'))
    const agent = await TestAgent.open({ model, settings: { retry: noJitter } })
    const done = agent.prompt('go')
    expect([await agent.clock.skip(), await agent.clock.skip()]).toEqual([2000, 4000])
    expect(await done).toMatchObject({ outcome: 'completed' })
    expect(await agent.path()).toEqual(['user: go', 'assistant: whole'])
    expect((await agent.lineTypes()).filter((type) => type === 'attempt')).toHaveLength(2)
  })

  test('waits as long as the provider asks', async () => {
    const model = scriptedModel(script().error('rate-limited', 'slow down', { retryAfterMs: 20_000 }).step().text('ok'))
    const agent = await TestAgent.open({ model, settings: { retry: noJitter } })
    const done = agent.prompt('go')
    expect(await agent.clock.skip()).toBe(20_000)
    expect(await done).toMatchObject({ outcome: 'completed' })
  })

  test('fails after three retries, with the reason in the log', async () => {
    const model = scriptedModel(
      script().error('network').step().error('network').step().error('network').step().error('network'),
    )
    const agent = await TestAgent.open({ model })
    const done = agent.prompt('go')
    for (let retry = 0; retry < 3; retry++) await agent.clock.skip()
    expect(await done).toMatchObject({ outcome: 'failed', reason: 'network' })
    expect((await agent.lineTypes()).slice(-2)).toEqual(['error', 'run_end'])
  })

  test('can be retried from the leaf by hand', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().error('auth').step().text('ok')) })
    await agent.prompt('go')
    expect(await agent.run({ type: 'leaf' })).toMatchObject({ outcome: 'completed' })
    expect(await agent.path()).toEqual(['user: go', 'assistant: ok'])
  })

  test('a permanent error that mentions a timeout is not retried', async () => {
    const agent = await TestAgent.open({
      model: scriptedModel(script().error('invalid-request', 'timeout is no number')),
    })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'failed', reason: 'invalid-request' })
  })
})

const noJitter = { maxRetries: 3, baseMs: 2000, capMs: 60_000, longestRetryAfterMs: 600_000, jitter: 0 }

describe('an abort', () => {
  test('keeps the partial answer and answers its calls', async () => {
    const model = scriptedModel(
      script().text('let me').toolCall('1', 'a').toolStart('2', 'a').toolInput('{"x').cancel(),
      { onCancel: () => agent.abort() },
    )
    const agent: TestAgent = await TestAgent.open({ model, tools: [tool('a')] })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'aborted' })
    const stopped = 'failed: Not run: the user stopped the run.'
    expect(await agent.path()).toEqual([
      'user: go',
      'assistant: let me [a 1] [a 2]',
      `tool: 1 ${stopped}`,
      `tool: 2 ${stopped}`,
    ])
    const answer = (await agent.session.getContextPath()).find(
      ({ type, ...entry }) => type === 'message' && 'message' in entry && entry.message.role === 'assistant',
    )
    expect(answer).toMatchObject({ message: { stopReason: 'aborted' } })
  })

  test('stops the running tool and answers the others', async () => {
    const a = tool('a', ({ signal }) => {
      agent.abort()
      return new Promise((resolve) => {
        if (signal.aborted) resolve({ content: 'half' })
      })
    })
    const agent: TestAgent = await TestAgent.open({ model: scriptedModel(threeCalls()), tools: [a] })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'aborted' })
    expect((await agent.path()).slice(2)).toEqual([
      'tool: 1 half',
      'tool: 2 failed: Not run: the user stopped the run.',
      'tool: 3 failed: Not run: the user stopped the run.',
    ])
  })

  test('does not wait for a tool that ignores it', async () => {
    const a = tool('a', () => {
      agent.abort()
      return new Promise(() => undefined)
    })
    const agent: TestAgent = await TestAgent.open({ model: scriptedModel(script().toolCall('1', 'a')), tools: [a] })
    const done = agent.prompt('go')
    await expect.poll(() => agent.clock.waits).toContain(5000)
    agent.clock.advance(5000)
    expect(await done).toMatchObject({ outcome: 'aborted' })
    expect((await agent.path()).at(-1)).toBe('tool: 1 failed: Stopped by the user. It may have taken effect in part.')
  })

  test('ends the wait before a retry', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().error('network')) })
    const done = agent.prompt('go')
    await agent.clock.waited()
    agent.abort()
    expect(await done).toMatchObject({ outcome: 'aborted' })
  })
})

describe('a call that cannot run is answered', () => {
  async function answerTo(calls: ReturnType<typeof script>, ...tools: Tool[]): Promise<string | undefined> {
    const agent = await TestAgent.open({ model: scriptedModel(calls.step().text('ok')), tools })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    return (await agent.path())[2]
  }

  test('if the tool does not exist', async () => {
    expect(await answerTo(script().toolCall('1', 'b'), tool('a'))).toBe(
      'tool: 1 failed: There is no tool b. Available tools: a.',
    )
  })

  test('if its input does not match the schema', async () => {
    const a = tool('a', undefined, { schema: z.object({ path: z.string() }) as unknown as z.ZodObject })
    expect(await answerTo(script().toolCall('1', 'a', { path: 1 }), a)).toMatch(
      /^tool: 1 failed: The input of a is not valid/,
    )
  })

  test('if the tool throws', async () => {
    const a = tool('a', () => {
      throw new Error('no disk')
    })
    expect(await answerTo(script().toolCall('1', 'a'), a)).toBe('tool: 1 failed: The tool failed: no disk')
  })

  test('if the tool never returns', async () => {
    const a = tool('a', () => new Promise(() => undefined), { deadlineMs: 60_000 })
    const agent = await TestAgent.open({
      model: scriptedModel(script().toolCall('1', 'a').step().text('ok')),
      tools: [a],
    })
    const done = agent.prompt('go')
    expect(await agent.clock.skip()).toBe(60_000)
    expect(await agent.clock.skip()).toBe(5000)
    await done
    expect((await agent.path())[2]).toMatch(/^tool: 1 failed: The tool did not return within 60 s/)
  })

  test('if its input is incomplete: the model is told and asks again', async () => {
    const calls = script().toolCall('1', 'a', '{"x":').finish('length').step().toolCall('2', 'a')
    const agent = await TestAgent.open({ model: scriptedModel(calls.step().text('ok')), tools: [tool('a')] })
    await agent.prompt('go')
    expect(await agent.path()).toEqual([
      'user: go',
      'custom: Your call of a was not run: its input is incomplete, because the answer reached its maximum length. Send it again, in smaller parts.',
      'assistant: [a 2]',
      'tool: 2 ok',
      'assistant: ok',
    ])
  })

  test('if the gate rejects it', async () => {
    const gate = () => ({ admit: () => Promise.resolve({ type: 'denied' as const, reason: 'not here' }) })
    const agent = await TestAgent.open({
      model: scriptedModel(script().toolCall('1', 'a').step().text('ok')),
      tools: [tool('a')],
      gate,
    })
    await agent.prompt('go')
    expect((await agent.path())[2]).toBe('tool: 1 failed: not here')
    expect(await agent.lineTypes()).not.toContain('tool_start')
  })

  test('if it repeats the calls before it', async () => {
    const model = scriptedModel([], { otherwise: () => script().toolCall(String(calls++), 'a', { same: true }) })
    let calls = 0
    let runs = 0
    const a = tool('a', () => ({ content: `${Math.sign(++runs)}` }))
    const agent = await TestAgent.open({ model, tools: [a] })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'failed', reason: 'repeating-calls' })
    expect([runs, calls]).toEqual([3, 6])
  })
})

describe('a limit', () => {
  const forever = () =>
    scriptedModel([], {
      otherwise: ({ messages }) =>
        script()
          .toolCall(String(messages.length), 'a', { at: messages.length })
          .usage({ inputTokens: 90, outputTokens: 10, totalTokens: 100, cost: 0.5 }),
    })

  test.each([
    ['turns', { turns: 2 }, 2],
    ['toolCalls', { toolCalls: 2 }, 2],
    ['tokens', { tokens: 150 }, 2],
    ['cost', { cost: 0.6 }, 2],
  ] as const)(
    'of %s ends the run with every call answered, and the run continues when the limit is raised',
    async (name, limits, answers) => {
      const agent = await TestAgent.open({ model: forever(), tools: [tool('a')], settings: { runLimits: limits } })
      expect(await agent.prompt('go')).toMatchObject({ outcome: 'failed', reason: `limit:${name}` })
      const context = await agent.session.getContext()
      expect(context.repairs).toEqual([])
      expect(agent.session.totals.turns).toBeGreaterThanOrEqual(answers)
      agent.deps.settings = { ...agent.deps.settings, runLimits: { turns: 1 } }
      expect(await agent.run({ type: 'leaf' })).toMatchObject({ reason: 'limit:turns' })
    },
  )

  test('of wall time ends the run', async () => {
    const slow = tool('a', () => {
      agent.clock.advance(1000)
      return { content: 'ok' }
    })
    const agent: TestAgent = await TestAgent.open({
      model: forever(),
      tools: [slow],
      settings: { runLimits: { wallMs: 2500 } },
    })
    expect(await agent.prompt('go')).toMatchObject({ reason: 'limit:wallMs' })
  })

  test('of bytes per turn ends the run', async () => {
    const loud = tool('a', () => ({ content: 'x'.repeat(10_000) }))
    const agent = await TestAgent.open({
      model: forever(),
      tools: [loud],
      settings: { runLimits: { logBytesPerTurn: 8000 } },
    })
    expect(await agent.prompt('go')).toMatchObject({ reason: 'limit:logBytesPerTurn' })
  })

  test('of bytes per turn counts the lines that begin the run', async () => {
    const model = forever()
    const agent = await TestAgent.open({ model, settings: { runLimits: { logBytesPerTurn: 8000 } } })
    expect(await agent.prompt('x'.repeat(10_000))).toMatchObject({ reason: 'limit:logBytesPerTurn' })
    expect(model.requests).toEqual([])
  })

  test('of the session counts the usage of earlier runs', async () => {
    const agent = await TestAgent.open({
      model: forever(),
      tools: [tool('a')],
      settings: { runLimits: { turns: 1 }, sessionLimits: { turns: 2 } },
    })
    await agent.prompt('one')
    await agent.prompt('two')
    expect(await agent.prompt('three')).toMatchObject({
      outcome: 'failed',
      message: 'The session has reached its limit of 2 turns.',
    })
  })
})

describe('a tool may return', () => {
  const circle: Record<string, unknown> = {}
  circle['itself'] = circle

  test.each<[string, unknown, unknown]>([
    ['nothing', undefined, '(no output)'],
    ['null', null, '(no output)'],
    ['a string', 'refunded', 'refunded'],
    ['a number', 7, '7'],
    ['an arbitrary value', { refund: 1 }, '{"refund":1}'],
    ['an arbitrary value with a member called content', { content: { a: 1 }, b: 2 }, '{"content":{"a":1},"b":2}'],
    ['text blocks of other SDKs', { content: [{ type: 'text', text: 'hi' }] }, [text('hi')]],
    ['our blocks', [text('hi')], [text('hi')]],
    ['unknown blocks', [{ type: 'video' }], '[{"type":"video"}]'],
    ['no content', { content: undefined }, '(no output)'],
    ['a cyclic value', circle, 'The tool returned a value of type object that cannot be shown.'],
    ['a function', () => 1, 'The tool returned a value of type function that cannot be shown.'],
  ])('%s, and the model gets one result', async (_, returned, told) => {
    const a = tool('a', () => returned as ToolOutput)
    const agent = await TestAgent.open({ model: scriptedModel(oneCall()), tools: [a] })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    expect(await results(agent)).toEqual([told])
  })

  test('more blocks than fit into a line', async () => {
    const image = {
      type: 'image',
      image: { source: { type: 'base64', mediaType: 'image/png', data: 'AA==' } },
    } as const
    const content = Array.from({ length: 5000 }, (_, index) => (index % 2 ? image : text(`${index}`)))
    const agent = await TestAgent.open({ model: scriptedModel(oneCall()), tools: [tool('a', () => ({ content }))] })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    const [shown] = (await results(agent)) as Content[][]
    expect(shown?.at(-1)).toEqual(text('(2438 more images were left out.)'))
    expect(shown?.[0]).toMatchObject({ text: { content: expect.stringMatching(/^0\n2\n.*\n4998$/s) } })
  })

  test('any value', async () => {
    const anything = fc.oneof(
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withSparseArray: true, withObjectString: true }),
      fc.record({ content: fc.anything(), isError: fc.anything() }, { requiredKeys: [] }),
      fc.array(fc.record({ type: fc.constantFrom('text', 'image'), text: fc.anything() })),
    )
    await fc.assert(
      fc.asyncProperty(anything, async (returned) => {
        const a = tool('a', () => returned as ToolOutput)
        const agent = await TestAgent.open({ model: scriptedModel(oneCall()), tools: [a] })
        expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
        expect(await results(agent)).toHaveLength(1)
      }),
      { numRuns: 200 },
    )
  })

  function oneCall() {
    return script().toolCall('1', 'a').step().text('done')
  }

  async function results(agent: TestAgent): Promise<unknown[]> {
    const entries = await agent.session.getContextPath()
    return entries.flatMap((entry) =>
      entry.type === 'message'
        ? entry.message.content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult.content] : []))
        : [],
    )
  }
})
