import { fromCallbacks, type AgentSessionOptions } from '@tapetree/agent'
import { run } from '@tapetree/agent/run'
import { script, scriptedModel, TestAgent } from '@tapetree/agent/testing'
import { memoryStore, text } from '@tapetree/session'
import { expect, vi } from 'vitest'
import { tool } from '../../golden/tool.ts'
import { verifies } from '../../support/verifies.ts'
import { door, finish, linesOf, openAgent, pathOf } from '../agent-session/opened-agent.ts'

const long = 'some words to sum up, '.repeat(50)
const small = { limits: { contextTokens: 4000, outputTokens: 1000 } }

verifies(
  [
    'session-agent-refactor/1 input-validation',
    'session-agent-refactor/3.3 validate',
    'session-agent-refactor/3.1 validate-stream-call-back',
  ],
  'a prompt is validated before anything is written; then its answer streams, and who listens is called back',
  async () => {
    const { agent, model } = await openAgent({ script: script().text('Hello there, you.') })
    const told: string[] = []
    agent.subscribe(fromCallbacks({ onTextDelta: (words) => told.push(words) }))
    await expect(agent.prompt('')).rejects.toMatchObject({ code: 'empty-prompt' })
    expect([agent.session.head.seq, model.requests.length]).toEqual([1, 0])
    await finish(agent, 'Hi.')
    expect(told.join('')).toBe('Hello there, you.')
  },
)

verifies(
  [
    'session-agent-refactor/1 queue-management',
    'session-agent-refactor/3.3 queue-if-busy',
    'session-agent-refactor/3.1 queue-loop-mutate',
  ],
  'a prompt to a busy session is queued and returns at once, and goes out when the run before it has ended',
  async () => {
    const wait = door()
    const { agent, events } = await openAgent({ script: script().do(wait.pass).text('1').step().text('2') })
    const first = await agent.prompt('one')
    await wait.reached
    expect(await agent.prompt('two')).toMatchObject({ type: 'queued', message: { message: 'two' } })
    expect(agent.state()).toMatchObject({ isBusy: true, waiting: [{ message: 'two' }] })
    wait.open()
    if (first.type === 'started') await first.run.done
    expect(await pathOf(agent)).toEqual(['user: one', 'assistant: 1', 'user: two', 'assistant: 2'])
    expect(linesOf(events, 'run_start')).toHaveLength(2)
  },
)

verifies(
  [
    'session-agent-refactor/1 user-message',
    'session-agent-refactor/3.3 create-user-message',
    'session-agent-refactor/3.3 setup',
  ],
  'model, prompt and tools of a run, then the message of the user, are in the log before the model is asked',
  async () => {
    let asked: string[] = []
    const { agent, events } = await openAgent({
      script: script()
        .do(() => (asked = events.flatMap((event) => (event.type === 'line' ? [event.committed.line.type] : []))))
        .text('ok'),
    })
    await finish(agent, 'Hi.')
    const expected = ['writer', 'model_change', 'system', 'message', 'run_start']
    expect(asked.filter((type) => expected.includes(type))).toEqual(expected)
    expect(linesOf(events, 'message')[0]).toMatchObject({ message: { role: 'user', content: [text('Hi.')] } })
  },
)

verifies(
  ['session-agent-refactor/1 title', 'session-agent-refactor/3.3 title-of-first-message'],
  'the title is made beside the run, which does not wait for it, and of the first message only',
  async () => {
    const wait = door()
    const small = scriptedModel(script().do(wait.pass).text('Tap repair'), { id: 'small' })
    const main = scriptedModel(script().text('1').step().text('2'))
    const models: AgentSessionOptions['models'] = {
      open: (_, id) => Promise.resolve(id === 'small' ? small : main),
      choices: () => Promise.resolve([{ provider: 'scripted', modelId: 'scripted-1' }]),
    }
    const { agent } = await openAgent({ models, smallModel: { provider: 'scripted', modelId: 'small' } })
    expect(await finish(agent, 'Mend the tap.')).toMatchObject({ outcome: 'completed' })
    expect(agent.session.name).toBe('')
    await wait.reached
    wait.open()
    await vi.waitFor(() => expect(agent.session.name).toBe('Tap repair'))
    await finish(agent, 'And the roof.')
    expect([agent.session.name, small.requests.length]).toEqual(['Tap repair', 1])
  },
)

