import { createModelRegistry } from '@tapetree/agent/models'
import { anthropic } from '@tapetree/agent/models/anthropic'
import {
  script,
  scriptedModel,
  startFakeProvider,
  type FakeAnswer,
  type FakeProvider,
  type ScriptBuilder,
} from '@tapetree/agent/testing'
import { isId, type Content, type Message } from '@tapetree/session'
import type { MessageEntry } from '@tapetree/session/format'
import { expect, onTestFinished } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { agentWith, brief, openAgent, say, toolThat } from './agents.ts'

const looking = (): ScriptBuilder =>
  script().reasoning('Where?', 'signed').text('I look.').toolCall('1', 'look', { at: 'here' }).step().text('A tree.')
const look = toolThat('look', () => ({ content: 'a tree' }))

/** An exchange with reasoning, text, a call and its result, as the log has it. */
async function exchange(): Promise<MessageEntry[]> {
  const agent = agentWith({ model: scriptedModel(looking()), tools: [look] })
  await agent.ask('What is there?')
  await using session = await agent.store.open('default')
  return (await session.getContextPath()).filter((entry) => entry.type === 'message')
}

function blocks<T extends Content['type']>(message: Message | undefined, type: T): (Content & { type: T })[] {
  return (message?.content ?? []).filter((block): block is Content & { type: T } => block.type === type)
}

