import { defaultRetry } from '@tapetree/agent/run'
import { script, type ScriptBuilder } from '@tapetree/agent/testing'
import type { ScenarioGroup } from '../scenario.ts'

/** Waits that can be told beforehand. */
export const steadyRetry = { ...defaultRetry, jitter: 0 }

const story = 'The mill had three wheels, and each of them turned another way. '

/** A conversation that is worth a summary. */
export function conversation(): ScriptBuilder {
  return script().text(story.repeat(8)).step().text(story.repeat(2)).step()
}

export const modelFailures: ScenarioGroup = {
  title: 'model calls that fail',
  scenarios: [
    {
      name: 'retry-then-success',
      title: 'a call that fails in passing is made again after a wait, and what it had said lies beside the path',
      play: async (stage) => {
        const calls = script()
          .text('Hel')
          .error('network', 'The connection was cut.')
          .step()
          .error('overloaded', 'Busy.')
        const agent = await stage.open({ script: calls.step().text('Hello.'), settings: { retry: steadyRetry } })
        const run = agent.prompt('Hi.')
        await stage.clock.skip()
        await stage.clock.skip()
        await run
      },
    },
    {
      name: 'retries-exhausted',
      title: 'after three retries the run fails and says why; it can be tried again from there',
      play: async (stage) => {
        const calls = script()
        for (let call = 1; call <= 4; call++) calls.error('overloaded', `Busy, call ${call}.`).step()
        const agent = await stage.open({ script: calls.text('Hello.'), settings: { retry: steadyRetry } })
        const run = agent.prompt('Hi.')
        for (let retry = 1; retry <= 3; retry++) await stage.clock.skip()
        await run
        await agent.run({ type: 'leaf' })
      },
    },
    {
      name: 'failed-call-with-usage',
      title: 'what a failed call has used is kept, so that the cost is whole',
      play: async (stage) => {
        const used = { inputTokens: 50, outputTokens: 5, totalTokens: 55 }
        const calls = script().text('Hel').usage(used).error('network', 'The connection was cut.').step().text('Hello.')
        const agent = await stage.open({
          script: calls,
          model: { costOf: ({ totalTokens = 0 }) => totalTokens / 1000 },
          settings: { retry: steadyRetry },
        })
        const run = agent.prompt('Hi.')
        await stage.clock.skip()
        await run
      },
    },
    {
      name: 'overflow-then-compaction-then-success',
      title: 'a context that does not fit is compacted, and the request is sent again',
      play: async (stage) => {
        const calls = conversation().error('context-overflow', 'The prompt is too long.')
        const agent = await stage.open({ script: calls.step().text('A mill, three wheels.').step().text('Three.') })
        await agent.prompt('Tell me of the mill.')
        await agent.prompt('Go on.')
        await agent.prompt('How many wheels?')
      },
    },
    {
      name: 'threshold-compaction',
      title: 'a context that has nearly filled the window is compacted before the next request',
      play: async (stage) => {
        const nearlyFull = { inputTokens: 190_000, outputTokens: 100, totalTokens: 190_100 }
        const calls = script().text(story.repeat(8)).step().text(story.repeat(2)).usage(nearlyFull).step()
        const summary = calls
          .text('A mill, three wheels.')
          .usage({ inputTokens: 300, outputTokens: 20, totalTokens: 320 })
        const agent = await stage.open({ script: summary.step().text('Three.') })
        await agent.prompt('Tell me of the mill.')
        await agent.prompt('Go on.')
        await agent.prompt('How many wheels?')
      },
    },
    {
      name: 'compaction-frees-nothing',
      title: 'a summary as long as what it stands for is not used, and the run fails with the overflow',
      play: async (stage) => {
        const calls = conversation().error('context-overflow', 'The prompt is too long.')
        const agent = await stage.open({ script: calls.step().text(story.repeat(12)) })
        await agent.prompt('Tell me of the mill.')
        await agent.prompt('Go on.')
        await agent.prompt('How many wheels?')
      },
    },
    {
      name: 'nothing-to-compact',
      title: 'an overflow with nothing to cut off fails without asking for a summary',
      play: async (stage) => {
        const agent = await stage.open({ script: script().error('context-overflow', 'The prompt is too long.') })
        await agent.prompt(story)
      },
    },
    {
      name: 'overflow-twice',
      title: 'a context that does not fit after it was compacted either fails the run',
      play: async (stage) => {
        const calls = conversation()
          .error('context-overflow', 'The prompt is too long.')
          .step()
          .text('A mill, three wheels.')
        const agent = await stage.open({
          script: calls.step().error('context-overflow', 'The prompt is still too long.'),
        })
        await agent.prompt('Tell me of the mill.')
        await agent.prompt('Go on.')
        await agent.prompt('How many wheels?')
      },
    },
  ],
}
