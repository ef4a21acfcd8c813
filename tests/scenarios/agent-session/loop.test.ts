import { allTools, defineTool, toolEvents, type Tool } from '@tapetree/agent'
import { Jobs } from '@tapetree/agent/tools'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { z } from 'zod'
import { tool } from '../../golden/tool.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { door, finish, linesOf, openAgent, pathOf, textDeltas } from './opened-agent.ts'

const skipped = 'Not run: the user sent a new message first.'

function twoCalls(): ScriptBuilder {
  return script().text('I change both.').toolCall('a', 'write').toolCall('b', 'write')
}

verifies(
  ['agent-session/3 autonomous-loop', 'agent-session/3.1 three-layers', 'agent-session/3.1 without-user'],
  'one prompt goes on through calls, turns and waiting messages until nothing is left, and nobody says a word meanwhile',
  async () => {
    const steps = script().toolCall('a', 'write').step().toolCall('b', 'read').step().text('Refactored.')
    const { agent, model } = await openAgent({ script: steps.step().toolCall('c', 'write').step().text('Tested.') })
    const first = await agent.prompt('Refactor it.')
    await agent.followUp('Test it.')
    if (first.type === 'started') await first.run.done
    expect(await pathOf(agent)).toEqual([
      'user: Refactor it.',
      'assistant: [write a]',
      'tool: a ok',
      'assistant: [read b]',
      'tool: b ok',
      'assistant: Refactored.',
      'user: Test it.',
      'assistant: [write c]',
      'tool: c ok',
      'assistant: Tested.',
    ])
    expect(model.stepsLeft).toBe(0)
  },
)

verifies(
  ['agent-session/3.1 outer-loop', 'agent-session/3.5 outer-loop', 'agent-session/3.5 drain-follow-ups'],
  'the runs go on while follow-ups wait: each is delivered alone, in its order, and has a run of its own',
  async () => {
    const wait = door()
    const answers = script().do(wait.pass).text('1').step().text('2').step().text('3')
    const { agent, model, events } = await openAgent({ script: answers })
    const first = await agent.prompt('one')
    await wait.reached
    await agent.followUp('two')
    await agent.followUp('three')
    wait.open()
    if (first.type === 'started') await first.run.done
    expect(await pathOf(agent)).toEqual([
      'user: one',
      'assistant: 1',
      'user: two',
      'assistant: 2',
      'user: three',
      'assistant: 3',
    ])
    expect(linesOf(events, 'run_end').map(({ runEnd }) => runEnd.outcome)).toEqual(Array(3).fill('completed'))
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5])
  },
)

verifies(
  ['agent-session/3.1 middle-loop', 'agent-session/3.5 middle-loop', 'agent-session/3.5 more-calls'],
  'a run goes on while the model asks for tools, and once more for a steer that came with its last words',
  async () => {
    const wait = door()
    const steps = script().toolCall('a', 'read').step().toolCall('b', 'read').step().do(wait.pass).text('Done.')
    const { agent, events } = await openAgent({ script: steps.step().text('That, too.') })
    const first = await agent.prompt('go')
    await wait.reached
    await agent.steer('And the rest?')
    wait.open()
    if (first.type === 'started') await first.run.done
    expect((await pathOf(agent)).slice(-3)).toEqual([
      'assistant: Done.',
      'user: And the rest?',
      'assistant: That, too.',
    ])
    expect(linesOf(events, 'run_start')).toHaveLength(1)
  },
)

verifies(
  ['agent-session/3.1 turn', 'agent-session/3.1 context-preparation', 'agent-session/3.5 initial-message'],
  'a turn sends all that is on the path, as messages a provider knows, and begins with what was said last',
  async () => {
    const { agent, model } = await openAgent({ script: script().toolCall('a', 'read').step().text('Empty.') })
    await finish(agent, 'Look.')
    await agent.setLabel(agent.session.leafId ?? '', 'a note that no model sees')
    const roles = model.requests.map(({ messages }) => messages.map(({ role }) => role))
    expect(roles).toEqual([['user'], ['user', 'assistant', 'tool']])
    expect(model.requests[0]).toMatchObject({ system: 'You are a test.', tools: [{ name: 'read' }, { name: 'write' }] })
    expect(agent.session.inbox.messages).toEqual([])
  },
)

