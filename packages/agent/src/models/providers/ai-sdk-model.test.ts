import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { text } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { FakeClock } from '../../testing/fake-clock.ts'
import { adaptedModel, type AiSdkModelOptions } from './ai-sdk-model.ts'
import type { Model, ModelPart, ModelRequest } from '../model.ts'
import { anthropicFacts, openaiFacts } from '../provider-facts.ts'

const request: ModelRequest = {
  system: 'Be brief.',
  tools: [{ name: 'read', description: 'Reads a file.', inputSchema: { type: 'object' } }],
  messages: [{ role: 'user', content: [text('go')] }],
  thinkingLevel: 'high',
}

describe('prepare', () => {
  test('sends nothing, and returns the same for the same request', () => {
    const { model, calls } = modelOf([])
    expect(model.prepare(request).reference).toEqual(model.prepare(structuredClone(request)).reference)
    expect(calls).toEqual([])
  })

  test('returns the parameters that the call depends on', () => {
    const { model } = modelOf([])
    const { reference } = model.prepare({ ...request, temperature: 0.5, maxOutputTokens: 100 })
    expect(reference).toEqual({
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      adapter: 'ai-sdk',
      adapterVersion: '2',
      params: { thinkingLevel: 'high', maxOutputTokens: 100, temperature: 0.5 },
    })
  })

  test.each([
    ['the system prompt', { system: 'Be long.' }],
    ['the tools', { tools: [] }],
    ['the messages', { messages: [{ role: 'user', content: [text('stop')] }] }],
    ['the thinking level', { thinkingLevel: 'low' }],
    ['the temperature', { temperature: 1 }],
    ['the output', { maxOutputTokens: 7 }],
  ] as [string, Partial<ModelRequest>][])('%s changes the hash', (_, change) => {
    const { model } = modelOf([])
    expect(model.prepare({ ...request, ...change }).reference.sha256).not.toBe(model.prepare(request).reference.sha256)
  })

  test('so does the model, its provider, and the cache key', () => {
    const hash = (given: Partial<AiSdkModelOptions>): string =>
      modelOf([], given).model.prepare(request).reference.sha256
    const hashes = [{}, { provider: 'other' }, { facts: openaiFacts }, { facts: openaiFacts, promptCacheKey: 'k' }].map(
      hash,
    )
    expect(new Set(hashes).size).toBe(4)
  })

  test('the messages of a request are not changed', () => {
    const { model } = modelOf([])
    const before = structuredClone(request)
    model.prepare(request)
    expect(request).toEqual(before)
  })

  test('does not exceed the output limit of the model, and allows more output for more thinking', () => {
    const most = (given: Partial<ModelRequest>, outputTokens = 128_000): unknown =>
      modelOf([], { limits: { outputTokens } }).model.prepare({ ...request, ...given }).reference.params
    expect(most({})).toMatchObject({ maxOutputTokens: 32_000 })
    expect(most({ thinkingLevel: 'max' })).toMatchObject({ maxOutputTokens: 64_000 })
    expect(most({}, 8000)).toMatchObject({ maxOutputTokens: 8000 })
    expect(most({ maxOutputTokens: 100_000 }, 8000)).toMatchObject({ maxOutputTokens: 8000 })
  })
})

