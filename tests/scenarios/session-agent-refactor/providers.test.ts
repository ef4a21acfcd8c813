import { onlyModel, type Model } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { google } from '@tapetree/agent/models/google'
import { openai } from '@tapetree/agent/models/openai'
import { openaiCompatible } from '@tapetree/agent/models/openai-compatible'
import { startFakeProvider, type FakeApi, type FakeProvider, type FakeStep } from '@tapetree/agent/testing'
import { expect, onTestFinished } from 'vitest'
import { tool } from '../../golden/tool.ts'
import { verifies } from '../../support/verifies.ts'
import { finish, openAgent, pathOf, type OpenedAgent } from '../agent-session/opened-agent.ts'

const makers: Record<FakeApi, (connection: { baseUrl: string; apiKey: string }) => Model> = {
  anthropic: (connection) => anthropic({ ...connection, model: 'claude-opus-5' }),
  openai: (connection) => openai({ ...connection, model: 'gpt-5.5' }),
  google: (connection) => google({ ...connection, model: 'gemini-3.1-pro-preview' }),
  openaiCompatible: (connection) =>
    openaiCompatible({
      ...connection,
      model: 'local',
      name: 'local',
      limits: { contextTokens: 100_000, outputTokens: 4000, hasImages: false },
    }),
}

const longOutput = 'the same output '.repeat(100)

/** An agent with a model of this provider, which is a server on this machine; its one tool always says the same. */
async function openWith(api: FakeApi, ...steps: FakeStep[]): Promise<OpenedAgent & { provider: FakeProvider }> {
  const provider = await startFakeProvider()
  onTestFinished(() => provider.close())
  provider.script(...steps)
  const model = makers[api]({ baseUrl: provider.baseUrl(api), apiKey: 'test' })
  const look = tool('look', () => ({ content: longOutput }))
  return { ...(await openAgent({ models: onlyModel(model), tools: [look], thinkingLevel: 'high' })), provider }
}

function call(id: string): FakeStep {
  return { type: 'answer', content: [{ type: 'tool_call', id, name: 'look', chunks: ['{}'] }] }
}

const done: FakeStep = { type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }] }

/** The second request of a run whose first answer thought and then called: whether what proves the thought came back. */
async function sendsBack(api: FakeApi): Promise<boolean> {
  const signature = Buffer.from(`proof of ${api}`).toString('base64')
  const { agent, provider } = await openWith(
    api,
    {
      type: 'answer',
      content: [
        { type: 'reasoning', chunks: ['I ', 'look.'], signature },
        { type: 'tool_call', id: 'call_1', name: 'look', chunks: ['{}'] },
      ],
    },
    done,
  )
  expect(await finish(agent, 'go')).toMatchObject({ outcome: 'completed' })
  const path = await agent.session.getContextPath()
  expect(JSON.stringify(path)).toContain(signature)
  return JSON.stringify(provider.requests[1]?.body).includes(signature)
}

verifies(
  ['session-agent-refactor/5.1 anthropic-signature', 'session-agent-refactor/5.2 anthropic-signature'],
  'the signature of a thought of Anthropic is kept, and sent back with it',
  async () => {
    expect(await sendsBack('anthropic')).toBe(true)
  },
)

verifies(
  ['session-agent-refactor/5.1 google-signature'],
  'the thought signature of Google is kept with the call it belongs to, and sent back with it',
  async () => {
    expect(await sendsBack('google')).toBe(true)
  },
)

verifies(
  ['session-agent-refactor/5.1 openai-reasoning'],
  'the encrypted reasoning of OpenAI is kept, and sent back',
  async () => {
    expect(await sendsBack('openai')).toBe(true)
  },
)

