import { askUserTool } from '@tapetree/agent/tools'
import { script } from '@tapetree/agent/testing'
import { askingGate } from '../asking-gate.ts'
import type { ScenarioGroup } from '../scenario.ts'
import { isQuestion, isQuestionAbout } from '../stage.ts'
import { tool } from '../tool.ts'

const oneCall = () => script().toolCall('tool-1', 'bash', { command: 'rm -r dist' }).step().text('I see.')

export const questions: ScenarioGroup = {
  title: 'permissions and questions',
  scenarios: [
    {
      name: 'permission-denied',
      title: 'a call that a rule denies is answered with the reason, and never starts',
      play: async (stage) => {
        const gate = stage.gate({ effect: 'deny', type: 'tool', match: 'bash' })
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash')], gate })
        await agent.prompt('Clean up.')
      },
    },
    {
      name: 'permission-rejected',
      title: 'a call that the user says no to is answered with that, and never starts',
      play: async (stage) => {
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash')], gate: askingGate })
        stage.when(isQuestion, () => stage.answer({ outcome: 'rejected', optionId: 'no', clientId: 'phone' }))
        await agent.prompt('Clean up.')
      },
    },
    {
      name: 'permission-allowed',
      title: 'a call that the user says yes to is run, and a later answer changes nothing',
      play: async (stage) => {
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash')], gate: askingGate })
        stage.when(isQuestion, async () => {
          const [asked] = agent.requests.pending
          await stage.answer({ outcome: 'allowed', optionId: 'yes', clientId: 'phone' })
          await agent.requests.answer({ requestId: asked?.requestId ?? '', outcome: 'rejected', clientId: 'desk' })
        })
        await agent.prompt('Clean up.')
      },
    },
    {
      name: 'two-permissions-at-once',
      title: 'two calls side by side ask at once, and are answered in any order',
      play: async (stage) => {
        const calls = script().toolCall('tool-1', 'read', { path: 'a' }).toolCall('tool-2', 'read', { path: 'b' })
        const read = tool('read', undefined, { readOnly: true })
        const agent = await stage.open({ script: calls.step().text('I see.'), tools: [read], gate: askingGate })
        const answerBoth = async (): Promise<void> => {
          const [first, second] = agent.requests.pending
          await agent.requests.answer({ requestId: second?.requestId ?? '', outcome: 'allowed', optionId: 'yes' })
          await agent.requests.answer({ requestId: first?.requestId ?? '', outcome: 'rejected', optionId: 'no' })
        }
        stage.when(isQuestionAbout('tool-2'), answerBoth)
        await agent.prompt('Read both.')
      },
    },
    {
      name: 'steer-while-asking',
      title: 'a steer while permission is asked withdraws the question, and the call is not run',
      play: async (stage) => {
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash')], gate: askingGate })
        stage.when(isQuestion, () => agent.session.submit('Leave it.', { delivery: 'steer' }))
        await agent.prompt('Clean up.')
      },
    },
    {
      name: 'question-answered',
      title: 'a question to the user is a record, and its answer is the result of the call',
      play: async (stage) => {
        const options = [{ label: 'dist' }, { label: 'everything', description: 'node_modules as well' }]
        const calls = script().toolCall('tool-1', 'ask_user', { question: 'What is to go?', options }).step()
        const again = calls.toolCall('tool-2', 'ask_user', { question: 'Why?' }).step().text('I see.')
        const agent = await stage.open({ script: again, tools: [askUserTool] })
        stage.when(isQuestionAbout('tool-1'), () => stage.answer({ outcome: 'allowed', optionId: '2' }))
        stage.when(isQuestionAbout('tool-2'), () => stage.answer({ outcome: 'allowed', text: 'It is old.' }))
        await agent.prompt('Clean up.')
      },
    },
    {
      name: 'question-not-answered',
      title: 'a question that the user waves away is told to the model as that',
      play: async (stage) => {
        const calls = script()
          .toolCall('tool-1', 'ask_user', { question: 'What is to go?' })
          .step()
          .text('I leave it all.')
        const agent = await stage.open({ script: calls, tools: [askUserTool] })
        stage.when(isQuestion, () => stage.answer({ outcome: 'cancelled' }))
        await agent.prompt('Clean up.')
      },
    },
  ],
}
