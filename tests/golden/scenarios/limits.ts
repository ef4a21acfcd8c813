import type { Limits } from '@tapetree/agent/run'
import { script } from '@tapetree/agent/testing'
import type { Scenario, ScenarioGroup } from '../scenario.ts'
import { tool } from '../tool.ts'
import { steadyRetry } from './model-failures.ts'

const usage = { inputTokens: 90, outputTokens: 10, totalTokens: 100, cost: 0.5 }

const names: Record<keyof Limits, string> = {
  turns: 'turns',
  toolCalls: 'tool calls',
  tokens: 'tokens',
  cost: 'cost',
  wallMs: 'wall time',
  logBytesPerTurn: 'log growth',
}

export const limits: ScenarioGroup = {
  title: 'a limit ends the run with every call answered, and the run goes on when it is raised',
  scenarios: [
    limited('run', 'turns', 1),
    limited('run', 'toolCalls', 1),
    limited('run', 'tokens', 100),
    limited('run', 'cost', 0.5),
    limited('run', 'wallMs', 1000),
    limited('run', 'logBytesPerTurn', 1500),
    // An earlier run has used two turns, one call, two answers' tokens and a second.
    limited('session', 'turns', 3),
    limited('session', 'toolCalls', 2),
    limited('session', 'tokens', 300),
    limited('session', 'cost', 1.5),
    limited('session', 'wallMs', 2000),
    limited('session', 'logBytesPerTurn', 1500),
    {
      name: 'limit-counts-failed-calls',
      title: 'of tokens, when a model call that failed has used them',
      play: async (stage) => {
        const calls = script()
          .text('Hel')
          .usage(usage)
          .error('network', 'The connection was cut.')
          .step()
          .text('Hello.')
        const agent = await stage.open({ script: calls, settings: { runLimits: { tokens: 100 }, retry: steadyRetry } })
        const run = agent.prompt('Hi.')
        await stage.clock.skip()
        await run
        agent.deps.settings = { ...agent.deps.settings, runLimits: {} }
        await agent.run({ type: 'leaf' })
      },
    },
  ],
}

function limited(scope: 'run' | 'session', limit: keyof Limits, value: number): Scenario {
  const name = names[limit]
  return {
    name: `limit-${scope}-${name.replaceAll(' ', '-')}`,
    title: scope === 'run' ? `of ${name} in a run` : `of ${name} in the session, earlier runs included`,
    play: async (stage) => {
      const bash = tool('bash', ({ callId }) => {
        stage.clock.advance(1000)
        return { content: callId === 'tool-0' ? 'short' : 'long '.repeat(160) }
      })
      const earlier = script().toolCall('tool-0', 'bash').usage(usage).step().text('Ready.').usage(usage).step()
      const calls = scope === 'session' ? earlier : script()
      const agent = await stage.open({
        script: calls
          .toolCall('tool-1', 'bash')
          .toolCall('tool-2', 'bash')
          .usage(usage)
          .step()
          .text('Done.')
          .usage(usage),
        tools: [bash],
        settings: { [`${scope}Limits`]: { [limit]: value } },
      })
      if (scope === 'session') await agent.prompt('Get ready.')
      await agent.prompt('Run both.')
      agent.deps.settings = { ...agent.deps.settings, [`${scope}Limits`]: {} }
      await agent.run({ type: 'leaf' })
    },
  }
}
