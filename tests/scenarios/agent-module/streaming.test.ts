import { agentEvents, toolEvents, type AgentViewEvent, type ToolViewEvent } from '@tapetree/agent'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '@tapetree/agent/testing'
import type { Content } from '@tapetree/session'
import { expect } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { agentWith, brief, openAgent, say, toolThat } from './agents.ts'

const look = toolThat('look', () => ({ content: 'a tree' }))
const fail = toolThat('fail', () => ({ content: 'no such file', isError: true }))
const looking = (): ScriptBuilder => script().text('I look. ').toolCall('1', 'look').step().text('A tree.')

/** Sends a prompt and writes down what is called back, neighbouring text as one. */
async function calledBack(model: ScriptedModel): Promise<string[]> {
  const told: string[] = []
  const agent = agentWith({ model, tools: [look, fail] })
  await agent.ask('go', {
    onTextDelta: (text) => {
      if (told.at(-1)?.startsWith('says ')) told.push(`${told.pop()}${text}`)
      else told.push(`says ${text}`)
    },
    onToolCall: ({ id, name }) => told.push(`calls ${name} ${id}`),
    onToolResult: ({ toolUseId, content, isError }) =>
      told.push(`${isError ? 'failed' : 'result'} ${toolUseId} ${JSON.stringify(content)}`),
    onComplete: () => told.push('complete'),
    onError: ({ message }) => told.push(`error ${message}`),
  })
  return told
}

verifies(
  ['agent-module/callbacks real-time', 'agent-module/callbacks on-text-delta', 'agent-module/flow text-delta'],
  'each chunk of text is told before the model says the next one',
  async () => {
    let heard = ''
    const heardBefore: string[] = []
    const note = (): number => heardBefore.push(heard)
    const model = scriptedModel(script().text('One ').do(note).text('two ').do(note).text('three.').do(note))
    await agentWith({ model }).ask('count', { onTextDelta: (text) => void (heard += text) })
    expect(heardBefore.slice(0, 2)).toEqual(['One ', 'One two '])
    expect(heard).toBe('One two three.')
  },
)

verifies(
  ['agent-module/callbacks on-tool-call', 'agent-module/flow tool-call', 'agent-module/tools called-back-first'],
  'a call is told when the model has made it, and before its tool begins',
  async () => {
    const steps: string[] = []
    const slow = toolThat('look', () => {
      steps.push('runs')
      return { content: 'a tree' }
    })
    const agent = agentWith({ model: scriptedModel(looking()), tools: [slow] })
    await agent.ask('go', {
      onToolCall: (call) => steps.push(`call ${JSON.stringify(call)}`),
      onToolResult: () => steps.push('result'),
    })
    expect(steps).toEqual(['call {"id":"1","name":"look","input":{}}', 'runs', 'result'])
  },
)

verifies(
  ['agent-module/callbacks on-tool-result', 'agent-module/flow tells-result', 'agent-module/tools both-are-told'],
  'a result is told whether the tool succeeded or failed',
  async () => {
    const model = scriptedModel(script().toolCall('1', 'look').toolCall('2', 'fail').step().text('So.'))
    expect(await calledBack(model)).toEqual([
      'calls look 1',
      'calls fail 2',
      'result 1 "a tree"',
      'failed 2 "no such file"',
      'says So.',
      'complete',
    ])
  },
)

verifies(
  ['agent-module/callbacks on-complete'],
  'it is told once that the response is complete, after everything else, and not where it failed',
  async () => {
    expect(await calledBack(scriptedModel(looking()))).toEqual([
      'says I look. ',
      'calls look 1',
      'result 1 "a tree"',
      'says A tree.',
      'complete',
    ])
    expect(await calledBack(scriptedModel(script().text('Well ').error('auth', 'no key')))).not.toContain('complete')
  },
)

verifies(
  ['agent-module/callbacks on-error'],
  'an error is told once, with a sentence on what went wrong, and a callback that throws is no error of the run',
  async () => {
    expect(await calledBack(scriptedModel(script().text('Well ').error('auth', 'The key was refused.')))).toEqual([
      'says Well ',
      'error The key was refused.',
    ])
    const agent = agentWith({ model: scriptedModel(looking()), tools: [look] })
    const burst = (): never => {
      throw new Error('the screen is gone')
    }
    expect(await agent.ask('go', { onTextDelta: burst, onToolCall: burst, onComplete: burst })).toMatchObject({
      outcome: 'completed',
    })
    expect(await agent.history()).toHaveLength(4)
  },
)

