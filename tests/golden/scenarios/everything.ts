import { askUserTool, bashTool, editTool, Jobs, readTool, todoWriteTool, writeTool } from '@tapetree/agent/tools'
import { script } from '@tapetree/agent/testing'
import type { ScenarioGroup } from '../scenario.ts'
import { isQuestionAbout } from '../stage.ts'

const plan = (first: string, second: string) => ({
  items: [
    { text: 'Write the note', status: first },
    { text: 'Look at it', status: second },
  ],
})

const work = () =>
  script()
    .reasoning('First a plan.', 'signed')
    .toolCall('tool-1', 'todo_write', plan('in_progress', 'pending'))
    .step()
    .toolCall('tool-2', 'ask_user', { question: 'What is it to say?', options: [{ label: 'one' }, { label: 'two' }] })
    .step()
    .toolCall('tool-3', 'write', { path: 'note.txt', content: 'one\n' })
    .step()
    .toolCall('tool-4', 'read', { path: 'note.txt' })
    .step()
    .toolCall('tool-5', 'edit', { path: 'note.txt', oldText: 'one', newText: 'one and two' })
    .step()
    .text('Now I look at it.')
    .toolCall('tool-6', 'bash', { command: 'cp note.txt copy.txt; cat copy.txt; exit 3' })
    .toolCall('tool-7', 'todo_write', plan('completed', 'completed'))
    .usage({ inputTokens: 90, outputTokens: 10, totalTokens: 100 })
    .step()
    .text('The note is written.')
    .step()
    .error('auth', 'The key is not valid.')

export const everything: ScenarioGroup = {
  title: 'the tools of a coding agent',
  scenarios: [
    {
      name: 'everything',
      title: 'a plan, a question, a permission, files, a command, a failed run and the end of the session',
      play: async (stage) => {
        const bash = bashTool({ jobs: new Jobs() })
        const agent = await stage.open({
          script: work(),
          tools: [readTool, writeTool, editTool, bash, todoWriteTool, askUserTool],
          gate: stage.gate(),
        })
        const answers = { 'tool-2': '1', 'tool-3': 'allow_always', 'tool-6': 'allow_once' }
        for (const [callId, optionId] of Object.entries(answers)) {
          stage.when(isQuestionAbout(callId), () => stage.answer({ outcome: 'allowed', optionId }))
        }
        await agent.prompt('Write a note.')
        await agent.prompt('Thank you.')
        await agent.session.append({ type: 'session_end', sessionEnd: { reason: 'The user is done.' } })
      },
    },
  ],
}