verifies(
  ['agent-module/message id', 'agent-module/message created-at', 'agent-module/message role'],
  'every message has an id, a time and a role, and they come in the order in which they were said',
  async () => {
    const before = new Date().toISOString()
    const entries = await exchange()
    const after = new Date().toISOString()
    expect(entries.map(({ message }) => message.role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    const ids = entries.map(({ id }) => id)
    expect({ areIds: ids.every(isId), sorted: ids.toSorted(), different: new Set(ids).size }).toEqual({
      areIds: true,
      sorted: ids,
      different: 4,
    })
    const times = entries.map(({ timestamp }) => timestamp)
    expect([before, ...times, after].toSorted()).toEqual([before, ...times, after])
  },
)

verifies(
  ['agent-module/message content', 'agent-module/message reasoning', 'agent-module/message tool-calls'],
  'an answer has its reasoning, its text and its calls, in the order in which they came',
  async () => {
    const [, answer] = await exchange()
    expect(answer?.message.content).toEqual([
      { type: 'reasoning', reasoning: { text: 'Where?', signature: 'signed' } },
      { type: 'text', text: { content: 'I look.' } },
      { type: 'tool_use', toolUse: { id: '1', name: 'look', input: { at: 'here' } } },
    ])
  },
)

verifies(
  ['agent-module/tool-call id', 'agent-module/tool-call name', 'agent-module/tool-call input'],
  'a call has an id, the name of its tool and its input, which the tool is given',
  async () => {
    const given: unknown[] = []
    const see = toolThat('see', (input, { callId }) => {
      given.push({ callId, input })
      return { content: 'seen' }
    })
    const model = scriptedModel(script().toolCall('abc', 'see', '{"at": ["here", 2]}').step().text('done'))
    const agent = agentWith({ model, tools: [see] })
    await agent.ask('go')
    expect(blocks((await agent.history())[1], 'tool_use').map(({ toolUse }) => toolUse)).toEqual([
      { id: 'abc', name: 'see', input: { at: ['here', 2] } },
    ])
    expect(given).toEqual([{ callId: 'abc', input: { at: ['here', 2] } }])
  },
)

verifies(
  ['agent-module/message tool-results', 'agent-module/tool-result call-id', 'agent-module/tool-result name'],
  'each result is a message that names its call, and so its tool, whichever order they were made in',
  async () => {
    const tools = ['look', 'listen'].map((name) => toolThat(name, () => ({ content: `by ${name}` })))
    const model = scriptedModel(script().toolCall('b', 'listen').toolCall('a', 'look').step().text('done'))
    const agent = agentWith({ model, tools })
    await agent.ask('go')
    const [, answer, ...rest] = await agent.history()
    const names = new Map(blocks(answer, 'tool_use').map(({ toolUse }) => [toolUse.id, toolUse.name]))
    const results = rest.slice(0, 2).flatMap((message) => blocks(message, 'tool_result'))
    expect(results.map(({ toolResult: { toolUseId, content } }) => [names.get(toolUseId), content])).toEqual([
      ['listen', 'by listen'],
      ['look', 'by look'],
    ])
  },
)

verifies(
  ['agent-module/tool-result content', 'agent-module/tool-result is-error'],
  'a result has what the tool said, and says whether that was a failure',
  async () => {
    const fail = toolThat('fail', () => ({ content: 'no such file', isError: true }))
    const burst = toolThat('burst', () => Promise.reject(new Error('it broke')))
    const model = scriptedModel(
      script().toolCall('1', 'look').toolCall('2', 'fail').toolCall('3', 'burst').step().text('done'),
    )
    const agent = agentWith({ model, tools: [look, fail, burst] })
    await agent.ask('go')
    const results = (await agent.history()).flatMap((message) => blocks(message, 'tool_result'))
    expect(results.map(({ toolResult: { isError = false, content } }) => [isError, content])).toEqual([
      [false, 'a tree'],
      [true, 'no such file'],
      [true, expect.stringContaining('it broke')],
    ])
  },
)

verifies(
  ['agent-module/roles four', 'agent-module/roles user', 'agent-module/roles assistant'],
  'what the user says has the role user, what the model says the role assistant, and nobody else has these',
  async () => {
    const model = scriptedModel(script().text('I look.').toolCall('1', 'look').step().text('A tree.'))
    const agent = agentWith({ model, tools: [look], systemPrompt: 'Be brief.' })
    await agent.ask('What is there?')
    const spoken = (role: string): Promise<string[]> =>
      agent.history().then((messages) => brief(messages.filter((message) => message.role === role)))
    expect([await spoken('user'), await spoken('assistant'), await spoken('tool')]).toEqual([
      ['user: What is there?'],
      ['assistant: I look. [1]', 'assistant: A tree.'],
      ['tool: 1=a tree'],
    ])
  },
)

verifies(
  ['agent-module/roles tool', 'agent-module/roles tool-provides', 'agent-module/roles assistant-calls'],
  'an answer that calls a tool is followed by the result, with which the model is asked again',
  async () => {
    const model = scriptedModel(script().toolCall('1', 'look').step().text('A tree.'))
    const agent = agentWith({ model, tools: [look] })
    await agent.ask('What is there?')
    expect(model.requests.map(({ messages }) => brief(messages))).toEqual([
      ['user: What is there?'],
      ['user: What is there?', 'assistant: [1]', 'tool: 1=a tree'],
    ])
  },
)

verifies(
  ['agent-module/roles processing', 'agent-module/roles user-triggers'],
  'a message of the user is answered; one that is only added to the session is not, until somebody asks',
  async () => {
    const model = scriptedModel([], { otherwise: () => script().text('yes') })
    const agent = await openAgent(model)
    await agent.session.appendMessage('assistant', [{ type: 'text', text: { content: 'Welcome.' } }])
    expect(model.requests).toEqual([])
    await say(agent, 'Is it so?')
    expect(model.requests.map(({ messages }) => brief(messages))).toEqual([['assistant: Welcome.', 'user: Is it so?']])
    expect(brief((await agent.session.getContext()).messages.map(({ message }) => message)).at(-1)).toBe(
      'assistant: yes',
    )
  },
)

const thinking: FakeAnswer = {
  type: 'answer',
  content: [
    { type: 'reasoning', chunks: ['Let me ', 'think.'], signature: 'c2lnbmVk' },
    { type: 'text', chunks: ['Done.'] },
  ],
}

async function fakeProvider(...answers: FakeAnswer[]): Promise<FakeProvider> {
  const provider = await startFakeProvider()
  onTestFinished(() => provider.close())
  provider.script(...answers)
  return provider
}

verifies(
  ['agent-module/reasoning captured', 'agent-module/message reasoning-metadata', 'agent-module/reasoning added'],
  'reasoning of models that show it is kept with the message, and with the signature of the provider',
  async () => {
    const provider = await fakeProvider(thinking, thinking)
    const model = anthropic({ model: 'claude-opus-5', apiKey: 'test', baseUrl: provider.baseUrl('anthropic') })
    const { model: local } = await createModelRegistry({ env: {} }).open(
      `${provider.baseUrl('openaiCompatible')}#thinker`,
    )
    const kept: unknown[] = []
    for (const each of [model, local]) {
      const agent = await openAgent(each, { thinkingLevel: 'low' })
      expect(await say(agent, 'go')).toMatchObject({ outcome: 'completed' })
      const [, answer] = (await agent.session.getContext()).messages
      kept.push(answer?.message.content)
    }
    const done = { type: 'text', text: { content: 'Done.' } }
    expect(kept).toMatchObject([
      [{ type: 'reasoning', reasoning: { text: 'Let me think.', signature: 'c2lnbmVk' } }, done],
      [{ type: 'reasoning', reasoning: { text: 'Let me think.' } }, done],
    ])
  },
)

verifies(
  ['agent-module/reasoning start', 'agent-module/reasoning delta', 'agent-module/reasoning end'],
  'reasoning is told as it comes, apart from the text, and is whole in the message',
  async () => {
    const model = scriptedModel(
      script().reasoningStart().reasoningDelta('First ').reasoningDelta('this.').reasoningEnd('signed').text('So.'),
    )
    const agent = await openAgent(model)
    const told = { reasoning: '', text: '' }
    agent.subscribe((event) => {
      if (event.type === 'delta' && (event.kind === 'reasoning' || event.kind === 'text'))
        told[event.kind] += event.text
    })
    await say(agent, 'go')
    expect(told).toEqual({ reasoning: 'First this.', text: 'So.' })
    expect((await agent.session.getContext()).messages[1]?.message.content).toEqual([
      { type: 'reasoning', reasoning: { text: 'First this.', signature: 'signed' } },
      { type: 'text', text: { content: 'So.' } },
    ])
  },
)

verifies(
  ['agent-module/reasoning not-sent', 'agent-module/reasoning only-text-and-calls'],
  'reasoning never goes back where that is chosen, never to another model, and is in the log all the same',
  async () => {
    const sent = async (reasoning: 'never' | 'auto'): Promise<unknown> => {
      const model = scriptedModel(looking())
      const other = scriptedModel(script().text('Yes.'), { id: 'other' })
      const models = { open: (_: string, id: string) => Promise.resolve(id === 'other' ? other : model) }
      const agent = await openAgent(model, {
        tools: () => [look],
        settings: () => ({ reasoning }),
        models: { ...models, choices: () => Promise.resolve([{ provider: 'scripted', modelId: 'scripted-1' }]) },
      })
      await say(agent, 'go')
      await agent.setModel('scripted', 'other')
      await say(agent, 'sure?')
      const path = await agent.session.getContextPath()
      const kept = path.flatMap((entry) => (entry.type === 'message' ? blocks(entry.message, 'reasoning') : []))
      return {
        kept: kept.length,
        same: brief(model.requests[1]?.messages ?? [])[1],
        other: brief(other.requests[0]?.messages ?? [])[1],
      }
    }
    const without = 'assistant: I look. [1]'
    expect(await sent('never')).toEqual({ kept: 1, same: without, other: without })
    expect(await sent('auto')).toEqual({ kept: 1, same: 'assistant: (Where?) I look. [1]', other: without })
  },
)

verifies(
  ['agent-module/history converts', 'agent-module/history user', 'agent-module/history assistant'],
  'the messages of a session reach a provider in its own format, text and calls in one message of the assistant',
  async () => {
    const call: FakeAnswer = {
      type: 'answer',
      content: [
        { type: 'text', chunks: ['I look.'] },
        { type: 'tool_call', id: 'call_1', name: 'look', chunks: ['{"at":"here"}'] },
      ],
    }
    const provider = await fakeProvider(call, { type: 'answer', content: [{ type: 'text', chunks: ['A tree.'] }] })
    const model = anthropic({ model: 'claude-opus-5', apiKey: 'test', baseUrl: provider.baseUrl('anthropic') })
    await agentWith({ model, tools: [look] }).ask('What is there?')
    expect(provider.requests[1]?.body).toMatchObject({
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'What is there?' }] },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'I look.' },
            { type: 'tool_use', id: 'call_1', name: 'look', input: { at: 'here' } },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1' }] },
      ],
    })
  },
)

verifies(
  ['agent-module/history tool', 'agent-module/history last-excluded'],
  'a request has every result behind its call, and ends with what the user says now, which is in it once',
  async () => {
    const model = scriptedModel(script().toolCall('1', 'look').step().text('A tree.').step().text('Green.'))
    const agent = agentWith({ model, tools: [look] })
    await agent.ask('What is there?')
    await agent.ask('Which colour?')
    expect(brief(model.requests.at(-1)?.messages ?? [])).toEqual([
      'user: What is there?',
      'assistant: [1]',
      'tool: 1=a tree',
      'assistant: A tree.',
      'user: Which colour?',
    ])
  },
)
