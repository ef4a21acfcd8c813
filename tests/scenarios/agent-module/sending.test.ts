import type { Agent } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { script, scriptedModel, startFakeProvider } from '@tapetree/agent/testing'
import { expect, onTestFinished } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { agentWith, brief, openAgent, say, toolThat } from './agents.ts'

const always = (words: string) => scriptedModel([], { otherwise: () => script().text(words) })

verifies(
  ['agent-module/intro handles', 'agent-module/agent send', 'agent-module/flow completes'],
  'one send is a whole exchange: the model is asked, its tool is run, it answers, and all of it is told and kept',
  async () => {
    const model = scriptedModel(script().text('I look.').toolCall('1', 'look').step().text('A tree.'))
    const agent = agentWith({ model, tools: [toolThat('look', () => ({ content: 'a tree' }))] })
    let told = ''
    const completed: number[] = []
    const end = await agent.ask('What is there?', {
      onTextDelta: (text) => void (told += text),
      onComplete: () => completed.push(model.stepsLeft),
    })
    expect(end).toMatchObject({ outcome: 'completed' })
    expect({ told, completed }).toEqual({ told: 'I look.A tree.', completed: [0] })
    expect(brief(await agent.history())).toEqual([
      'user: What is there?',
      'assistant: I look. [1]',
      'tool: 1=a tree',
      'assistant: A tree.',
    ])
  },
)

verifies(
  ['agent-module/agent contract', 'agent-module/agent new', 'agent-module/agent own-loop'],
  'a model is all that an agent needs: it sends, remembers, forgets, is cancelled and says whether it is busy',
  async () => {
    const model = scriptedModel(script().toolCall('1', 'nothing').step().text('one').step().text('two'))
    const agent: Agent = agentWith({ model })
    await agent.ask('first')
    expect(brief(await agent.history()).at(2)).toMatch(/^tool: 1=.*nothing/)
    await agent.clear()
    await agent.abort()
    await agent.ask('second')
    expect(brief(await agent.history())).toEqual(['user: second', 'assistant: two'])
    expect({ isBusy: agent.isBusy(), calls: model.requests.length }).toEqual({ isBusy: false, calls: 3 })
  },
)

verifies(
  ['agent-module/agent alternatives'],
  'what is written for an agent works with a real one and with one that a test made up',
  async () => {
    const ask = async (agent: Pick<Agent, 'ask'>): Promise<string> => {
      let answer = ''
      await agent.ask('Who?', { onTextDelta: (text) => void (answer += text) })
      return answer
    }
    const madeUp: Pick<Agent, 'ask'> = {
      ask: (prompt, options) => {
        const text = `${prompt} Me.`
        options?.onTextDelta?.(text)
        return Promise.resolve({ text, runId: '1', outcome: 'completed', usage: {}, cost: 0 })
      },
    }
    expect([await ask(madeUp), await ask(agentWith({ model: always('You.') }))]).toEqual(['Who? Me.', 'You.'])
  },
)

verifies(
  ['agent-module/agent set-system-prompt', 'agent-module/config system-prompt', 'agent-module/roles system'],
  'the system prompt goes out with every request, is changed for the next one, and is kept in the log once for each change',
  async () => {
    const model = always('yes')
    const agent = agentWith({ model, systemPrompt: 'Be brief.' })
    await agent.ask('one')
    await agent.ask('two')
    agent.setSystemPrompt('Be kind.')
    await agent.ask('three')
    expect(model.requests.map(({ system }) => system)).toEqual(['Be brief.', 'Be brief.', 'Be kind.'])
    await using session = await agent.store.open('default')
    const path = await session.getContextPath()
    expect(path.flatMap((entry) => (entry.type === 'system' ? [entry.system.prompt] : []))).toEqual([
      'Be brief.',
      'Be kind.',
    ])
    expect((await agent.history()).map(({ role }) => role)).not.toContain('system')
  },
)

verifies(
  ['agent-module/agent set-tools', 'agent-module/config tools', 'agent-module/flow model-and-tools'],
  'each request has the model and the tools of the moment it is sent',
  async () => {
    const model = always('yes')
    const agent = agentWith({ model, tools: [model.tool('look')] })
    await agent.ask('one')
    agent.setTools([model.tool('look'), model.tool('touch')])
    await agent.ask('two')
    agent.setTools([])
    await agent.ask('three')
    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([['look'], ['look', 'touch'], []])
  },
)

verifies(
  ['agent-module/agent set-model', 'agent-module/config model'],
  'a model that was made anew, with a newer token, takes the place of the old one, and so does a quite different one',
  async () => {
    const models = [always('old'), always('fresh'), scriptedModel(script().text('other'), { id: 'other' })] as const
    const agent = agentWith({ model: models[0] })
    await agent.ask('one')
    for (const model of models.slice(1)) {
      agent.setModel(model)
      await agent.ask('more')
    }
    expect(models.map(({ requests }) => requests.length)).toEqual([1, 1, 1])
    expect((await agent.history()).flatMap(({ model }) => model ?? [])).toEqual(['scripted-1', 'scripted-1', 'other'])
  },
)

