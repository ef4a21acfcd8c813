import { afterEach, describe, expect, test } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { createAgent, type Agent } from './create-agent.ts'

const agents: Agent[] = []
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.close()
})

describe('an agent in a few lines', () => {
  test('answers, calls its tools, and reports it as it happens', async () => {
    const model = scriptedModel(
      script().text('Let me ', 'look.').toolCall('1', 'look').toolResult('1', 'a tree').step().text('A tree.'),
    )
    const agent = createAgent({ model, tools: [model.tool('look')], systemPrompt: 'Be brief.' })
    agents.push(agent)
    let told = ''
    await agent.ask('What is there?', {
      onTextDelta: (text) => void (told += text),
      onToolCall: ({ name }) => void (told += ` [${name}]`),
      onToolResult: ({ content }) => void (told += ` = ${JSON.stringify(content)} `),
      onComplete: () => void (told += ' Complete.'),
    })
    expect(told).toBe('Let me look. [look] = "a tree" A tree. Complete.')
    expect((await agent.history()).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    expect(model.requests[0]).toMatchObject({ system: 'Be brief.', maxOutputTokens: 8192 })
  })

  test('reports an error, and how the run ended', async () => {
    const model = scriptedModel(script().error('auth', 'no key'))
    const agent = createAgent({ model })
    agents.push(agent)
    const errors: string[] = []
    expect(await agent.ask('hi', { onError: ({ message }) => errors.push(message) })).toMatchObject({
      outcome: 'failed',
    })
    expect(errors).toEqual(['no key'])
  })

  test('is busy while it answers, rejects a second prompt, and can be cancelled', async () => {
    const clock = new FakeClock()
    const asked = Promise.withResolvers<void>()
    const model = scriptedModel(
      script()
        .do(() => asked.resolve())
        .wait(1000),
      { clock },
    )
    const agent = createAgent({ model })
    agents.push(agent)
    const sent = agent.ask('go')
    await asked.promise
    expect(agent.isBusy()).toBe(true)
    await expect(agent.ask('me too')).rejects.toMatchObject({ code: 'session-busy' })
    await agent.abort()
    expect(await sent).toMatchObject({ outcome: 'aborted' })
    expect(agent.isBusy()).toBe(false)
    await expect(agent.ask(' ')).rejects.toMatchObject({ code: 'empty-prompt' })
  })

  test('starts over, with another prompt, other tools and another model', async () => {
    const first = scriptedModel(script().text('one'))
    const agent = createAgent({ model: first })
    agents.push(agent)
    await agent.ask('hi')
    await agent.clear()
    expect(await agent.history()).toEqual([])
    const second = scriptedModel(script().text('two'), { id: 'second' })
    agent.setModel(second)
    agent.setSystemPrompt('Other.')
    agent.setTools([second.tool('touch')])
    await agent.ask('hi again', { temperature: 0.2, maxOutputTokens: 100 })
    expect(second.requests).toMatchObject([
      { system: 'Other.', temperature: 0.2, maxOutputTokens: 100, tools: [{ name: 'touch' }] },
    ])
  })

  test('keeps sessions separate', async () => {
    const model = scriptedModel(script().text('one').step().text('two'))
    const agent = createAgent({ model })
    agents.push(agent)
    await agent.ask('hi', { sessionId: 'a' })
    await agent.ask('ho', { sessionId: 'b' })
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 1])
    expect(await agent.history('a')).toHaveLength(2)
  })

  test('is busy from the moment of `send`, and can be cancelled from then on', async () => {
    const model = scriptedModel(script().wait(1000), { clock: new FakeClock() })
    const agent = createAgent({ model })
    agents.push(agent)
    const sent = agent.ask('go', { maxOutputTokens: 1 })
    expect(agent.isBusy()).toBe(true)
    await expect(agent.ask('me too', { maxOutputTokens: 2 })).rejects.toMatchObject({ code: 'session-busy' })
    await agent.abort()
    expect(await sent).toMatchObject({ outcome: 'aborted' })
    expect(model.requests.map(({ maxOutputTokens }) => maxOutputTokens)).not.toContain(2)
    expect(agent.isBusy()).toBe(false)
  })

  test('keeps its sessions in a store, under the given ids', async () => {
    const model = scriptedModel([], { otherwise: () => script().text('yes') })
    const agent = createAgent({ model, cwd: '/project' })
    agents.push(agent)
    await agent.ask('hi', { sessionId: 'session-123' })
    const made = await agent.store.create({ name: 'Mine' })
    await agent.ask('ho', { sessionId: made.id, maxOutputTokens: 0 })
    await made.close()
    const { sessions } = await agent.store.list()
    expect(sessions.map(({ id }) => id).toSorted()).toEqual([made.id, 'session-123'].toSorted())
    expect(sessions.find(({ id }) => id === 'session-123')).toMatchObject({ cwd: '/project', messageCount: 2 })
    expect(model.requests.at(-1)).toMatchObject({ maxOutputTokens: 8192, messages: [{ role: 'user' }] })
    await expect(agent.ask('hi', { sessionId: '../up' })).rejects.toMatchObject({ code: 'invalid-id' })
    expect(agent.isBusy('../up')).toBe(false)
  })
})