verifies(
  ['agent-session/3.1 response-streams', 'agent-session/3.5 stream', 'agent-session/3.5 answer-appended'],
  'the words of an answer are told as they come, and the whole answer is one entry with the id they named',
  async () => {
    const wait = door()
    const whole = 'Let me see what there is. Nothing.'
    const { agent, events } = await openAgent({
      script: script().text('Let me see ', 'what there is.').do(wait.pass).text(' Nothing.'),
    })
    const first = await agent.prompt('Hi.')
    await wait.reached
    // What may be the beginning of a secret is held back until it is known to be none.
    const soFar = textDeltas(events).join('')
    expect([soFar.startsWith('Let me see '), whole.startsWith(soFar)]).toEqual([true, true])
    expect(linesOf(events, 'message')).toHaveLength(1)
    wait.open()
    if (first.type === 'started') await first.run.done
    const items = new Set(events.flatMap((event) => (event.type === 'delta' ? [event.item] : [])))
    expect([...items]).toEqual([agent.session.leafId])
    expect(textDeltas(events).join('')).toBe(whole)
    expect(await pathOf(agent)).toEqual(['user: Hi.', `assistant: ${whole}`])
  },
)

verifies(
  ['agent-session/3.5 until-done-or-interrupted'],
  'no call of an answer is carried out before the answer is whole, and one that is stopped keeps what was said',
  async () => {
    const [before, after] = [door(), door()]
    const ran: string[] = []
    const write = tool('write', ({ callId }) => {
      ran.push(callId)
      return { content: 'ok' }
    })
    const { agent } = await openAgent({
      script: script()
        .toolCall('a', 'write')
        .do(before.pass)
        .text('and')
        .step()
        .text('1')
        .step()
        .text('Half')
        .do(after.pass)
        .text(' a word'),
      tools: [write],
    })
    const first = await agent.prompt('one')
    await before.reached
    expect(ran).toEqual([])
    before.open()
    if (first.type === 'started') await first.run.done
    expect(ran).toEqual(['a'])
    await agent.prompt('two')
    await after.reached
    const aborted = agent.abort()
    after.open()
    await aborted
    expect((await pathOf(agent)).at(-1)).toBe('assistant: Half')
  },
)

verifies(
  ['agent-session/3.1 calls-collected', 'agent-session/3.3 selection', 'agent-session/3.5 each-call'],
  'of an answer with thoughts, words and calls exactly the calls are carried out, each once and in their order',
  async () => {
    const ran: string[] = []
    const write = tool('write', ({ callId }) => {
      ran.push(callId)
      return { content: 'ok' }
    })
    const answer = script().reasoning('I could call c.').text('First a.').toolCall('a', 'write').text('Then b.')
    const { agent } = await openAgent({ script: answer.toolCall('b', 'write').step().text('ok'), tools: [write] })
    await finish(agent, 'go')
    expect(ran).toEqual(['a', 'b'])
    expect((await pathOf(agent))[1]).toBe('assistant: (I could call c.) First a. [write a] Then b. [write b]')
  },
)

verifies(
  ['agent-session/3.1 sequential', 'agent-session/3.5 result-appended', 'agent-session/3.3 result-injection'],
  'the next call begins when the one before it has ended and its result is in the log, an entry of its own',
  async () => {
    const happened: string[] = []
    const write = tool('write', async ({ callId }) => {
      happened.push(`${callId} begins`)
      await new Promise((resolve) => setImmediate(resolve))
      happened.push(`${callId} ends`)
      return { content: 'ok' }
    })
    const { agent, model } = await openAgent({ script: twoCalls().step().text('Done.'), tools: [write] })
    agent.session.subscribe(({ line }) => {
      if (line.type === 'message' && line.message.role === 'tool') happened.push('result')
    })
    await finish(agent, 'go')
    expect(happened).toEqual(['a begins', 'a ends', 'result', 'b begins', 'b ends', 'result'])
    const results = model.requests[1]?.messages.filter(({ role }) => role === 'tool')
    expect(results?.map(({ content }) => content.length)).toEqual([1, 1])
  },
)

verifies(
  ['agent-session/3.1 steering-checked', 'agent-session/3.1 steering-skips', 'agent-session/3.5 skip-remaining'],
  'a steer that comes while the first of three calls runs lets it end, and the other two are not begun',
  async () => {
    const ran: string[] = []
    const write = tool('write', async ({ callId }) => {
      ran.push(callId)
      await agent.steer('Not those.')
      return { content: 'written' }
    })
    const opened = await openAgent({ script: twoCalls().toolCall('c', 'write').step().text('Fine.'), tools: [write] })
    const { agent } = opened
    await finish(agent, 'go')
    expect(ran).toEqual(['a'])
    expect((await pathOf(agent)).slice(2)).toEqual([
      'tool: a written',
      `tool: b failed: ${skipped}`,
      `tool: c failed: ${skipped}`,
      'user: Not those.',
      'assistant: Fine.',
    ])
  },
)

