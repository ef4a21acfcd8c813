import { FakeClock, script, type ScriptBuilder } from '@tapetree/agent/testing'
import { afterEach, describe, expect, test } from 'vitest'
import type { LiveSession } from '../live/live-session.ts'
import { memoryTracer, type KeptSpan } from './testing/memory-tracer.ts'
import { observedSessions, promptOf } from './testing/observed-session.ts'
import { tracing } from './traces.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const secret = 'a private word'

interface Traced {
  live: LiveSession
  spans: KeptSpan[]
  close: () => Promise<void>
}

async function traced(says: ScriptBuilder, options: { hasContent?: boolean } = {}): Promise<Traced> {
  const { provider, spans } = memoryTracer()
  const clock = new FakeClock(Date.now())
  const settings = { retry: { maxRetries: 1, baseMs: 0, capMs: 0, longestRetryAfterMs: 0, jitter: 0 } }
  const sessions = observedSessions({
    says,
    observers: [tracing({ provider, ...options })],
    agent: { settings: () => settings, clock },
  })
  cleanUps.push(() => sessions.close())
  const live = await sessions.get(await sessions.create({}))
  return { live, spans, close: () => sessions.close() }
}

const tree = (spans: readonly KeptSpan[]): string[] =>
  spans.map(({ name, parent, status }) => `${parent ?? ''} > ${name}${status ? ' failed' : ''}`)

const twoTurns = (): ScriptBuilder =>
  script()
    .text(`Let me see: ${secret}`)
    .toolCall('call-1', 'act', { path: secret })
    .toolResult('call-1', secret)
    .usage({ inputTokens: 100, outputTokens: 20, cacheReadTokens: 60, cacheWriteTokens: 5, reasoningTokens: 3 })
    .step()
    .text('Done.')

describe('a trace', () => {
  test('has a span for the run, and in it one for each model call and each tool', async () => {
    const { live, spans } = await traced(twoTurns())
    await promptOf(live, secret)
    const run = 'invoke_agent tapetree'
    expect(tree(spans)).toEqual([
      ` > ${run}`,
      `${run} > chat scripted-1`,
      `${run} > execute_tool act`,
      `${run} > chat scripted-1`,
    ])
    const ends = spans.map(({ startTime, endTime }) => (endTime ?? NaN) >= startTime)
    expect(ends).toEqual([true, true, true, true])
    const [whole, chat, tool] = spans
    expect(whole?.attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.conversation.id': live.session.id,
      'gen_ai.provider.name': 'scripted',
      'gen_ai.request.model': 'scripted-1',
      'gen_ai.agent.name': 'tapetree',
      'tapetree.run.id': expect.any(String),
      'tapetree.run.outcome': 'completed',
    })
    expect(chat?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.stream': true,
      'gen_ai.response.model': 'scripted-1',
      'gen_ai.response.finish_reasons': [expect.any(String)],
      'gen_ai.response.time_to_first_chunk': expect.any(Number),
      'gen_ai.usage.input_tokens': 100,
      'gen_ai.usage.output_tokens': 20,
      'gen_ai.usage.cache_read.input_tokens': 60,
      'gen_ai.usage.cache_creation.input_tokens': 5,
      'gen_ai.usage.reasoning.output_tokens': 3,
    })
    expect(tool?.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.conversation.id': live.session.id,
      'gen_ai.tool.name': 'act',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': 'call-1',
    })
  })

  test('contains no content, unless configured', async () => {
    const without = await traced(twoTurns())
    await promptOf(without.live, secret)
    expect(JSON.stringify(without.spans)).not.toContain(secret)
    const within = await traced(twoTurns(), { hasContent: true })
    await promptOf(within.live, secret)
    const names = within.spans.flatMap(({ attributes }) =>
      Object.entries(attributes).flatMap(([name, value]) => (String(value).includes(secret) ? [name] : [])),
    )
    expect(names).toEqual([
      'gen_ai.input.messages',
      'gen_ai.output.messages',
      'gen_ai.tool.call.arguments',
      'gen_ai.tool.call.result',
    ])
  })

  test('names the kind of a failure, not its text', async () => {
    const { live, spans } = await traced(script().error('auth', `no key: ${secret}`))
    await promptOf(live, 'go')
    expect(tree(spans)).toEqual([' > invoke_agent tapetree failed', 'invoke_agent tapetree > chat scripted-1 failed'])
    expect(spans.map(({ attributes }) => attributes['error.type'])).toEqual(['auth', 'auth'])
    expect(JSON.stringify(spans)).not.toContain(secret)
  })

  test.each([
    ['google', 'gcp.gemini'],
    ['google.vertex.chat', 'gcp.vertex_ai'],
    ['amazon-bedrock', 'aws.bedrock'],
    ['azure.responses', 'azure.ai.openai'],
    ['mistral', 'mistral_ai'],
    ['xai', 'x_ai'],
    ['openai.chat', 'openai'],
    ['openai-compatible', 'openai-compatible'],
    ['my-own', 'my-own'],
  ])('names the provider %s as the conventions do: %s', async (provider, name) => {
    const { live, spans } = await traced(script().text('Hi.'))
    const { driver } = live
    driver.config = () => ({ model: { provider, model_id: 'm' } })
    await promptOf(live, 'go')
    expect(spans.map(({ attributes }) => attributes['gen_ai.provider.name'])).toEqual([name, name])
  })

  test('of a tool that failed reports it', async () => {
    const says = script().toolCall('1', 'act').toolResult('1', { content: 'no', isError: true }).step().text('Hm.')
    const { live, spans } = await traced(says)
    await promptOf(live, 'go')
    expect(spans[2]).toMatchObject({ name: 'execute_tool act', attributes: { 'error.type': 'tool_error' } })
  })

  test('of a run belongs to the trace of the command that started it, also after a wait in the queue', async () => {
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const says = script()
      .do(() => begun.resolve())
      .do(() => go.promise)
      .text('one')
      .step()
      .text('two')
    const { live, spans } = await traced(says)
    const traceparent = (digit: string): string => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`
    const ended = Promise.withResolvers<void>()
    live.session.subscribe(({ line }) => {
      if (line.type === 'run_end' && spans.filter(({ parent }) => parent === 'b'.repeat(16)).length > 0) ended.resolve()
    })
    await live.perform('1', 'me', { op: 'prompt', args: { text: 'go' }, traceparent: traceparent('a') })
    await begun.promise
    await live.perform('2', 'me', { op: 'queue.add', args: { message: 'later' }, traceparent: traceparent('b') })
    go.resolve()
    await ended.promise
    expect(spans.map(({ name, traceId, parent }) => [name, traceId.charAt(0), parent])).toEqual([
      ['invoke_agent tapetree', 'a', 'a'.repeat(16)],
      ['chat scripted-1', 'a', 'invoke_agent tapetree'],
      ['invoke_agent tapetree', 'b', 'b'.repeat(16)],
      ['chat scripted-1', 'b', 'invoke_agent tapetree'],
    ])
  })

  test('leaves no span open when the session is closed midway', async () => {
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const says = script()
      .do(() => begun.resolve())
      .do(() => go.promise)
      .text('late')
    const { live, spans, close } = await traced(says)
    await live.perform('c', 'me', { op: 'prompt', args: { text: 'go' } })
    await begun.promise
    const closed = close()
    go.resolve()
    await closed
    expect(spans.filter(({ endTime }) => endTime === undefined)).toEqual([])
  })
})