verifies(
  [
    'session-agent-refactor/1 setup-with-cache-markers',
    'session-agent-refactor/5.1 cache-markers',
    'session-agent-refactor/5.2 cache-markers',
  ],
  'the provider is told to cache up to the tools, the system prompt, the last message and the one before the last answer',
  async () => {
    const { agent, provider } = await openWith('anthropic', call('call_1'), done)
    await finish(agent, 'go')
    const { tools, system, messages } = (provider.requests[1]?.body ?? {}) as Record<string, unknown[] | undefined>
    const marks = (value: unknown): number => JSON.stringify(value).split('"cache_control"').length - 1
    expect([marks(tools), marks(system)]).toEqual([1, 1])
    expect(messages?.map(marks)).toEqual([1, 0, 1])
  },
)

verifies(
  ['session-agent-refactor/5.1 dedupe'],
  'long output that a tool gave twice is sent once; the second time a note names the call that has it',
  async () => {
    const { agent, provider } = await openWith('anthropic', call('call_1'), call('call_2'), done)
    await finish(agent, 'go')
    const sent = JSON.stringify(provider.requests[2]?.body)
    expect(sent.split(longOutput)).toHaveLength(2)
    expect(sent).toContain('The same output as that of call call_1 above')
    expect((await pathOf(agent)).filter((line) => line.includes(longOutput))).toHaveLength(2)
  },
)

verifies(
  [
    'session-agent-refactor/5.1 transformations',
    'session-agent-refactor/5.1 system-messages',
    'session-agent-refactor/5.2 template-first',
  ],
  'one conversation goes to each provider in its own format, with the system prompt first and once',
  async () => {
    const results: Record<FakeApi, string> = {
      anthropic: '"type":"tool_result"',
      openai: '"type":"function_call_output"',
      google: '"functionResponse"',
      openaiCompatible: '"role":"tool"',
    }
    for (const [api, result] of Object.entries(results) as [FakeApi, string][]) {
      const { agent, provider } = await openWith(api, call('call_1'), done)
      expect(await finish(agent, 'go')).toMatchObject({ outcome: 'completed' })
      const body = provider.requests[1]?.body ?? {}
      const sent = JSON.stringify(body)
      expect([api, sent.includes(result), sent.split('You are a test.').length - 1]).toEqual([api, true, 1])
      // Where the system prompt is a message, it is the first.
      const messages = (body['input'] ?? (api === 'openaiCompatible' ? body['messages'] : undefined)) as
        | unknown[]
        | undefined
      if (messages) expect(JSON.stringify(messages[0])).toContain('You are a test.')
    }
  },
)

verifies(
  ['session-agent-refactor/5.1 context-images'],
  'a model that does not support images is sent words in their place',
  async () => {
    const { agent, provider } = await openWith('openaiCompatible', done)
    const bytes = Buffer.from('\x89PNG\r\n\x1a\nand so on', 'latin1')
    const outcome = await agent.prompt('What is this?', { images: [{ mediaType: 'image/png', bytes }] })
    if (outcome.type === 'started') expect(await outcome.run.done).toMatchObject({ outcome: 'completed' })
    const sent = JSON.stringify(provider.requests[0]?.body)
    expect([sent.includes(bytes.toString('base64')), sent.includes('does not support images')]).toEqual([false, true])
    expect(await pathOf(agent)).toEqual(['user: What is this? <image>', 'assistant: Done.'])
  },
)

verifies(
  ['session-manager/5.2 normalizing', 'session-manager/5.2 openai-parts', 'session-manager/5.2 google-text'],
  'the answers of each provider are the same blocks in the log, whatever their format was',
  async () => {
    const apis: FakeApi[] = ['anthropic', 'openai', 'google', 'openaiCompatible']
    for (const api of apis) {
      const { agent } = await openWith(api, call('call_1'), done)
      expect(await finish(agent, 'go')).toMatchObject({ outcome: 'completed' })
      const { messages } = await agent.session.getContext()
      const answers = messages
        .filter(({ message }) => message.role === 'assistant')
        .map(({ message }) => message.content)
      expect([api, answers]).toMatchObject([
        api,
        [
          [{ type: 'tool_use', toolUse: { id: expect.any(String) as string, name: 'look', input: {} } }],
          [{ type: 'text', text: { content: 'Done.' } }],
        ],
      ])
    }
  },
)