verifies(
  ['agent-module/tools in-the-loop', 'agent-module/tools executed', 'agent-module/flow executes-tool'],
  'the loop runs the tools that the model asks for, until it asks for none',
  async () => {
    const ran: string[] = []
    const count = toolThat('count', (input, { callId }) => {
      ran.push(`${callId} ${JSON.stringify(input)}`)
      return { content: 'counted' }
    })
    const model = scriptedModel(
      script()
        .toolCall('1', 'count', { n: 1 })
        .step()
        .toolCall('2', 'count', { n: 2 })
        .toolCall('3', 'count', { n: 3 })
        .step()
        .text('done'),
    )
    const agent = agentWith({ model, tools: [count] })
    await agent.ask('count')
    expect(ran).toEqual(['1 {"n":1}', '2 {"n":2}', '3 {"n":3}'])
    expect(model.requests).toHaveLength(3)
  },
)

verifies(
  ['agent-module/tools result-created', 'agent-module/tools message-added', 'agent-module/tools goes-on'],
  'when a tool is done, its result is a message of the session, and the model goes on with it',
  async () => {
    const model = scriptedModel(looking())
    const agent = agentWith({ model, tools: [look] })
    await agent.ask('go')
    const [, , result, last] = await agent.history()
    expect(result).toMatchObject({
      role: 'tool',
      content: [{ type: 'tool_result', toolResult: { toolUseId: '1', content: 'a tree' } }],
    })
    expect(model.requests[1]?.messages.at(-1)).toEqual(result)
    expect(brief(last ? [last] : [])).toEqual(['assistant: A tree.'])
  },
)

verifies(
  ['agent-module/tools success', 'agent-module/tools error'],
  'text is a success; a tool that says so, throws, is unknown or is called wrongly has failed, with a message',
  async () => {
    const burst = toolThat('burst', () => Promise.reject(new Error('it broke')))
    const picky = { ...look, name: 'picky', check: () => 'There must be a path.' }
    const model = scriptedModel(
      script()
        .toolCall('1', 'look')
        .toolCall('2', 'fail')
        .toolCall('3', 'burst')
        .toolCall('4', 'nobody')
        .toolCall('5', 'picky')
        .step()
        .text('So.'),
    )
    const results: string[] = []
    const agent = agentWith({ model, tools: [look, fail, burst, picky] })
    const end = await agent.ask('go', {
      onToolResult: ({ isError = false, content }) =>
        results.push(`${isError ? 'failed' : 'ok'}: ${JSON.stringify(content)}`),
    })
    expect(results).toEqual([
      'ok: "a tree"',
      'failed: "no such file"',
      expect.stringMatching(/^failed: .*it broke/),
      expect.stringMatching(/^failed: .*nobody/),
      'failed: "There must be a path."',
    ])
    expect(end).toMatchObject({ outcome: 'completed' })
  },
)

verifies(
  ['agent-module/tools media'],
  'a tool may return an image, which is kept and goes to the model with its result',
  async () => {
    const image: Content = {
      type: 'image',
      image: { source: { type: 'base64', mediaType: 'image/png', data: 'iVBORw==' } },
    }
    const photograph = toolThat('look', () => ({ content: [{ type: 'text', text: { content: 'A tree:' } }, image] }))
    const model = scriptedModel(looking())
    const agent = agentWith({ model, tools: [photograph] })
    await agent.ask('go')
    const [result] = model.requests[1]?.messages.at(-1)?.content ?? []
    expect(result).toMatchObject({ toolResult: { toolUseId: '1', content: [{ type: 'text' }, image] } })
    expect((await agent.history())[2]?.content).toMatchObject([
      { toolResult: { content: [{ type: 'text' }, { type: 'image' }] } },
    ])
  },
)

interface Heard {
  agent: (AgentViewEvent & { sessionId: string })[]
  tool: (ToolViewEvent & { sessionId: string })[]
  sessionId: string
  /** The ids of the messages, in their order. */
  ids: string[]
}