verifies(
  [
    'session-agent-refactor/1 error-recovery',
    'session-agent-refactor/3.3 handle-error',
    'session-agent-refactor/8 central-errors',
  ],
  'wherever a call of the model breaks off, what it had said is kept, the run ends with the reason, and its calls are not run',
  async () => {
    const breaks = [
      script().error('auth', 'No.'),
      script().text('Half a').error('auth', 'No.'),
      script().reasoning('Hm.').error('auth', 'No.'),
      script().toolCall('a', 'write').error('auth', 'No.'),
    ]
    for (const broken of breaks) {
      const { agent, events } = await openAgent({ script: broken })
      expect(await finish(agent, 'go')).toMatchObject({ outcome: 'failed', reason: 'auth', message: 'No.' })
      expect(linesOf(events, 'attempt')).toHaveLength(1)
      expect(linesOf(events, 'error')).toMatchObject([{ error: { kind: 'auth', message: 'No.' } }])
      expect([linesOf(events, 'tool_start'), await pathOf(agent)]).toEqual([[], ['user: go']])
    }
  },
)

verifies(
  [
    'session-agent-refactor/1 summary-and-queue',
    'session-agent-refactor/3.3 summarise',
    'session-agent-refactor/3.2 should-summarise',
  ],
  'a run that filled the window is followed by a summary and then by what waits, which sees the summary',
  async () => {
    const wait = door()
    const answers = script().text(long).step().do(wait.pass).text(long)
    const full = answers.usage({ inputTokens: 5000, outputTokens: 1, totalTokens: 5001 })
    const scripted = scriptedModel(full.step().text('A summary.').step().text('ok'), small)
    const { agent, events } = await openAgent({ scripted })
    await finish(agent, long)
    const second = await agent.prompt('two')
    await wait.reached
    await agent.followUp('three')
    wait.open()
    if (second.type === 'started') expect(await second.run.done).toMatchObject({ outcome: 'completed' })
    expect(linesOf(events, 'compaction')).toHaveLength(1)
    expect((await pathOf(agent)).slice(-2)).toEqual(['user: three', 'assistant: ok'])
    expect(JSON.stringify(scripted.requests.at(-1)?.messages[0])).toContain('A summary.')
  },
)

verifies(
  [
    'session-agent-refactor/3.1 setup-complete-persist',
    'session-agent-refactor/3.3 coordinator',
    'session-agent-refactor/3.3 handle-completion',
  ],
  'a run is one sequence in the log: what it uses, what was asked, its start, its answer, its end',
  async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().text('Hello.')) })
    expect(await agent.prompt('Hi.')).toMatchObject({ outcome: 'completed' })
    expect(await agent.lineTypes()).toEqual([
      'session',
      'writer',
      'model_change',
      'system',
      'message',
      'run_start',
      'message',
      'run_end',
    ])
  },
)

verifies(
  [
    'session-agent-refactor/3.1 run-state',
    'session-agent-refactor/3.2 explicit-state',
    'session-agent-refactor/3.2 one-owner',
  ],
  'a run counts for itself: what one has used up is not used up for the next, and two never go on at once',
  async () => {
    const wait = door()
    const answers = script().toolCall('a', 'read').step().do(wait.pass).text('1').step().toolCall('b', 'read')
    const { agent } = await openAgent({
      script: answers.step().text('2'),
      settings: () => ({ runLimits: { turns: 2 } }),
    })
    const first = await agent.prompt('one')
    await wait.reached
    await expect(agent.retry()).rejects.toMatchObject({ code: 'session-busy' })
    wait.open()
    if (first.type === 'started') expect(await first.run.done).toMatchObject({ outcome: 'completed' })
    expect(await finish(agent, 'two')).toMatchObject({ outcome: 'completed' })
  },
)

