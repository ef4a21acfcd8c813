import { script } from '@tapetree/agent/testing'
import { askingGate } from '../asking-gate.ts'
import type { ScenarioGroup } from '../scenario.ts'
import { isQuestion, isResult } from '../stage.ts'
import { never, stopped, tool } from '../tool.ts'
import { conversation, steadyRetry } from './model-failures.ts'

const twoCalls = () =>
  script().toolCall('tool-1', 'bash', { command: 'a' }).toolCall('tool-2', 'bash', { command: 'b' })

export const aborts: ScenarioGroup = {
  title: 'an abort in each phase',
  scenarios: [
    {
      name: 'abort-before-first-token',
      title: 'before the first token: the answer is empty and says that it was aborted',
      play: async (stage) => {
        const agent = await stage.open({ script: script().cancel() })
        await agent.prompt('Hi.')
      },
    },
    {
      name: 'abort-in-text',
      title: 'in text: what was said stays, and the next prompt goes on from it',
      play: async (stage) => {
        const agent = await stage.open({
          script: script().text('Once upon ', 'a ').cancel().step().text('Never mind.'),
        })
        await agent.prompt('Tell me a story.')
        await agent.prompt('Another one.')
      },
    },
    {
      name: 'abort-in-reasoning',
      title: 'in reasoning after a call: what was thought stays beside what was done',
      play: async (stage) => {
        const calls = script().reasoning('I look.', 'signed').toolCall('tool-1', 'bash', { command: 'ls' }).step()
        const agent = await stage.open({
          script: calls.reasoningStart().reasoningDelta('So th').cancel(),
          tools: [tool('bash')],
        })
        await agent.prompt('Look around.')
      },
    },
    {
      name: 'abort-in-tool-input',
      title: 'in tool input: the whole call and the half one are both answered, and neither is run',
      play: async (stage) => {
        const calls = script()
          .text('I do both.')
          .toolCall('tool-1', 'bash', { command: 'a' })
          .toolStart('tool-2', 'bash')
        const agent = await stage.open({ script: calls.toolInput('{"comm').cancel(), tools: [tool('bash')] })
        await agent.prompt('Do both.')
      },
    },
    {
      name: 'abort-while-asking',
      title: 'while asking permission: the question is withdrawn and no call is run',
      play: async (stage) => {
        const agent = await stage.open({ script: twoCalls(), tools: [tool('bash')], gate: askingGate })
        stage.when(isQuestion, () => agent.abort())
        await agent.prompt('Do both.')
      },
    },
    {
      name: 'abort-while-a-tool-runs',
      title: 'while a tool runs: it is told to stop and says how far it came; the next call is not run',
      play: async (stage) => {
        const bash = tool('bash', async (context) => {
          stage.agent.abort()
          await stopped(context)
          return { content: 'stopped after 3 of 10 files', isError: true }
        })
        const agent = await stage.open({ script: twoCalls(), tools: [bash] })
        await agent.prompt('Do both.')
      },
    },
    {
      name: 'abort-of-a-deaf-tool',
      title: 'while a tool runs that does not listen: it is given up after five seconds',
      play: async (stage) => {
        const bash = tool('bash', () => {
          stage.agent.abort()
          return never()
        })
        const agent = await stage.open({ script: twoCalls(), tools: [bash] })
        const run = agent.prompt('Do both.')
        await stage.waits(5000)
        stage.clock.advance(5000)
        await run
      },
    },
    {
      name: 'abort-between-two-calls',
      title: 'between two calls: the first has its result, the second is not run',
      play: async (stage) => {
        const agent = await stage.open({ script: twoCalls(), tools: [tool('bash')] })
        stage.when(isResult, () => agent.abort())
        await agent.prompt('Do both.')
      },
    },
    {
      name: 'abort-while-waiting-for-a-retry',
      title: 'while waiting for a retry: there is no retry',
      play: async (stage) => {
        const calls = script().text('Hel').error('network', 'The connection was cut.')
        const agent = await stage.open({ script: calls, settings: { retry: steadyRetry } })
        const run = agent.prompt('Hi.')
        await stage.clock.waited()
        agent.abort()
        await run
      },
    },
    {
      name: 'abort-while-compacting',
      title: 'while compacting after an overflow: the context stays as it was',
      play: async (stage) => {
        const calls = conversation()
          .error('context-overflow', 'The prompt is too long.')
          .step()
          .text('A mill, th')
          .cancel()
        const agent = await stage.open({ script: calls })
        await agent.prompt('Tell me of the mill.')
        await agent.prompt('Go on.')
        await agent.prompt('How many wheels?')
      },
    },
    {
      name: 'abort-while-compacting-at-the-threshold',
      title: 'while compacting before a request: neither is made',
      play: async (stage) => {
        const nearlyFull = { inputTokens: 190_000, outputTokens: 100, totalTokens: 190_100 }
        const calls = conversation().text('On it went.').usage(nearlyFull).step().text('A mill, th').cancel()
        const agent = await stage.open({ script: calls })
        await agent.prompt('Tell me of the mill.')
        await agent.prompt('Go on.')
        await agent.prompt('And on.')
        await agent.prompt('How many wheels?')
      },
    },
  ],
}
