import { text, type Content } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { noHooks } from './hooks.ts'
import { defaultRunSettings } from './run-settings.ts'

describe('a request', () => {
  test('has the prompt, the tools and the messages of the session, and nothing that is not set', async () => {
    const model = scriptedModel(script().text('hello'))
    await (await TestAgent.open({ model })).prompt('hi')
    const { messages, ...rest } = model.requests[0]!
    expect(messages).toMatchObject([{ role: 'user', content: [text('hi')] }])
    expect(Object.keys(rest).sort()).toEqual(['leafId', 'system', 'thinkingLevel', 'tools'])
    expect(rest).toMatchObject({ system: 'You are a test.', tools: [], thinkingLevel: 'off' })
  })

  test('has the limit of the answer and the temperature of the settings', async () => {
    const model = scriptedModel(script().text('hello'))
    await (await TestAgent.open({ model, settings: { maxOutputTokens: 77, temperature: 0 } })).prompt('hi')
    expect(model.requests[0]).toMatchObject({ maxOutputTokens: 77, temperature: 0 })
  })

  test('carries the bytes of an image, of which the log has only a reference', async () => {
    const model = scriptedModel(script().text('a dot'))
    const agent = await TestAgent.open({ model })
    const bytes = Buffer.from('89504e470d0a1a0a', 'hex')
    const blob = await agent.session.putBlob(bytes)
    const stored: Content = { type: 'image', image: { source: { type: 'blob', mediaType: 'image/png', ...blob } } }
    await agent.run({ type: 'prompt', content: [text('What is this?'), stored] })
    expect(JSON.stringify(model.requests[0]?.messages)).toContain(bytes.toString('base64'))
  })

  test('names in the log the extensions that changed its messages', async () => {
    const model = scriptedModel(script().text('one').step().text('two'))
    const agent = await TestAgent.open({ model })
    await agent.prompt('plain')
    agent.deps.hooks = {
      ...noHooks,
      context: (messages) => Promise.resolve({ messages: messages.slice(-1), changedBy: ['shortener'] }),
    }
    await agent.prompt('changed')
    const answers = (await agent.session.getContextPath()).filter(
      (entry) => entry.type === 'message' && entry.message.role === 'assistant',
    )
    expect(answers.map((entry) => JSON.stringify(entry).includes('shortener'))).toEqual([false, true])
    expect(model.requests[1]?.messages).toHaveLength(1)
  })
})

describe('a nearly full context', () => {
  const long = 'some words to sum up, '.repeat(50)
  const limits = { contextTokens: 4000, outputTokens: 1000 }
  const first = () => script().text(long).usage({ inputTokens: 5000, outputTokens: 1 }).step()
  const compactions = ({ events }: TestAgent): unknown[] =>
    events.filter((event) => 'type' in event && event.type.startsWith('auto_compaction'))

  test('is compacted before the request, and observers hear when it starts and how it ends', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(first().text('a summary').step().text('2'), { limits }) })
    await agent.prompt(long)
    await agent.prompt('go')
    expect(compactions(agent)).toMatchObject([
      { type: 'auto_compaction_start', reason: 'threshold' },
      { type: 'auto_compaction_end', reason: 'threshold', outcome: 'compacted' },
    ])
    expect((await agent.lineTypes()).filter((type) => type === 'compaction')).toHaveLength(1)
  })

  test('is sent as it is if compacting is switched off', async () => {
    const compaction = { ...defaultRunSettings.compaction, isEnabled: false }
    const model = scriptedModel(first().text('2'), { limits })
    const agent = await TestAgent.open({ model, settings: { compaction } })
    await agent.prompt(long)
    await agent.prompt('go')
    expect(compactions(agent)).toEqual([])
    expect(await agent.path()).toHaveLength(4)
  })

  test('is sent as it is if the summary fails, and compacting is not tried again in that run', async () => {
    const model = scriptedModel(
      first()
        .error('refused')
        .step()
        .toolCall('1', 'act')
        .usage({ inputTokens: 5000, outputTokens: 1 })
        .step()
        .text('2'),
      { limits },
    )
    const agent = await TestAgent.open({ model, tools: [model.tool('act')] })
    await agent.prompt(long)
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    expect(compactions(agent)).toMatchObject([
      { type: 'auto_compaction_start' },
      { type: 'auto_compaction_end', outcome: 'failed' },
    ])
  })

  test('is not sent if the run is stopped while it is being compacted', async () => {
    const model = scriptedModel(
      first()
        .do(() => agent.abort())
        .error('refused')
        .step()
        .text('never'),
      { limits },
    )
    const agent: TestAgent = await TestAgent.open({ model })
    await agent.prompt(long)
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'aborted' })
    expect((await agent.path()).at(-1)).toBe('user: go')
  })
})