verifies(
  ['session-agent-refactor/6 no-sharing'],
  'two sessions that run side by side, step by step, have nothing of each other',
  async () => {
    const store = memoryStore()
    const agents = await Promise.all(
      ['a', 'b'].map(async (name) => {
        const steps = script().text(`${name} looks.`).toolCall('1', 'read').step().text(`${name} is done.`)
        return openAgent({ store, script: steps.toolResult('1', `of ${name}`) })
      }),
    )
    await Promise.all(agents.map(({ agent }) => finish(agent, 'go')))
    expect(await Promise.all(agents.map(({ agent }) => pathOf(agent)))).toEqual(
      ['a', 'b'].map((name) => [
        'user: go',
        `assistant: ${name} looks. [read 1]`,
        `tool: 1 of ${name}`,
        `assistant: ${name} is done.`,
      ]),
    )
  },
)

verifies(
  [
    'session-agent-refactor/3.2 fixed-call',
    'session-agent-refactor/3.2 fixed-session',
    'session-agent-refactor/3.2 new-run-state',
  ],
  'a run is made from what it begins with, in one session: its start names that message, and every line names the run',
  async () => {
    const { agent, events } = await openAgent({ script: script().toolCall('a', 'read').step().text('ok') })
    const outcome = await agent.prompt('Hi.')
    if (outcome.type === 'started') await outcome.run.done
    const { runId } = outcome
    const [asked] = linesOf(events, 'message')
    expect(linesOf(events, 'run_start')).toMatchObject([{ runStart: { runId, leafId: asked?.id } }])
    expect(linesOf(events, 'message').map(({ message }) => message.runId)).toEqual(Array(4).fill(runId))
  },
)

verifies(
  ['session-agent-refactor/3.2 fixed-model', 'session-agent-refactor/3.2 fixed-system-prompt'],
  'a model and a system prompt that are changed in the middle of a run count from the next one',
  async () => {
    let prompt = 'First.'
    const wait = door()
    const [a, b] = [
      scriptedModel(script().do(wait.pass).toolCall('1', 'read').step().text('from a'), { id: 'a' }),
      scriptedModel(script().text('from b'), { id: 'b' }),
    ]
    const { agent } = await openAgent({
      models: {
        open: (_, id) => Promise.resolve(id === 'a' ? a : b),
        choices: () => Promise.resolve([{ provider: 'scripted', modelId: 'a' }]),
      },
      systemPrompt: () => prompt,
    })
    const first = await agent.prompt('one')
    await wait.reached
    prompt = 'Second.'
    await agent.setModel('scripted', 'b')
    wait.open()
    if (first.type === 'started') await first.run.done
    await finish(agent, 'two')
    expect([a.requests, b.requests].map((requests) => requests.map(({ system }) => system))).toEqual([
      ['First.', 'First.'],
      ['Second.'],
    ])
  },
)

verifies(
  ['session-agent-refactor/3.2 fixed-tools'],
  'what the model is offered is in the log: a tool that comes to be there in the middle of a run has an entry of its own',
  async () => {
    const extra = tool('extra')
    const tools = [
      tool('read', () => {
        tools.push(extra)
        return { content: 'ok' }
      }),
    ]
    const agent = await TestAgent.open({
      model: scriptedModel(script().toolCall('a', 'read').step().text('ok')),
      tools,
    })
    await agent.prompt('go')
    expect((await agent.lineTypes()).filter((type) => type === 'system')).toHaveLength(2)
    const { system } = await agent.session.getContext()
    expect(system?.tools.map(({ name }) => name)).toEqual(['read', 'extra'])
  },
)

verifies(
  ['session-agent-refactor/3.2 has-summary'],
  'where there is a summary, a run begins with it, and with nothing of what it stands for',
  async () => {
    const { agent, model } = await openAgent({
      script: script()
        .text('The secret is 42.'.repeat(60))
        .step()
        .text(long)
        .step()
        .text('A summary.')
        .step()
        .text('ok'),
    })
    await finish(agent, 'one')
    await finish(agent, 'two')
    await agent.compact()
    await finish(agent, 'three')
    const sent = model.requests.at(-1)?.messages ?? []
    expect(JSON.stringify(sent[0])).toContain('A summary.')
    expect(JSON.stringify(sent)).not.toContain('The secret is 42.')
  },
)

