import { memoryStore, SessionError } from '@tapetree/session'
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { FakeClock } from '../testing/fake-clock.ts'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import { allowAll, defineTool } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import type { ReplyEvent } from './reply.ts'

async function open(
  says: ScriptBuilder,
  { asks = false, ...options }: AgentSessionOptions & { asks?: boolean } = {},
): Promise<Opened> {
  const clock = new FakeClock()
  const model = scriptedModel(says, { clock })
  const tools = [model.tool('look')]
  const agent = await AgentSession.open({ model, tools, ...(!asks && { gate: allowAll }), ...options })
  onTestFinished(() => agent.close())
  return { agent, model, clock }
}

interface Opened {
  agent: AgentSession
  model: ScriptedModel
  clock: FakeClock
}

describe('ask', () => {
  test('resolves with the text of the last answer, and the usage and cost of all model calls', async () => {
    const { agent } = await open(
      script()
        .text('Let me look.')
        .toolCall('1', 'look')
        .usage({ inputTokens: 10, outputTokens: 5, cost: 0.25 })
        .step()
        .text('A tree.')
        .usage({ inputTokens: 20, outputTokens: 2, cost: 0.5 }),
    )
    expect(await agent.ask('What is there?')).toMatchObject({
      text: 'A tree.',
      outcome: 'completed',
      usage: { inputTokens: 30, outputTokens: 7 },
      cost: 0.75,
      runId: expect.any(String),
    })
  })

  test('resolves with the reason and the message if the run fails', async () => {
    const { agent } = await open(script().error('auth', 'The key was refused.'))
    expect(await agent.ask('Hello')).toMatchObject({
      text: '',
      outcome: 'failed',
      reason: 'auth',
      message: 'The key was refused.',
    })
  })

  test('an aborted signal ends the run', async () => {
    const { agent, clock } = await open(script().text('One ').wait(1000).text('two'))
    const controller = new AbortController()
    const asked = agent.ask('Count', { signal: controller.signal })
    await clock.waited()
    controller.abort()
    expect(await asked).toMatchObject({ outcome: 'aborted' })
    expect(agent.state().isBusy).toBe(false)
  })

  test('with a signal that is aborted already, nothing is recorded', async () => {
    const { agent, model } = await open(script().text('never'))
    expect(await agent.ask('Hello', { signal: AbortSignal.abort() })).toMatchObject({ outcome: 'aborted', runId: null })
    expect({ requests: model.requests.length, messages: agent.session.info.messageCount }).toEqual({
      requests: 0,
      messages: 0,
    })
  })

  test('during another run it rejects, or waits if it was told to', async () => {
    const { agent, clock } = await open(script().wait(1000).text('first').step().text('second'))
    const first = agent.ask('One')
    await clock.waited()
    await expect(agent.ask('Two')).rejects.toMatchObject({ code: 'session-busy' })
    const second = agent.ask('Two', { whenBusy: 'wait' })
    clock.advance(1000)
    expect([(await first).text, (await second).text]).toEqual(['first', 'second'])
  })

  test('a signal ends the wait for another run', async () => {
    const { agent, clock } = await open(script().wait(1000).text('first'))
    const first = agent.ask('One')
    await clock.waited()
    const controller = new AbortController()
    const second = agent.ask('Two', { whenBusy: 'wait', signal: controller.signal })
    controller.abort()
    expect(await second).toMatchObject({ outcome: 'aborted', runId: null })
    clock.advance(1000)
    expect((await first).text).toBe('first')
  })

  test('options of the model hold for one prompt', async () => {
    const { agent, model } = await open(script().text('a').step().text('b'))
    await agent.ask('One', { temperature: 0.1, maxOutputTokens: 50 })
    await agent.ask('Two')
    expect(model.requests.map(({ temperature, maxOutputTokens }) => ({ temperature, maxOutputTokens }))).toEqual([
      { temperature: 0.1, maxOutputTokens: 50 },
      { temperature: undefined, maxOutputTokens: undefined },
    ])
  })
})

describe('structured output', () => {
  const schema = z.object({ city: z.string(), people: z.number() })

  test('the answer is a value that fits the schema, with its type', async () => {
    const { agent, model } = await open(script().text('{"city":"Brest","people":139456}'))
    const { object } = await agent.ask('Which city?', { schema })
    expectTypeOf(object).toEqualTypeOf<{ city: string; people: number } | undefined>()
    expect(object).toEqual({ city: 'Brest', people: 139456 })
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('people')
  })

  test.each([
    ['a code fence', 'Here it is:\n```json\n{"city":"Brest","people":1}\n```'],
    ['text around it', 'I think {"city":"Brest","people":1} is right.'],
  ])('%s is tolerated', async (_, answer) => {
    const { agent } = await open(script().text(answer))
    expect((await agent.ask('Which?', { schema })).object).toEqual({ city: 'Brest', people: 1 })
  })

  test('an answer that does not fit is sent back with what is wrong, and usage counts all attempts', async () => {
    const { agent, model } = await open(
      script()
        .text('Brest')
        .usage({ outputTokens: 1 })
        .step()
        .text('{"city":"Brest","people":"many"}')
        .usage({ outputTokens: 2 })
        .step()
        .text('{"city":"Brest","people":3}')
        .usage({ outputTokens: 3 }),
    )
    expect(await agent.ask('Which?', { schema })).toMatchObject({
      object: { city: 'Brest', people: 3 },
      usage: { outputTokens: 6 },
    })
    const sentBack = model.requests.map(({ messages }) => JSON.stringify(messages.at(-1)?.content))
    expect(sentBack[1]).toContain('not a JSON value')
    expect(sentBack[2]).toContain('expected number')
  })

  test('if no answer fits, the outcome is failed and the reason tells', async () => {
    const { agent } = await open(script().text('no').step().text('no').step().text('no'))
    const reply = await agent.ask('Which?', { schema })
    expect(reply).toMatchObject({ outcome: 'failed', reason: 'invalid-object', text: 'no' })
    expect(reply.object).toBeUndefined()
  })

  test('plain JSON Schema works as well, also for a list', async () => {
    const { agent } = await open(script().text('["a","b"]'))
    const { object } = await agent.ask('Which?', { schema: { type: 'array', items: { type: 'string' } } })
    expect(object).toEqual(['a', 'b'])
  })
})