/** What both views tell of one prompt. */
async function heardOf(model: ScriptedModel): Promise<Heard> {
  const agent = await openAgent(model, { tools: () => [look, fail] })
  const heard: Pick<Heard, 'agent' | 'tool'> = { agent: [], tool: [] }
  agentEvents(agent, (event) => heard.agent.push(event))
  toolEvents(agent, (event) => heard.tool.push(event))
  await say(agent, 'go')
  const ids = (await agent.session.getContext()).messages.map(({ entryId }) => entryId)
  return { ...heard, sessionId: agent.session.id, ids }
}

verifies(
  ['agent-module/events hub', 'agent-module/events two-brokers'],
  'the two views are apart, go on while one listener throws, and tell nothing to those who have left',
  async () => {
    const agent = await openAgent(scriptedModel([], { otherwise: () => script().text('yes') }))
    const log: string[] = []
    agentEvents(agent, () => {
      throw new Error('the screen is gone')
    })
    const leave = agentEvents(agent, ({ type }) => log.push(`agent ${type}`))
    toolEvents(agent, ({ type }) => log.push(`tool ${type}`))
    await say(agent, 'go')
    expect(new Set(log)).toEqual(new Set(['agent text_delta', 'agent complete']))
    leave()
    const before = log.length
    await say(agent, 'go on')
    expect(log).toHaveLength(before)
  },
)

verifies(
  ['agent-module/events text-delta', 'agent-module/events tool-call', 'agent-module/events tool-result'],
  'the view of the agent tells of text, of calls and of results, in their order',
  async () => {
    const { agent } = await heardOf(scriptedModel(looking()))
    const order = agent.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1])
    expect(order).toEqual(['text_delta', 'tool_call', 'tool_result', 'text_delta', 'complete'])
    expect(agent.flatMap((event) => (event.type === 'text_delta' ? [event.text] : [])).join('')).toBe('I look. A tree.')
    expect(agent.find(({ type }) => type === 'tool_call')).toMatchObject({ call: { id: '1', name: 'look' } })
    expect(agent.find(({ type }) => type === 'tool_result')).toMatchObject({ result: { content: 'a tree' } })
  },
)

verifies(
  ['agent-module/events complete', 'agent-module/events error'],
  'the last event of the agent is that it is complete, or what went wrong',
  async () => {
    const [good, bad] = [scriptedModel(looking()), scriptedModel(script().text('Well ').error('auth', 'no key'))]
    expect((await heardOf(good)).agent.at(-1)).toMatchObject({ type: 'complete' })
    expect((await heardOf(bad)).agent.at(-1)).toMatchObject({ type: 'error', message: 'no key' })
  },
)

verifies(
  ['agent-module/events tool-started', 'agent-module/events tool-completed', 'agent-module/events tool-failed'],
  'the view of the tools tells when each begins, and whether it succeeds or fails',
  async () => {
    const { tool } = await heardOf(
      scriptedModel(script().toolCall('1', 'look').toolCall('2', 'fail').step().text('So.')),
    )
    expect(tool).toMatchObject([
      { type: 'tool_started', callId: '1', name: 'look' },
      { type: 'tool_completed', callId: '1', result: { content: 'a tree' } },
      { type: 'tool_started', callId: '2', name: 'fail' },
      { type: 'tool_failed', callId: '2', result: { content: 'no such file' } },
    ])
  },
)

verifies(
  ['agent-module/events correlation'],
  'every event names its session and its message: text, calls and tools their answer, a result itself, the end the last answer',
  async () => {
    const { agent, tool, sessionId, ids } = await heardOf(scriptedModel(looking()))
    const [, first, result, last] = ids
    expect(new Set([...agent, ...tool].map((event) => event.sessionId))).toEqual(new Set([sessionId]))
    const places = [...agent, ...tool].map(({ type, messageId }) => `${type} ${ids.indexOf(messageId)}`)
    expect([...new Set(places)]).toEqual([
      'text_delta 1',
      'tool_call 1',
      'tool_result 2',
      'text_delta 3',
      'complete 3',
      'tool_started 1',
      'tool_completed 1',
    ])
    expect([first, result, last].every((id) => id !== undefined)).toBe(true)
    const failed = await heardOf(scriptedModel(script().text('Well ').error('auth', 'no key')))
    expect(new Set(failed.agent.map(({ messageId }) => messageId)).size).toBe(1)
  },
)