describe('stream', () => {
  const finish: LanguageModelV4StreamPart = {
    type: 'finish',
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: {
      inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: 5, text: undefined, reasoning: undefined },
    },
  }
  const hello: LanguageModelV4StreamPart[] = [
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'Hi' },
    { type: 'text-end', id: '0' },
  ]

  test('returns the counts of the provider, and nothing for missing ones', async () => {
    const { model } = modelOf([...hello, finish])
    expect((await collect(model)).slice(-2)).toEqual([
      { type: 'usage', usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } },
      { type: 'finish', reason: 'stop' },
    ])
  })

  test('an answer without an end fails', async () => {
    await expect(collect(modelOf(hello).model)).rejects.toMatchObject({ kind: 'network' })
  })

  test('the last of several ends counts', async () => {
    const first = { ...finish, finishReason: { unified: 'interrupted', raw: undefined } } as const
    const parts = await collect(modelOf([...hello, first, ...hello, finish]).model)
    expect(parts.filter(({ type }) => type === 'finish')).toEqual([{ type: 'finish', reason: 'stop' }])
  })

  test('a connection that breaks after the end does not matter', async () => {
    const { model } = modelOf([...hello, finish, new Error('cut')])
    expect((await collect(model)).at(-1)).toEqual({ type: 'finish', reason: 'stop' })
  })

  test('a connection that stays open after the end is not waited for', async () => {
    const clock = new FakeClock()
    const { model } = modelOf([...hello, finish, 'hang'], { clock })
    const parts = collect(model)
    while (clock.waits[0] !== 2000) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(2000)
    expect((await parts).at(-1)).toEqual({ type: 'finish', reason: 'stop' })
  })

  test('silent thinking has the longer limit, writing the shorter one', async () => {
    const clock = new FakeClock()
    const { model } = modelOf([{ type: 'reasoning-delta', id: '0', delta: 'Hm' }, 'hang'], { clock })
    const stream = model.prepare(request).stream(new AbortController().signal)[Symbol.asyncIterator]()
    await stream.next()
    const next = stream.next()
    expect(await clock.skip()).toBe(300_000)
    await expect(next).rejects.toThrow('sent nothing for 300 seconds')
  })

  test('empty parts keep the connection alive, but do not restart the limit', async () => {
    const clock = new FakeClock()
    const later = Promise.withResolvers<LanguageModelV4StreamPart>()
    const silent: Scripted[] = [later.promise, { type: 'response-metadata', id: 'x' }, { type: 'text-start', id: '0' }]
    const { model, read } = modelOf([{ type: 'stream-start', warnings: [] }, ...silent, { type: 'ping' }, 'hang'], {
      clock,
    })
    const failing = collect(model).catch((error: Error) => error.message)
    await clock.waited()
    clock.advance(200_000)
    later.resolve({ type: 'ping' })
    while (read() < 6) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(100_000)
    expect(await failing).toBe('acme sent nothing for 300 seconds.')
  })

  test('the silence of a slow reader does not count', async () => {
    const clock = new FakeClock()
    const later = Promise.withResolvers<LanguageModelV4StreamPart>()
    const { model } = modelOf([{ type: 'text-delta', id: '0', delta: 'Hi' }, later.promise, finish], { clock })
    const stream = model.prepare(request).stream(new AbortController().signal)[Symbol.asyncIterator]()
    await stream.next()
    for (let count = 0; count < 5; count += 1) {
      clock.advance(120_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    const next = stream.next()
    later.resolve({ type: 'text-delta', id: '0', delta: ' there' })
    expect((await next).value).toEqual({ type: 'text_delta', part: 0, text: ' there' })
  })

  test('a provider that ignores the signal is not waited for', async () => {
    for (const deaf of [['hang'], [...hello, 'hang']] as Scripted[][]) {
      const { model } = modelOf(deaf)
      const aborting = new AbortController()
      const parts = collect(model, aborting.signal)
      setImmediate(() => aborting.abort(new Error('enough')))
      await expect(parts).rejects.toThrow('enough')
    }
  })

  test('a provider that does not even respond is not waited for', async () => {
    const languageModel = { ...modelOf([]).languageModel, doStream: () => new Promise<never>(() => undefined) }
    const aborting = new AbortController()
    const parts = collect(modelOf([], { languageModel }).model, aborting.signal)
    setImmediate(() => aborting.abort(new Error('enough')))
    await expect(parts).rejects.toThrow('enough')
  })

  test('anything that a provider throws becomes a ModelError', async () => {
    const languageModel = { ...modelOf([]).languageModel, doStream: () => Promise.reject(new Error('what?')) }
    await expect(collect(modelOf([], { languageModel }).model)).rejects.toMatchObject({
      name: 'ModelError',
      kind: 'unknown',
      message: 'acme failed: what?',
    })
  })

  test('no timer is left after the answer', async () => {
    const clock = new FakeClock()
    await collect(modelOf([...hello, finish], { clock }).model)
    expect(clock.waits).toEqual([])
  })
})

test('the cost is known if prices are', () => {
  const prices = { input: 5, output: 25 }
  expect(modelOf([], { prices }).model.costOf?.({ inputTokens: 1_000_000 })).toBe(5)
  expect(modelOf([]).model).not.toHaveProperty('costOf')
})

type Scripted = LanguageModelV4StreamPart | Promise<LanguageModelV4StreamPart> | Error | 'hang'

interface ScriptedModel {
  model: Model
  languageModel: LanguageModelV4
  calls: LanguageModelV4CallOptions[]
  /** How much of the script was consumed. */
  read: () => number
}

function modelOf(script: readonly Scripted[], given: Partial<AiSdkModelOptions> = {}): ScriptedModel {
  const calls: LanguageModelV4CallOptions[] = []
  const rest = [...script]
  const languageModel: LanguageModelV4 = {
    specificationVersion: 'v4',
    provider: 'acme.chat',
    modelId: 'acme-1',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not used')),
    doStream: (options) => {
      calls.push(options)
      return Promise.resolve({ stream: streamOf(rest) })
    },
  }
  return {
    model: adaptedModel({ provider: 'acme', languageModel, facts: anthropicFacts, ...given }),
    languageModel,
    calls,
    read: () => script.length - rest.length,
  }
}

function streamOf(rest: Scripted[]): ReadableStream<LanguageModelV4StreamPart> {
  return new ReadableStream({
    pull: async (controller) => {
      const next = rest.shift()
      if (next === undefined) controller.close()
      else if (next instanceof Error) controller.error(next)
      else if (next === 'hang') await new Promise<void>(() => undefined)
      else controller.enqueue(await next)
    },
  })
}

async function collect(model: Model, signal = new AbortController().signal): Promise<ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of model.prepare(request).stream(signal)) parts.push(part)
  return parts
}