describe('stream', () => {
  test('yields text, calls and results in order, and the reply last', async () => {
    const { agent } = await open(
      script()
        .reasoning('Hm.')
        .text('Let me ', 'look.')
        .toolCall('1', 'look')
        .toolResult('1', 'a tree')
        .step()
        .text('A tree.'),
    )
    const events: ReplyEvent[] = []
    for await (const event of agent.stream('What is there?')) events.push(event)
    const types = events.map(({ type }) => type)
    expect(types.filter((type, place) => type !== types[place - 1])).toEqual([
      'reasoning_delta',
      'text_delta',
      'tool_call',
      'tool_started',
      'tool_result',
      'text_delta',
      'end',
    ])
    expect(events.at(-1)).toMatchObject({ reply: { text: 'A tree.', outcome: 'completed' } })
  })

  test('leaving the loop aborts the run', async () => {
    const { agent } = await open(script().text('One ').wait(1000).text('two'))
    for await (const event of agent.stream('Count')) if (event.type === 'text_delta') break
    expect(agent.state()).toMatchObject({ isBusy: false, openRun: null })
  })

  test('a permission request is an event, and the loop may answer it', async () => {
    const pay = defineTool({ name: 'pay', description: 'Pays.', schema: z.object({}), run: () => 'Paid.' })
    const { agent } = await open(script().toolCall('1', 'pay').step().text('done'), { asks: true, tools: [pay] })
    let asked = ''
    for await (const event of agent.stream('Look')) {
      if (event.type !== 'permission_request') continue
      asked = event.request.requestId
      await agent.answer({ requestId: asked, outcome: 'allowed', optionId: 'allow_once' })
    }
    expect(asked).not.toBe('')
  })

  test('yields nothing of a run that it waits for, or of a queued message that starts after it', async () => {
    const { agent, clock } = await open(script().text('1').wait(1000).text('1').step().text('2').step().text('3'))
    const first = agent.ask('One')
    await clock.waited()
    let text = ''
    let heard = ''
    const streamed = (async () => {
      const onTextDelta = (delta: string): void => void (heard += delta)
      for await (const event of agent.stream('Two', { whenBusy: 'wait', onTextDelta })) {
        if (event.type === 'text_delta') text += event.text
        if (event.type === 'text_delta') await agent.followUp('Three')
      }
    })()
    clock.advance(1000)
    await Promise.all([first, streamed])
    expect({ text, heard }).toEqual({ text: '2', heard: '2' })
    expect(agent.session.info.messageCount).toBe(6)
  })

  test('rejects if no run starts', async () => {
    const { agent } = await open(script())
    await expect(agent.stream(' ').next()).rejects.toMatchObject({ code: 'empty-prompt' })
  })
})

describe('opening', () => {
  test('with `create`, a session is created once and opened after that', async () => {
    const store = memoryStore()
    for (const text of ['one', 'two']) {
      const { agent } = await open(script().text(text), { store, sessionId: 'customer-7', create: true })
      await agent.ask(text)
      await agent.close()
    }
    await using session = await store.open('customer-7')
    expect(session.info.messageCount).toBe(4)
  })

  test('without `create`, a missing session is an error', async () => {
    await expect(open(script(), { store: memoryStore(), sessionId: 'missing' })).rejects.toThrow(SessionError)
  })

  test('values and functions are the same options', async () => {
    const { agent, model } = await open(script().text('a'), {
      systemPrompt: 'Be brief.',
      settings: { temperature: 0.3 },
    })
    await agent.ask('Hi')
    expect(model.requests[0]).toMatchObject({ system: 'Be brief.', temperature: 0.3 })
  })

  test('without a model it says what to pass', async () => {
    await expect(AgentSession.open({})).rejects.toThrow('A session needs a model. Pass `model`')
  })
})

test('untilIdle resolves when the run and the runs of queued messages have ended', async () => {
  const { agent, clock } = await open(script().wait(1000).text('one').step().text('two'))
  await agent.prompt('One')
  await agent.followUp('Two')
  await clock.waited()
  const idle = agent.untilIdle().then(() => agent.session.info.messageCount)
  clock.advance(1000)
  expect(await idle).toBe(4)
})