verifies(
  ['agent-module/config working-dir', 'agent-module/example working-dir', 'agent-module/tools context'],
  'a tool is told the working folder, the session, the run and the call that it works for',
  async () => {
    const told: unknown[] = []
    const look = toolThat('look', (_, { cwd, sessionId, runId, callId }) => {
      told.push({ cwd, sessionId, runId, callId })
      return { content: 'seen' }
    })
    const model = scriptedModel(script().toolCall('1', 'look').step().text('done'))
    const agent = agentWith({ model, tools: [look], cwd: '/some/project' })
    const { runId } = await agent.ask('go', { sessionId: 'mine' })
    expect(told).toEqual([{ cwd: '/some/project', sessionId: 'mine', runId, callId: '1' }])
  },
)

verifies(
  ['agent-module/config hub', 'agent-module/intro dependencies', 'agent-module/example hub'],
  'nobody has to listen, and everybody who subscribes hears the same',
  async () => {
    const agent = await openAgent(always('yes'))
    await say(agent, 'unheard')
    const heard: string[][] = [[], []]
    const stops = heard.map((list) => agent.subscribe(({ type }) => list.push(type)))
    await say(agent, 'heard')
    expect(heard[0]).toEqual(heard[1])
    expect(heard[0]).toEqual(expect.arrayContaining(['line', 'delta']))
    for (const stop of stops) stop()
    const before = heard[0]?.length
    await say(agent, 'unheard again')
    expect(heard[0]).toHaveLength(before ?? -1)
  },
)

verifies(
  ['agent-module/flow empty-prompt'],
  'a prompt without words is refused: nothing is kept, and the model is not asked',
  async () => {
    const model = always('yes')
    const agent = agentWith({ model })
    for (const prompt of ['', ' \n\t']) {
      await expect(agent.ask(prompt)).rejects.toMatchObject({ name: 'PromptError', code: 'empty-prompt' })
    }
    expect({ history: await agent.history(), requests: model.requests, isBusy: agent.isBusy() }).toEqual({
      history: [],
      requests: [],
      isBusy: false,
    })
  },
)