verifies(
  ['agent-session/3.4 steer-interrupts', 'agent-session/3.4 steer-before-next-turn', 'agent-session/3.4 steer-use'],
  'whoever says to look at an error instead is heard in the very next request, before what waits longer',
  async () => {
    const wait = door()
    const answers = twoCalls().do(wait.pass).step().text('I see the error.').step().text('Tests pass.')
    const { agent, model } = await openAgent({ script: answers })
    const first = await agent.prompt('Refactor it.')
    await wait.reached
    await agent.followUp('Run the tests.')
    expect(await agent.steer('Look at this error instead.')).toMatchObject({ type: 'steered', runId: first.runId })
    wait.open()
    if (first.type === 'started') await first.run.done
    expect((await pathOf(agent)).slice(2, 6)).toEqual([
      `tool: a failed: ${skipped}`,
      `tool: b failed: ${skipped}`,
      'user: Look at this error instead.',
      'assistant: I see the error.',
    ])
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'user',
      content: [{ text: { content: 'Look at this error instead.' } }],
    })
  },
)

verifies(
  ['agent-session/3.5 steering-gap', 'agent-session/3.5 drain-steers', 'agent-session/3.5 new-response'],
  'all that was typed while a tool ran is said before one new answer, which the same run asks for',
  async () => {
    const write = tool('write', async () => {
      for (const words of ['Wait.', 'Check for errors.']) await agent.steer(words)
      return { content: 'ok' }
    })
    const { agent, model, events } = await openAgent({
      script: twoCalls().step().text('There are none.'),
      tools: [write],
    })
    await finish(agent, 'go')
    expect((await pathOf(agent)).slice(-3)).toEqual([
      'user: Wait.',
      'user: Check for errors.',
      'assistant: There are none.',
    ])
    expect([model.requests.length, linesOf(events, 'run_start').length]).toEqual([2, 1])
  },
)

verifies(
  ['agent-session/3.5 inject-pending'],
  'the line that says a waiting message is the line that takes it from the queue',
  async () => {
    const wait = door()
    const { agent, events } = await openAgent({ script: script().do(wait.pass).text('1').step().text('2') })
    const first = await agent.prompt('one')
    await wait.reached
    const waiting = await agent.followUp('two')
    expect(agent.state().waiting.map(({ message }) => message)).toEqual(['two'])
    wait.open()
    if (first.type === 'started') await first.run.done
    const id = waiting.type === 'queued' ? waiting.message.id : ''
    const delivered = linesOf(events, 'message').map(({ message }) => message.submissionId)
    expect(delivered).toEqual([undefined, undefined, id, undefined])
    expect(linesOf(events, 'submission').map(({ submission }) => submission.action)).toEqual(['add'])
    expect(agent.state().waiting).toEqual([])
  },
)

verifies(
  ['agent-session/3.4 follow-up-waits', 'agent-session/3.4 follow-up-after-the-end', 'agent-session/3.4 follow-up-use'],
  'a follow-up to run the tests waits until the refactoring asks for no more tools, and skips none of its calls',
  async () => {
    const wait = door()
    const answers = twoCalls().do(wait.pass).step().toolCall('c', 'write').step().text('Refactored.')
    const { agent } = await openAgent({ script: answers.step().text('The tests pass.') })
    const first = await agent.prompt('Refactor it.')
    await wait.reached
    expect(await agent.followUp('Once you finish this refactor, run the tests.')).toMatchObject({ type: 'queued' })
    wait.open()
    if (first.type === 'started') await first.run.done
    expect((await pathOf(agent)).slice(2)).toEqual([
      'tool: a ok',
      'tool: b ok',
      'assistant: [write c]',
      'tool: c ok',
      'assistant: Refactored.',
      'user: Once you finish this refactor, run the tests.',
      'assistant: The tests pass.',
    ])
  },
)

verifies(
  ['agent-session/3.5 follow-ups-now', 'agent-session/3.5 loop-back', 'agent-session/3.2 no-follow-up-waits'],
  'a message that a tool of the agent itself left for later is taken up before the agent is idle',
  async () => {
    const write = tool('write', async () => {
      await agent.followUp('Run tests next.')
      return { content: 'ok' }
    })
    const answers = script().toolCall('a', 'write').step().text('Written.').step().text('Tested.')
    const { agent } = await openAgent({ script: answers, tools: [write] })
    expect(await finish(agent, 'go')).toMatchObject({ outcome: 'completed' })
    expect((await pathOf(agent)).slice(-3)).toEqual([
      'assistant: Written.',
      'user: Run tests next.',
      'assistant: Tested.',
    ])
    expect(agent.state()).toMatchObject({ isBusy: false, waiting: [] })
  },
)

