import { abandonRun } from '@tapetree/agent/run'
import { askUserTool } from '@tapetree/agent/tools'
import { script } from '@tapetree/agent/testing'
import type { Line } from '@tapetree/session/format'
import { askingGate } from '../asking-gate.ts'
import type { ScenarioGroup } from '../scenario.ts'
import { isAnswer, isQuestion, isResult, type Stage } from '../stage.ts'
import { tool } from '../tool.ts'

const oneCall = () => script().text('I do it.').toolCall('tool-1', 'bash', { command: 'a' })
const twoCalls = () => oneCall().toolCall('tool-2', 'bash', { command: 'b' })
const goesOn = () => script().text('I see.')

export const crashes: ScenarioGroup = {
  title: 'the process dies and another one goes on',
  scenarios: [
    {
      name: 'resume-unanswered-message',
      title: 'a message without its answer is answered',
      play: async (stage) => {
        const agent = await stage.open({ script: script().do(() => stage.die()) })
        await stage.crash(agent.prompt('Hi.'))
        await stage.resume({ script: goesOn() })
      },
    },
    {
      name: 'resume-message-before-its-run',
      title: 'a message whose run had not begun is answered in a run of its own',
      play: async (stage) => {
        const agent = await stage.open({ script: script() })
        stage.dieWhen(isPrompt)
        await stage.crash(agent.prompt('Hi.'))
        stage.tearLastWrite((line) => line.includes('"Hi."'))
        await stage.resume({ script: goesOn() })
      },
    },
    {
      name: 'resume-draft',
      title: 'what an answer had said becomes an attempt, and the request is sent again',
      play: async (stage) => {
        const drafted = () => stage.untilDrafted('lo')
        const agent = await stage.open({
          script: script()
            .reasoning('They greet me.')
            .text('Hel', 'lo')
            .do(drafted)
            .do(() => stage.die()),
        })
        await stage.crash(agent.prompt('Hi.'))
        await stage.resume({ script: script().text('Hello there.') })
      },
    },
    {
      name: 'resume-call-not-started',
      title: 'a call that had not started passes the gate and is run',
      play: async (stage) => {
        const agent = await stage.open({ script: twoCalls(), tools: [tool('bash')] })
        stage.dieWhen(isAnswer)
        await stage.crash(agent.prompt('Do both.'))
        await stage.resume({ script: goesOn(), tools: [tool('bash')] })
      },
    },
    {
      name: 'resume-command',
      title: 'a command goes on without us: it is asked for its outcome and not run again',
      play: async (stage) => {
        const bash = tool('bash', () => stage.die(), {
          replay: 'reattach',
          start: () => ({ host: 'here', bootId: 'now', spool: 'spool/1', deadline: '2026-01-01T00:30:00.000Z' }),
          reattach: async ({ spool }) => ({ content: `exit code 3, says ${spool}`, isError: true }),
        })
        const agent = await stage.open({ script: oneCall(), tools: [bash] })
        await stage.crash(agent.prompt('Do it.'))
        await stage.resume({ script: goesOn(), tools: [bash] })
      },
    },
    {
      name: 'resume-safe-call',
      title: 'a call that does no harm twice is run again',
      play: async (stage) => {
        const agent = await stage.open({
          script: oneCall(),
          tools: [tool('bash', () => stage.die(), { replay: 'safe' })],
        })
        await stage.crash(agent.prompt('Do it.'))
        await stage.resume({ script: goesOn(), tools: [tool('bash', undefined, { replay: 'safe' })] })
      },
    },
    {
      name: 'resume-interrupted-call',
      title: 'any other call that had started is not run again, and the model is told that it may have taken effect',
      play: async (stage) => {
        const agent = await stage.open({ script: twoCalls(), tools: [tool('bash', () => stage.die())] })
        await stage.crash(agent.prompt('Do both.'))
        await stage.resume({ script: goesOn(), tools: [tool('bash')] })
      },
    },
    {
      name: 'resume-pending-permission',
      title: 'a permission that was asked is still asked: there is no second record, and its answer counts',
      play: async (stage) => {
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash')], gate: askingGate })
        stage.dieWhen(isQuestion)
        await stage.crash(agent.prompt('Do it.'))
        await stage.resume({ script: goesOn(), tools: [tool('bash')], gate: answeredGate(stage) })
      },
    },
    {
      name: 'resume-pending-question',
      title: 'a question to the user that was asked is still asked, and its answer is the result of the call',
      play: async (stage) => {
        const calls = script().toolCall('tool-1', 'ask_user', { question: 'Which one?', options: [{ label: 'this' }] })
        const agent = await stage.open({ script: calls, tools: [askUserTool] })
        stage.dieWhen(isQuestion)
        await stage.crash(agent.prompt('Take one.'))
        const { requests } = await stage.open({ script: goesOn(), tools: [askUserTool] })
        const [asked] = requests.pending
        stage.when(isRunStart, () =>
          requests.answer({ requestId: asked?.requestId ?? '', outcome: 'allowed', optionId: '1' }),
        )
        await stage.resumeHere()
      },
    },
    {
      name: 'resume-pending-permission-steered',
      title: 'a permission that was asked for a call that a steer then skips is withdrawn',
      play: async (stage) => {
        const agent = await stage.open({ script: oneCall(), tools: [tool('bash')], gate: askingGate })
        stage.dieWhen(isQuestion)
        await stage.crash(agent.prompt('Do it.'))
        const { session } = await stage.open({ script: goesOn(), tools: [tool('bash')], gate: askingGate })
        await session.submit('Leave it.', { delivery: 'steer' })
        await stage.resumeHere()
      },
    },
    {
      name: 'resume-two-parallel-calls',
      title: 'of two calls side by side the result that was there is kept, and only the other is made up for',
      play: async (stage) => {
        const read = tool('read', ({ callId }) => (callId === 'tool-1' ? stage.dead : { content: 'b' }), {
          readOnly: true,
          replay: 'safe',
        })
        const calls = script().toolCall('tool-1', 'read', { path: 'a' }).toolCall('tool-2', 'read', { path: 'b' })
        const agent = await stage.open({ script: calls, tools: [read] })
        stage.dieWhen(isResult)
        await stage.crash(agent.prompt('Read both.'))
        const again = tool('read', ({ callId }) => ({ content: `${callId} again` }), { readOnly: true, replay: 'safe' })
        await stage.resume({ script: goesOn(), tools: [again] })
      },
    },
    {
      name: 'resume-with-waiting-messages',
      title: 'messages that waited are delivered once and in order: the steer in the run, the follow-ups after it',
      play: async (stage) => {
        const submit = async () => {
          await stage.session.submit('Then the docs.')
          await stage.session.submit('Then rest.')
          await stage.session.submit('Only the fast ones.', { delivery: 'steer' })
        }
        const agent = await stage.open({
          script: script()
            .do(submit)
            .do(() => stage.die()),
        })
        await stage.crash(agent.prompt('Run the tests.'))
        await stage.resume({ script: script().text('They pass.').step().text('Docs are done.').step().text('Good.') })
      },
    },
    {
      name: 'resume-after-an-abort',
      title: 'a run that the user had stopped stays stopped: its calls are answered and not run',
      play: async (stage) => {
        const calls = oneCall().toolStart('tool-2', 'bash').toolInput('{"comm').cancel()
        const agent = await stage.open({ script: calls, tools: [tool('bash')] })
        stage.dieWhen(isAnswer)
        await stage.crash(agent.prompt('Do both.'))
        await stage.resume({ script: script(), tools: [tool('bash')] })
      },
    },
    {
      name: 'resume-a-crash-loop',
      title: 'a run that was resumed twice in vain waits for a person',
      play: async (stage) => {
        const agent = await stage.open({ script: script().do(() => stage.die()) })
        await stage.crash(agent.prompt('Hi.'))
        for (let time = 0; time < 2; time++) await stage.crash(stage.resume({ script: script().do(() => stage.die()) }))
        const { needsPerson } = await stage.resume({ script: goesOn() })
        if (!needsPerson) throw new Error('The third time needs a person.')
      },
    },
    {
      name: 'resume-keeps-count',
      title: 'what the run had used before its process died counts towards its limits',
      play: async (stage) => {
        const usage = { inputTokens: 90, outputTokens: 10 }
        const bash = tool('bash', () => {
          stage.clock.advance(1000)
          return { content: 'done in a second' }
        })
        const cast = { tools: [bash], settings: { runLimits: { tokens: 150 } } }
        const agent = await stage.open({ ...cast, script: oneCall().usage(usage) })
        stage.dieWhen(isResult)
        await stage.crash(agent.prompt('Do it.'))
        await stage.resume({ ...cast, script: script().toolCall('tool-2', 'bash', { command: 'b' }).usage(usage) })
      },
    },
    {
      name: 'abandoned-run',
      title: 'a run that is left behind has its calls answered and its question withdrawn before the leaf is moved',
      play: async (stage) => {
        const agent = await stage.open({ script: twoCalls(), tools: [tool('bash')], gate: askingGate })
        stage.dieWhen(isQuestion)
        await stage.crash(agent.prompt('Do both.'))
        const { session } = await stage.open({ script: script() })
        await abandonRun(session)
        await session.branch(await promptOf(stage))
      },
    },
  ],
}

/** Asks, and has its answer at once. */
function answeredGate(stage: Stage): typeof askingGate {
  return (requests) => {
    const asking = askingGate(requests)
    return {
      admit: async (call, signal) => {
        const verdict = asking.admit(call, signal)
        await stage.answer({ outcome: 'allowed', optionId: 'yes' })
        return verdict
      },
    }
  }
}

function isRunStart({ type }: Line): boolean {
  return type === 'run_start'
}

function isPrompt(line: Line): boolean {
  return line.type === 'message' && line.message.role === 'user'
}

async function promptOf({ session }: Stage): Promise<string> {
  const prompt = (await session.getContextPath()).find((entry) => isPrompt(entry))
  if (!prompt) throw new Error('There is no prompt.')
  return prompt.id
}
