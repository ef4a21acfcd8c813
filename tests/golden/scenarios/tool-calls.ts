import { askUserTool } from '@tapetree/agent/tools'
import { script } from '@tapetree/agent/testing'
import type { ScenarioGroup } from '../scenario.ts'
import { isResult } from '../stage.ts'
import { never, tool } from '../tool.ts'

const oneCall = () => script().toolCall('tool-1', 'bash', { command: 'a' }).step().text('I see.')

export const toolCalls: ScenarioGroup = {
  title: 'tool calls',
  scenarios: [
    {
      name: 'parallel-read-only-calls',
      title:
        'calls that only read run side by side, each result is kept when it is there, and a call that writes waits',
      play: async (stage) => {
        const slow = Promise.withResolvers<void>()
        const read = tool(
          'read',
          async ({ callId }) => {
            if (callId === 'tool-1') await slow.promise
            return { content: `${callId} was read` }
          },
          { readOnly: true },
        )
        const calls = script()
          .toolCall('tool-1', 'read', { path: 'a' })
          .toolCall('tool-2', 'read', { path: 'b' })
          .toolCall('tool-3', 'write', { path: 'c' })
        const agent = await stage.open({ script: calls.step().text('Done.'), tools: [read, tool('write')] })
        stage.when(isResult, () => slow.resolve())
        await agent.prompt('Put a and b into c.')
      },
    },
    {
      name: 'unknown-tool',
      title: 'a call of a tool that does not exist is answered with those that do',
      play: async (stage) => {
        const agent = await stage.open({ script: oneCall(), tools: [tool('read'), tool('write')] })
        await agent.prompt('Run it.')
      },
    },
    {
      name: 'invalid-arguments',
      title: 'arguments that do not fit the schema are answered with what is wrong with them',
      play: async (stage) => {
        const calls = script().toolCall('tool-1', 'ask_user', { question: 1 }).step().text('I see.')
        const agent = await stage.open({ script: calls, tools: [askUserTool] })
        await agent.prompt('Ask me.')
      },
    },
    {
      name: 'truncated-tool-input',
      title: 'a call whose input was cut off stays beside the path; the model is told and calls again',
      play: async (stage) => {
        const calls = script().toolCall('tool-1', 'bash', '{"command":"echo ').finish('length').step()
        const agent = await stage.open({
          script: calls.toolCall('tool-2', 'bash', { command: 'echo' }).step().text('Done.'),
          tools: [tool('bash')],
        })
        await agent.prompt('Run it.')
      },
    },
    {
      name: 'truncated-tool-input-twice',
      title: 'a call whose input is cut off once more ends the run',
      play: async (stage) => {
        const cutOff = script().toolCall('tool-1', 'bash', '{"command":"echo ').finish('length').step()
        const agent = await stage.open({
          script: cutOff.toolCall('tool-2', 'bash', '{"command":"echo ').finish('length'),
          tools: [tool('bash')],
        })
        await agent.prompt('Run it.')
      },
    },
    {
      name: 'tool-throws',
      title: 'a tool that throws has failed, and the run goes on',
      play: async (stage) => {
        const bash = tool('bash', () => {
          throw new Error('There is no shell.')
        })
        const agent = await stage.open({ script: oneCall(), tools: [bash] })
        await agent.prompt('Run it.')
      },
    },
    {
      name: 'tool-cannot-judge',
      title: 'a tool that cannot tell what a call would touch has failed, and never starts',
      play: async (stage) => {
        const access = () => {
          throw new Error('The folder cannot be entered.')
        }
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash', undefined, { access })] })
        await agent.prompt('Run it.')
      },
    },
    {
      name: 'tool-cannot-start',
      title: 'a tool that cannot prepare its start has failed, and never starts',
      play: async (stage) => {
        const start = () => Promise.reject(new Error('There is no room for its output.'))
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash', undefined, { start })] })
        await agent.prompt('Run it.')
      },
    },
    {
      name: 'tool-cannot-clean-up',
      title: 'a tool that cannot clean up after its result is there does not end the run',
      play: async (stage) => {
        const settled = () => Promise.reject(new Error('The spool is busy.'))
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash', undefined, { settled })] })
        await agent.prompt('Run it.')
      },
    },
    {
      name: 'tool-never-returns',
      title: 'a tool that never returns is given up after its deadline, and the run goes on',
      play: async (stage) => {
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash', never, { deadlineMs: 60_000 })] })
        const run = agent.prompt('Run it.')
        await stage.clock.skip()
        await stage.clock.skip()
        await run
      },
    },
    {
      name: 'repeating-equal-calls',
      title: 'a call that is made again and again with the same result is refused, and then the run is stopped',
      play: async (stage) => {
        const calls = script()
        for (let call = 1; call <= 6; call++) calls.toolCall(`tool-${call}`, 'bash', { command: 'ls' }).step()
        const bash = tool('bash', () => ({ content: 'nothing' }))
        const agent = await stage.open({ script: calls, tools: [bash] })
        await agent.prompt('Look around.')
      },
    },
    {
      name: 'repeating-calls-of-an-unknown-tool',
      title: 'calling a tool that does not exist again and again is stopped as well',
      play: async (stage) => {
        const calls = script()
        for (let call = 1; call <= 6; call++) calls.toolCall(`tool-${call}`, 'bash', { command: 'ls' }).step()
        const agent = await stage.open({ script: calls, tools: [tool('read')] })
        await agent.prompt('Look around.')
      },
    },
  ],
}
