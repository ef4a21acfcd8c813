import type { SteerPolicy } from '@tapetree/agent/run'
import { script } from '@tapetree/agent/testing'
import type { Scenario, ScenarioGroup } from '../scenario.ts'
import { isAnswer } from '../stage.ts'
import { stopped, tool } from '../tool.ts'

export const waitingMessages: ScenarioGroup = {
  title: 'messages that come while the agent works',
  scenarios: [
    steered('skip-remaining', 'a steer during the first of three calls skips the two that have not started'),
    steered('after-batch', 'a steer during the first of three calls waits for all of them under `after-batch`'),
    steered('interrupt', 'a steer during the first of three calls stops it and skips the others under `interrupt`'),
    {
      name: 'steer-in-the-last-words',
      title: 'a steer that comes while the model says its last words is heard in the same run',
      play: async (stage) => {
        const steer = () => stage.session.submit('And the docs?', { delivery: 'steer' })
        const agent = await stage.open({ script: script().text('Done.').do(steer).step().text('Those too.') })
        await agent.prompt('Mend the tests.')
      },
    },
    {
      name: 'steer-too-late',
      title: 'a steer that comes too late for its run begins one of its own, before the follow-ups',
      play: async (stage) => {
        const agent = await stage.open({
          script: script().text('Done.').step().text('Those too.').step().text('Good.'),
        })
        await agent.session.submit('Then rest.')
        stage.when(isAnswer, () => agent.session.submit('And the docs?', { delivery: 'steer' }))
        await agent.prompt('Mend the tests.')
      },
    },
    {
      name: 'follow-up-after-natural-end',
      title: 'follow-ups are runs of their own, one after the other, once the first run has ended by itself',
      play: async (stage) => {
        const submit = async () => {
          await stage.session.submit('Then mend the docs.')
          await stage.session.submit('Then rest.')
        }
        const answers = script()
          .text('Tests are mended.')
          .do(submit)
          .step()
          .text('Docs are mended.')
          .step()
          .text('Good.')
        const agent = await stage.open({ script: answers })
        await agent.prompt('Mend the tests.')
      },
    },
    {
      name: 'follow-up-held-after-failure',
      title: 'after a run that failed a follow-up is held, and goes out after the next prompt',
      play: async (stage) => {
        const answers = script()
          .error('auth', 'The key is not valid.')
          .step()
          .text('Yes.')
          .step()
          .text('Docs are mended.')
        const agent = await stage.open({ script: answers })
        await agent.session.submit('Then mend the docs.')
        await agent.prompt('Mend the tests.')
        await agent.prompt('Is it better now?')
      },
    },
  ],
}

function steered(steerPolicy: SteerPolicy, title: string): Scenario {
  return {
    name: `steer-${steerPolicy}`,
    title,
    play: async (stage) => {
      const bash = tool('bash', async (context) => {
        if (context.callId === 'tool-1') await stage.session.submit('Leave the docs.', { delivery: 'steer' })
        if (context.callId === 'tool-1' && steerPolicy === 'interrupt') {
          await stopped(context)
          return { content: 'stopped after 3 of 10 files', isError: true }
        }
        return { content: `${context.callId} is done` }
      })
      const calls = script()
        .toolCall('tool-1', 'bash', { command: 'mend tests' })
        .toolCall('tool-2', 'bash', { command: 'mend docs' })
        .toolCall('tool-3', 'bash', { command: 'mend the rest' })
      const agent = await stage.open({
        script: calls.step().text('I leave them.'),
        tools: [bash],
        settings: { steerPolicy },
      })
      await agent.prompt('Mend everything.')
    },
  }
}