verifies(
  ['session-agent-refactor/3.2 start-time', 'session-agent-refactor/3.2 step-finish-callback'],
  'the end of a run says how long it took, and each answer why it stopped and what it used',
  async () => {
    const usage = { inputTokens: 90, outputTokens: 10, totalTokens: 100 }
    const { agent, clock, events } = await openAgent({
      script: script()
        .do(() => clock.advance(1500))
        .text('Cut o')
        .usage(usage)
        .finish('length'),
    })
    await finish(agent, 'Hi.')
    expect(linesOf(events, 'run_end')).toMatchObject([{ runEnd: { durationMs: 1500 } }])
    expect(linesOf(events, 'message')[1]).toMatchObject({ message: { stopReason: 'length', usage, durationMs: 1500 } })
  },
)

verifies(
  ['session-agent-refactor/4 token-counts'],
  'tokens are those that the provider counted, for each answer and in all',
  async () => {
    const usage = { inputTokens: 90, outputTokens: 10, totalTokens: 100 }
    const { agent, events } = await openAgent({
      script: script().toolCall('a', 'read').usage(usage).step().text('ok').usage(usage),
    })
    await finish(agent, 'go')
    const counted = linesOf(events, 'message').flatMap(({ message }) => (message.usage ? [message.usage] : []))
    expect(counted).toEqual([usage, usage])
    expect(agent.state().totals).toMatchObject({ turns: 2, tokens: 200 })
  },
)

verifies(
  ['session-agent-refactor/3.2 services', 'session-agent-refactor/3.2 injected-state'],
  'a run is given all that it is made of, and writes to the session that it is given and nowhere else',
  async () => {
    const [given, other] = [
      await TestAgent.open({ model: scriptedModel() }),
      await TestAgent.open({ model: scriptedModel() }),
    ]
    const observed: string[] = []
    const deps = {
      ...given.deps,
      model: () => scriptedModel(script().text('Injected, it is.')),
      systemPrompt: () => 'Another one.',
      observe: ({ type }: { type: string }) => void observed.push(type),
    }
    const start = { type: 'prompt' as const, content: [text('go')] }
    expect(await run(start, deps, new AbortController().signal)).toMatchObject({ outcome: 'completed' })
    expect(await given.path()).toEqual(['user: go', 'assistant: Injected, it is.'])
    expect((await given.session.getContext()).system?.prompt).toBe('Another one.')
    expect([observed.includes('delta'), other.session.head.seq]).toEqual([true, 1])
  },
)

verifies(
  ['session-agent-refactor/3.2 lsp-batcher'],
  'what language servers say about the edits of a run reaches the model in one message',
  async () => {
    const agent = await TestAgent.open({
      model: scriptedModel(
        script().toolCall('1', 'edit').step().toolCall('2', 'edit').step().text('Done.').step().text('Corrected.'),
      ),
      tools: [tool('edit')],
    })
    const reports: boolean[] = []
    let edits = 0
    const diagnostics = {
      afterCall: () => void edits++,
      report: ({ isSettled }: { isSettled: boolean }) => {
        reports.push(isSettled)
        const told = isSettled && edits > 0 ? `${edits} edits, 1 error` : undefined
        if (isSettled) edits = 0
        return Promise.resolve(told)
      },
    }
    const start = { type: 'prompt' as const, content: [text('go')] }
    await run(start, { ...agent.deps, diagnostics }, new AbortController().signal)
    expect((await agent.path()).slice(-3)).toEqual([
      'assistant: Done.',
      'custom: 2 edits, 1 error',
      'assistant: Corrected.',
    ])
    expect(reports).toEqual([false, false, false, true, true])
  },
)

verifies(
  [
    'session-agent-refactor/3.2 one-interaction',
    'session-agent-refactor/3.2 stream-result',
    'session-agent-refactor/3.3 execute-stream',
  ],
  'one turn is one request and one entry, and the run says how it ended',
  async () => {
    const { agent, model, events } = await openAgent({
      script: script().text('a').toolCall('1', 'read').step().text('b').toolCall('2', 'read').step().text('c'),
    })
    expect(await finish(agent, 'go')).toEqual({ runId: expect.any(String) as string, outcome: 'completed' })
    const answers = linesOf(events, 'message').filter(({ message }) => message.role === 'assistant')
    expect([model.requests.length, answers.length]).toEqual([3, 3])
    expect(new Set(answers.map((line) => ('request' in line ? line.request?.sha256 : ''))).size).toBe(3)
  },
)

