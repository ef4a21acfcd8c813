import { FakeClock, script, scriptedModel } from '@tapetree/agent/testing'
import { expect, vi } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { agentWith, brief, toolThat } from './agents.ts'

verifies(
  ['agent-module/agent cancel', 'agent-module/cancel in-flight', 'agent-module/cancel returns'],
  'a request that streams is cancelled: the send ends as aborted, and what was said so far stays',
  async () => {
    const clock = new FakeClock()
    const model = scriptedModel(script().text('As I was ').wait(1000).text('saying'), { clock })
    const agent = agentWith({ model })
    const told: string[] = []
    const sent = agent.ask('go', { onComplete: () => told.push('complete'), onError: () => told.push('error') })
    await clock.waited()
    await agent.abort()
    expect(await sent).toMatchObject({ outcome: 'aborted' })
    expect({ history: brief(await agent.history()), told }).toEqual({
      history: ['user: go', 'assistant: As I was '],
      told: [],
    })
  },
)

verifies(
  ['agent-module/flow cancellable', 'agent-module/cancel stops-model', 'agent-module/cancel looks-up'],
  'cancelling stops the request of the session that is named, and no other',
  async () => {
    const clock = new FakeClock()
    const model = scriptedModel([], { clock, otherwise: () => script().wait(1000).text('done') })
    const agent = agentWith({ model })
    const sent = [agent.ask('go', { sessionId: 'a' }), agent.ask('go', { sessionId: 'b' })]
    await vi.waitFor(() => expect(clock.waits).toHaveLength(2))
    await agent.abort('a')
    expect({ a: agent.isBusy('a'), b: agent.isBusy('b'), waits: clock.waits }).toEqual({
      a: false,
      b: true,
      waits: [1000],
    })
    clock.advance(1000)
    expect((await Promise.all(sent)).map(({ outcome }) => outcome)).toEqual(['aborted', 'completed'])
    expect([brief(await agent.history('a')), brief(await agent.history('b'))]).toEqual([
      ['user: go'],
      ['user: go', 'assistant: done'],
    ])
  },
)

verifies(
  ['agent-module/cancel clears', 'agent-module/cancel cleanup', 'agent-module/state active-requests'],
  'a tool at work is told to stop, its call has a result, and the session is free for the next prompt',
  async () => {
    const working = Promise.withResolvers<void>()
    let wasStopped = false
    const slow = toolThat('slow', (_, { signal }) => {
      working.resolve()
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          wasStopped = true
          resolve({ content: 'half of it', isError: true })
        })
      })
    })
    const model = scriptedModel(script().toolCall('1', 'slow').toolCall('2', 'slow').step().text('what else?'))
    const agent = agentWith({ model, tools: [slow] })
    const sent = agent.ask('go')
    await working.promise
    await agent.abort()
    expect({ outcome: (await sent).outcome, wasStopped, isBusy: agent.isBusy() }).toEqual({
      outcome: 'aborted',
      wasStopped: true,
      isBusy: false,
    })
    const results = (await agent.history())
      .flatMap(({ content }) => content)
      .filter(({ type }) => type === 'tool_result')
    expect(results.map((block) => block.type === 'tool_result' && block.toolResult.toolUseId)).toEqual(['1', '2'])
    expect(await agent.ask('never mind')).toMatchObject({ outcome: 'completed' })
    await agent.abort()
    expect(brief(await agent.history()).slice(-2)).toEqual(['user: never mind', 'assistant: what else?'])
  },
)
