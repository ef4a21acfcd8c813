import { script } from '@tapetree/agent/testing'
import type { ScenarioGroup } from '../scenario.ts'
import { tool } from '../tool.ts'

const usage = { inputTokens: 90, outputTokens: 10, totalTokens: 100 }

/** The rows of the table in section 11 of the refactoring specification. */
export const specTable: ScenarioGroup = {
  title: 'what the specification has golden tests for',
  scenarios: [
    {
      name: 'cancel-mid-tool-call',
      title: 'a cancel in the middle of a tool call answers the call and ends the answer as aborted',
      play: async (stage) => {
        const agent = await stage.open({ script: script().toolStart('tool-1', 'bash').cancel(), tools: [tool('bash')] })
        await agent.prompt('Run the tests.')
      },
    },
    {
      name: 'tool-failure',
      title: 'the result of a tool that failed is kept as an error, and the model goes on',
      play: async (stage) => {
        const bash = tool('bash', () => ({ content: 'exit code 1', isError: true }))
        const calls = script().text('I run them.').toolCall('tool-1', 'bash', { command: 'npm test' })
        const agent = await stage.open({ script: calls.step().text('They fail.'), tools: [bash] })
        await agent.prompt('Run the tests.')
      },
    },
    {
      name: 'provider-error',
      title: 'an error of the provider ends the run with its kind and its words',
      play: async (stage) => {
        const agent = await stage.open({ script: script().text('I r').error('auth', 'The key is not valid.') })
        await agent.prompt('Run the tests.')
      },
    },
    {
      name: 'normal-completion',
      title: 'text streams in and the run completes',
      play: async (stage) => {
        const agent = await stage.open({ script: script().text('Hel', 'lo ', 'there.').usage(usage).finish('stop') })
        await agent.prompt('Hi.')
      },
    },
    {
      name: 'reasoning-then-response',
      title: 'reasoning is kept before the response it led to',
      play: async (stage) => {
        const thinking = script().reasoningStart().reasoningDelta('They greet ').reasoningDelta('me.')
        const agent = await stage.open({ script: thinking.reasoningEnd('signed').text('Hello.').finish('stop') })
        await agent.prompt('Hi.')
      },
    },
    {
      name: 'multi-step-tool-use',
      title: 'several steps of tool use make answers and results that follow one another',
      play: async (stage) => {
        const steps = script()
          .text('First the list.')
          .toolCall('tool-1', 'ls', { path: '.' })
          .usage(usage)
          .finish('tool-calls')
          .step()
          .toolStart('tool-2', 'read')
          .toolInput('{"path":')
          .toolInput('"a"}')
          .toolCall('tool-2', 'read', { path: 'a' })
          .toolCall('tool-3', 'read', { path: 'b' })
          .usage(usage)
          .step()
          .text('Both are empty.')
          .usage(usage)
        const agent = await stage.open({ script: steps, tools: [tool('ls'), tool('read')] })
        await agent.prompt('What is in here?')
      },
    },
    {
      name: 'cancel-during-reasoning',
      title: 'a cancel during reasoning keeps what was thought',
      play: async (stage) => {
        const agent = await stage.open({ script: script().reasoningStart().reasoningDelta('They greet ').cancel() })
        await agent.prompt('Hi.')
      },
    },
  ],
}