verifies(
  ['session-agent-refactor/3.2 stop-checks'],
  'a run stops at its limit, with every call answered, and goes on from there when the limit is raised',
  async () => {
    let turns = 2
    const scripted = scriptedModel([], {
      otherwise: ({ messages: { length } }) =>
        length > 6 ? script().text('Done.') : script().toolCall(String(length), 'read', { at: length }),
    })
    const { agent } = await openAgent({ scripted, settings: () => ({ runLimits: { turns } }) })
    expect(await finish(agent, 'go')).toMatchObject({ outcome: 'failed', reason: 'limit:turns' })
    expect((await agent.session.getContext()).repairs).toEqual([])
    turns = 10
    expect(await (await agent.retry()).done).toMatchObject({ outcome: 'completed' })
  },
)

verifies(
  [
    'session-agent-refactor/3.2 no-queue',
    'session-agent-refactor/3.3 process-queue',
    'session-agent-refactor/4 iterative-queue',
  ],
  'a hundred waiting messages are a hundred runs one after the other, and the last is no deeper in the stack than the second',
  async () => {
    const depths: number[] = []
    const measured = (): unknown => {
      const { stackTraceLimit } = Error
      Error.stackTraceLimit = 1000
      depths.push(new Error('here').stack?.split('\n').length ?? 0)
      Error.stackTraceLimit = stackTraceLimit
      return undefined
    }
    const model = scriptedModel([], { otherwise: () => script().do(measured).text('ok') })
    const agent = await TestAgent.open({ model })
    for (let count = 0; count < 100; count++) await agent.session.submit(`message ${count}`)
    await agent.prompt('go')
    expect((await agent.lineTypes()).filter((type) => type === 'run_end')).toHaveLength(101)
    expect(agent.session.inbox.messages).toEqual([])
    expect(depths.at(-1)).toBe(depths[1])
  },
)

verifies(
  ['session-agent-refactor/3.2 stream-call'],
  'preparing a request twice gives the same hash and sends nothing; the hash is in the log with the answer',
  async () => {
    const { agent, model, events } = await openAgent({ script: script().text('Hello.') })
    await finish(agent, 'Hi.')
    const [sent] = model.requests
    if (!sent) throw new Error('Nothing was sent.')
    const hashes = [model.prepare(sent), model.prepare(sent)].map(({ reference }) => reference.sha256)
    expect(model.requests).toHaveLength(1)
    expect(linesOf(events, 'message')[1]).toMatchObject({ request: { sha256: hashes[0] } })
    expect(hashes[1]).toBe(hashes[0])
  },
)

verifies(
  ['session-agent-refactor/3.3 cancel'],
  'a run can be cancelled while it goes on and not after, and the next one is not cancelled with it',
  async () => {
    const wait = door()
    const { agent } = await openAgent({ script: script().text('Half').do(wait.pass).step().text('Whole.') })
    const first = await agent.prompt('one')
    await wait.reached
    const aborted = agent.abort()
    wait.open()
    await aborted
    if (first.type === 'started') expect(await first.run.done).toMatchObject({ outcome: 'aborted' })
    await agent.abort()
    expect(agent.state()).toMatchObject({ isBusy: false, openRun: null })
    expect(await finish(agent, 'two')).toMatchObject({ outcome: 'completed' })
  },
)

verifies(
  ['session-agent-refactor/8 queue-place'],
  'what waits is kept by the session, in the log, so another agent on that session finds it',
  async () => {
    const { agent, store } = await openAgent({ script: script().error('auth', 'No.') })
    await agent.session.submit('later')
    await finish(agent, 'go')
    await agent.close()
    const { agent: again } = await openAgent({ store, sessionId: agent.session.id })
    expect(again.state()).toMatchObject({ waiting: [{ message: 'later' }], hold: {} })
  },
)