verifies(
  ['agent-session/3.2 turn-finished', 'agent-session/3.2 no-steer-waits', 'agent-session/3.2 model-stopped'],
  'the agent is busy while a call runs, while a steer waits and while the model asks for more, and idle only after that',
  async () => {
    const [inCall, inAnswer] = [door(), door()]
    const write = tool('write', async () => {
      await inCall.pass()
      return { content: 'ok' }
    })
    const answers = script().toolCall('a', 'write').step().do(inAnswer.pass).text('So far.').step().text('Done.')
    const { agent } = await openAgent({ script: answers, tools: [write] })
    const first = await agent.prompt('go')
    await inCall.reached
    expect(agent.state()).toMatchObject({ isBusy: true, openRun: first.runId })
    inCall.open()
    await inAnswer.reached
    await agent.steer('More.')
    expect(agent.state()).toMatchObject({ isBusy: true, waiting: [{ message: 'More.' }] })
    inAnswer.open()
    if (first.type === 'started') await first.run.done
    expect(agent.state()).toMatchObject({ isBusy: false, openRun: null, waiting: [] })
    expect((await pathOf(agent)).at(-1)).toBe('assistant: Done.')
  },
)

verifies(
  ['agent-session/3.2 run-completes', 'agent-session/3.5 idle'],
  'a run that has ended asks nothing more of the model until the next prompt, which starts another',
  async () => {
    const { agent, model, events } = await openAgent({ script: script().text('1').step().text('2') })
    expect(await finish(agent, 'one')).toMatchObject({ outcome: 'completed' })
    expect([model.requests.length, model.stepsLeft]).toEqual([1, 1])
    await finish(agent, 'two')
    const runs = linesOf(events, 'run_start').map(({ runStart }) => runStart.runId)
    expect(new Set(runs).size).toBe(2)
  },
)

verifies(
  ['agent-session/3.3 lookup', 'agent-session/3.3 validation'],
  'a call of a tool that is not there, or with an input that its schema refuses, is answered and carried out by nobody',
  async () => {
    const ran: unknown[] = []
    const read = pathTool('read', (path) => void ran.push(path))
    const answer = script()
      .toolCall('a', 'delete')
      .toolCall('b', 'read', { path: 7 })
      .toolCall('c', 'read', { path: 'x' })
    const { agent, events } = await openAgent({ script: answer.step().text('ok'), tools: [read] })
    await finish(agent, 'go')
    const [unknown, invalid, fine] = (await pathOf(agent)).slice(2)
    expect(unknown).toBe('tool: a failed: There is no tool delete. Available tools: read.')
    expect(invalid).toMatch(/^tool: b failed: The input of read is not valid/)
    expect([fine, ran]).toEqual(['tool: c read x', ['x']])
    expect(linesOf(events, 'tool_start').map(({ toolStart }) => toolStart.callId)).toEqual(['c'])
  },
)

verifies(
  ['agent-session/3.3 start-event', 'agent-session/3.3 end-event'],
  'whoever listens hears of each call when it begins and when it ends, with its result or its error',
  async () => {
    const write = tool('write', ({ callId }) => {
      if (callId === 'b') throw new Error('no disk')
      return { content: 'written' }
    })
    const { agent } = await openAgent({ script: twoCalls().step().text('ok'), tools: [write] })
    const told: string[] = []
    toolEvents(agent, (event) => {
      const result = event.type === 'tool_started' ? event.name : JSON.stringify(event.result.content)
      told.push(`${event.type} ${event.callId}: ${result}`)
    })
    await finish(agent, 'go')
    expect(told).toEqual([
      'tool_started a: write',
      'tool_completed a: "written"',
      'tool_started b: write',
      'tool_failed b: "The tool failed: no disk"',
    ])
  },
)

verifies(
  ['agent-session/3.3 execution', 'agent-session/2 tools', 'agent-session/2 model-decides'],
  'with the tools of a coding agent the model writes a file, runs a command on it and reads it, for real',
  async () => {
    const cwd = temporaryFolder()
    const scripted = scriptedModel(
      script()
        .toolCall('a', 'write', { path: 'a.txt', content: 'one\n' })
        .step()
        .toolCall('b', 'bash', { command: 'printf two >> a.txt; exit 3' })
        .step()
        .toolCall('c', 'read', { path: 'a.txt' })
        .step()
        .text('Both are there.'),
    )
    const { agent } = await openAgent({ scripted, cwd, tools: allTools({ jobs: new Jobs() }) })
    await finish(agent, 'Write it.')
    expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('one\ntwo')
    const results = (await pathOf(agent)).filter((line) => line.startsWith('tool:'))
    expect(results[1]).toMatch(/3/)
    expect(results[2]).toContain('two')
  },
)

/** A tool that takes one path, and says it back. */
function pathTool(name: string, onRun: (path: string) => void): Tool {
  return defineTool({
    name,
    description: `${name} one path`,
    schema: z.object({ path: z.string() }),
    access: () => [],
    run: ({ path }) => {
      onRun(path)
      return Promise.resolve({ content: `read ${path}` })
    },
  })
}