verifies(
  ['agent-module/flow busy', 'agent-module/agent is-busy', 'agent-module/state active-requests'],
  'a session that answers refuses a second prompt, another one does not, and each is free when its answer is complete',
  async () => {
    const [asked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = script()
      .do(() => asked.resolve())
      .do(() => goOn.promise)
      .text('at last')
    const model = scriptedModel(slow, { otherwise: () => script().text('at once') })
    const agent = agentWith({ model })
    const sent = agent.ask('slow', { sessionId: 'a' })
    expect(agent.isBusy('a')).toBe(true)
    await expect(agent.ask('too early', { sessionId: 'a' })).rejects.toMatchObject({ code: 'session-busy' })
    await asked.promise
    await expect(agent.ask('too early', { sessionId: 'a' })).rejects.toMatchObject({ code: 'session-busy' })
    await agent.ask('quick', { sessionId: 'b' })
    expect({ a: agent.isBusy('a'), b: agent.isBusy('b') }).toEqual({ a: true, b: false })
    goOn.resolve()
    await sent
    expect(agent.isBusy('a')).toBe(false)
    expect(brief(await agent.history('a'))).toEqual(['user: slow', 'assistant: at last'])
  },
)

verifies(
  ['agent-module/flow adds-user-message', 'agent-module/flow streams'],
  'when the model is asked, what the user said is in the session already',
  async () => {
    const seen: string[][] = []
    const model = scriptedModel(
      script()
        .do(async () => seen.push(brief(await agent.history())))
        .text('Hi!'),
    )
    const agent = agentWith({ model })
    await agent.ask('Hello')
    expect(seen).toEqual([['user: Hello']])
  },
)

verifies(
  ['agent-module/flow adds-tool-result', 'agent-module/flow adds-answer', 'agent-module/lifecycle results'],
  'an answer is kept before its calls are carried out, and each result when its tool is done',
  async () => {
    const seen: string[][] = []
    const look = toolThat('look', async (_, { callId }) => {
      seen.push(brief(await agent.history()))
      return { content: `saw ${callId}` }
    })
    const model = scriptedModel(
      script()
        .toolCall('1', 'look')
        .toolCall('2', 'look')
        .step()
        .do(async () => seen.push(brief(await agent.history())))
        .text('done'),
    )
    const agent = agentWith({ model, tools: [look] })
    await agent.ask('go')
    const notYet = (id: string): string => `tool: ${id}=not run on this branch`
    expect(seen).toEqual([
      ['user: go', 'assistant: [1] [2]', notYet('1'), notYet('2')],
      ['user: go', 'assistant: [1] [2]', 'tool: 1=saw 1', notYet('2')],
      ['user: go', 'assistant: [1] [2]', 'tool: 1=saw 1', 'tool: 2=saw 2'],
    ])
    expect(brief(await agent.history()).at(-1)).toBe('assistant: done')
  },
)

verifies(
  ['agent-module/options passed', 'agent-module/options temperature', 'agent-module/options max-tokens'],
  'options hold for the request that they are given with, for all of its turns, and for no other',
  async () => {
    const model = scriptedModel(script().toolCall('1', 'look').step().text('one').step().text('two'))
    const agent = agentWith({ model, tools: [model.tool('look')] })
    await agent.ask('one', { temperature: 0.4, maxOutputTokens: 100 })
    await agent.ask('two')
    expect(model.requests.map(({ temperature, maxOutputTokens }) => [temperature, maxOutputTokens])).toEqual([
      [0.4, 100],
      [0.4, 100],
      [undefined, 8192],
    ])
  },
)

verifies(
  ['agent-module/options temperature-values', 'agent-module/options temperature-default'],
  'every temperature goes out as it is given, and none where none is given: the model then has its own',
  async () => {
    const model = always('yes')
    const agent = agentWith({ model })
    const given = [0, 0.3, 0.7, 1]
    for (const temperature of given) await agent.ask('go', { temperature })
    expect(model.requests.map(({ temperature }) => temperature)).toEqual(given)
    await agent.ask('go')
    expect(model.requests.at(-1)).not.toHaveProperty('temperature')
  },
)

verifies(
  ['agent-module/options max-tokens-default', 'agent-module/options max-tokens-required'],
  'a provider that demands a limit is always given one: 8192 where nothing or zero was said',
  async () => {
    const provider = await startFakeProvider()
    onTestFinished(() => provider.close())
    provider.script(() => ({ type: 'answer', content: [{ type: 'text', chunks: ['yes'] }] }))
    const model = anthropic({ model: 'claude-opus-5', apiKey: 'test', baseUrl: provider.baseUrl('anthropic') })
    const agent = agentWith({ model })
    for (const maxOutputTokens of [undefined, 0, 4096]) {
      await agent.ask('go', maxOutputTokens === undefined ? {} : { maxOutputTokens })
    }
    expect(provider.requests.map(({ body }) => body)).toMatchObject([
      { max_tokens: 8192 },
      { max_tokens: 8192 },
      { max_tokens: 4096 },
    ])
  },
)

verifies(
  ['agent-module/options session-id', 'agent-module/options current-session', 'agent-module/sessions isolation'],
  'each session has a history of its own, and a prompt without a session goes to the one of the agent',
  async () => {
    const model = always('yes')
    const agent = agentWith({ model })
    await agent.ask('to a', { sessionId: 'a' })
    await agent.ask('to the agent')
    await agent.ask('to a again', { sessionId: 'a' })
    await agent.ask('to the agent again')
    expect(brief(await agent.history('a'))).toEqual([
      'user: to a',
      'assistant: yes',
      'user: to a again',
      'assistant: yes',
    ])
    expect(model.requests.map(({ messages }) => brief(messages).at(0))).toEqual([
      'user: to a',
      'user: to the agent',
      'user: to a',
      'user: to the agent',
    ])
    await agent.clear('a')
    expect([await agent.history('a'), brief(await agent.history())]).toEqual([
      [],
      ['user: to the agent', 'assistant: yes', 'user: to the agent again', 'assistant: yes'],
    ])
  },
)

verifies(
  ['agent-module/options example'],
  'the example of options sends what it says to the session that it names',
  async () => {
    const model = always('Hi!')
    const agent = agentWith({ model })
    await agent.ask('Hello', { sessionId: 'session-123', temperature: 0.7, maxOutputTokens: 4096 })
    expect(model.requests).toMatchObject([{ temperature: 0.7, maxOutputTokens: 4096 }])
    expect((await agent.store.list()).sessions).toMatchObject([{ id: 'session-123', messageCount: 2 }])
  },
)

verifies(
  ['agent-module/agent history', 'agent-module/agent clear', 'agent-module/lifecycle sent-after-clear'],
  'a conversation that was cleared has no history, begins anew with the next message, and is still in the log',
  async () => {
    const model = always('yes')
    const agent = agentWith({ model })
    await agent.ask('before')
    expect(brief(await agent.history())).toEqual(['user: before', 'assistant: yes'])
    await agent.clear()
    expect(await agent.history()).toEqual([])
    await agent.ask('after')
    expect(brief(model.requests.at(-1)?.messages ?? [])).toEqual(['user: after'])
    expect(brief(await agent.history())).toEqual(['user: after', 'assistant: yes'])
    expect(await agent.store.search({ text: 'before' })).toMatchObject([{ sessionId: 'default' }])
  },
)
