import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { text } from '@tapetree/session'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Model, ModelPart, ModelRequest, ThinkingLevel } from '../model.ts'
import { FakeClock } from '../../testing/fake-clock.ts'
import {
  startFakeProvider,
  type FakeAnswer,
  type FakeApi,
  type FakeProvider,
} from '../../testing/fake-provider/index.ts'
import { catalogueProviders, type ProviderApi } from './catalogue.ts'
import { referenceOf, type RegistryError } from './model-info.ts'
import { createModelRegistry, type ModelRegistry, type ModelRegistryOptions } from './model-registry.ts'
import type { ProviderAddition } from './provider-additions.ts'

let fake: FakeProvider
beforeEach(async () => {
  fake = await startFakeProvider()
})
afterEach(() => fake.close())

const fakeApis: Record<ProviderApi, FakeApi> = {
  anthropic: 'anthropic',
  openai: 'openai',
  google: 'google',
  'openai-compatible': 'openaiCompatible',
}
const aKey = ['test', 'key', 'of', 'nobody'].join('-')
const request: ModelRequest = {
  system: 'Be brief.',
  tools: [],
  messages: [{ role: 'user', content: [text('go')] }],
  thinkingLevel: 'off',
}

describe('open', () => {
  test.each(catalogueProviders)('creates a model of $id that answers', async (provider) => {
    const registry = keyed()
    const first = (await registry.list()).find((model) => model.provider === provider.id)
    const { model, info } = await registry.open(referenceOf(first!))
    fake.script(say('Hello'))
    expect(spoken(await collect(model))).toBe('Hello')
    expect([model.provider, model.id]).toEqual([provider.id, first!.id])
    expect(model.limits).toEqual({
      contextTokens: info.contextWindow,
      outputTokens: info.maxOutputTokens,
      hasImages: info.images,
    })
    expect(JSON.stringify(fake.requests[0]?.headers)).toContain(aKey)
  })

  test('the cost of a call uses the prices of its time', async () => {
    const clock = new FakeClock(Date.parse('2026-12-31T12:00:00Z'))
    const { model } = await keyed({ clock }).open('google/gemini-3.8-flash')
    const usage = { inputTokens: 1_000_000, cacheReadTokens: 400_000, outputTokens: 100_000 }
    expect(model.costOf?.(usage)).toBeCloseTo(0.6 * 0.75 + 0.4 * 0.075 + 0.1 * 3.75)
    clock.advance(2 * 24 * 3600 * 1000)
    expect(model.costOf?.(usage)).toBeCloseTo(0.6 * 1.5 + 0.4 * 0.15 + 0.1 * 7.5)
  })

  test.each([
    ['openai/gpt-5', 'off', 'minimal'],
    ['openai/gpt-5.1', 'off', 'off'],
    ['openai/gpt-5.1', 'max', 'high'],
    ['anthropic/claude-fable-5', 'off', 'minimal'],
    ['anthropic/claude-opus-5', 'xhigh', 'xhigh'],
    ['moonshotai/kimi-k2.6', 'high', 'high'],
  ] as [string, ThinkingLevel, ThinkingLevel][])(
    '%s with thinking level %s uses %s',
    async (reference, told, thinks) => {
      const { model } = await keyed().open(reference)
      expect(model.prepare({ ...request, thinkingLevel: told }).reference.params).toMatchObject({
        thinkingLevel: thinks,
      })
    },
  )

  test.each([
    ['openrouter/openai/gpt-6-sol', 'off', 'none'],
    ['groq/openai/gpt-oss-120b', 'off', 'low'],
    ['groq/llama-3.3-70b-versatile', 'high', undefined],
    ['moonshotai/kimi-k2.6', 'high', undefined],
    ['mine/anything', 'off', undefined],
    ['mine/anything', 'high', 'high'],
  ] as [string, ThinkingLevel, string | undefined][])(
    '%s with thinking level %s gets %s on a compatible server',
    async (reference, told, effort) => {
      const { model } = await keyed().open(reference)
      fake.script(say('ok'))
      await collect(model, { ...request, thinkingLevel: told })
      expect(fake.requests[0]?.body['reasoning_effort']).toBe(effort)
    },
  )

  test.each([
    ['anthropic', 'ANTHROPIC_API_KEY'],
    ['openai', 'OPENAI_API_KEY'],
    ['google', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  ] as const)(
    'a provider of the user without a key variable never gets the key of another provider: %s',
    async (api, variable) => {
      vi.stubEnv(variable, aKey)
      const headers = { 'x-team': 'blue' }
      const registry = createModelRegistry({ providers: { mine: { api, baseUrl: fake.baseUrl(api), headers } } })
      const { model } = await registry.open('mine/anything')
      fake.script(say('Hello'))
      await collect(model).finally(() => vi.unstubAllEnvs())
      expect(fake.requests[0]?.headers).toMatchObject(headers)
      expect(JSON.stringify(fake.requests[0]?.headers)).not.toMatch(
        new RegExp(`${aKey}|x-api-key|authorization|x-goog`),
      )
    },
  )

  test.each(['anthropic', 'openai', 'google', 'openai-compatible'] as const)(
    'a model of a provider of the user has the name of that provider, by which a session finds it again: %s',
    async (api) => {
      const registry = createModelRegistry({ providers: { mine: { api, baseUrl: fake.baseUrl(fakeApis[api]) } } })
      expect((await registry.open('mine/anything')).model.provider).toBe('mine')
    },
  )

  test('without a key the error names the variable to set', async () => {
    const registry = createModelRegistry({ env: { ANTHROPIC_API_KEY: '  ' } })
    await expect(registry.open('claude-opus-5')).rejects.toMatchObject({
      code: 'missing-key',
      message:
        'There is no key for Anthropic. Set the environment variable ANTHROPIC_API_KEY, or store a key for anthropic in the system keyring or credentials.json.',
    })
  })

  test('a package that is not installed is named', async () => {
    const registryFile = fileURLToPath(new URL('model-registry.ts', import.meta.url))
    const code = `
      import { registerHooks } from 'node:module'
      registerHooks({ resolve: (specifier, context, next) => next(specifier === '@ai-sdk/google' ? '@ai-sdk/google-missing' : specifier, context) })
      registerHooks({ resolve(specifier, context, next) {
        try { return next(specifier, context) } catch (error) { error.message = error.message.replace('-missing', ''); throw error }
      } })
      const { createModelRegistry } = await import(${JSON.stringify(registryFile)})
      const registry = createModelRegistry({ env: { GEMINI_API_KEY: 'x', OPENAI_API_KEY: 'x' } })
      const { model } = await registry.open('openai/gpt-5.5')
      const error = await registry.open('google/gemini-3.8-flash').catch((error) => error)
      console.log(JSON.stringify([model.id, error.code, error.message]))`
    const { stdout } = await promisify(execFile)(process.execPath, [
      '-C',
      '@tapetree/source',
      '--input-type=module',
      '-e',
      code,
    ])
    expect(JSON.parse(stdout)).toEqual([
      'gpt-5.5',
      'missing-package',
      'Models of Google need the package @ai-sdk/google, which is not installed. Install it beside @tapetree/agent.',
    ])
  })
})

describe('list', () => {
  test('shows for every model whether there is a key, and its origin', async () => {
    const asked: string[] = []
    const credentials = {
      keyFor: async (provider: string) => {
        asked.push(provider)
        return provider === 'openai' ? { value: aKey, origin: 'the keyring' } : undefined
      },
    }
    const models = await createModelRegistry({ env: { GEMINI_API_KEY: aKey }, credentials }).list()
    const stateOf = (id: string): unknown => models.find((model) => model.id === id)?.key
    expect(stateOf('gpt-6-sol')).toEqual({ type: 'found', origin: 'the keyring' })
    expect(stateOf('gemini-3.8-flash')).toEqual({ type: 'found', origin: 'the environment variable GEMINI_API_KEY' })
    expect(stateOf('claude-opus-5')).toEqual({ type: 'missing', variable: 'ANTHROPIC_API_KEY' })
    expect(JSON.stringify(models)).not.toContain(aKey)
    expect(asked.toSorted()).toEqual([...new Set(asked)].toSorted())
  })

  test('the environment takes precedence over stored keys', async () => {
    const credentials = { keyFor: async () => ({ value: 'kept', origin: 'the keyring' }) }
    const registry = createModelRegistry({ env: { OPENAI_API_KEY: 'set' }, credentials })
    expect((await registry.find('gpt-6-sol')).key).toEqual({
      type: 'found',
      origin: 'the environment variable OPENAI_API_KEY',
    })
  })

  test('the second variable of a provider is read too', async () => {
    const registry = createModelRegistry({ env: { GOOGLE_GENERATIVE_AI_API_KEY: aKey } })
    expect((await registry.find('gemini-3.8-flash')).key.type).toBe('found')
  })
})

describe('find', () => {
  const registry = createModelRegistry({ env: {}, clock: new FakeClock() })
  const named = async (reference: string, of = registry): Promise<string> => referenceOf(await of.find(reference))

  test.each([
    ['anthropic/claude-sonnet-5', 'anthropic/claude-sonnet-5'],
    ['claude-sonnet-5', 'anthropic/claude-sonnet-5'],
    [' Claude-Sonnet-5 ', 'anthropic/claude-sonnet-5'],
    ['anthropic/opus-5-5', 'anthropic/claude-opus-5-5'],
    ['opus-5-5', 'anthropic/claude-opus-5-5'],
    ['gpt-5.3-codex-s', 'openai/gpt-5.3-codex-spark'],
    ['claude-opus-4-5-20251101', 'anthropic/claude-opus-4-5-20251101'],
    ['anthropic/claude-opus-4-5-20251101', 'anthropic/claude-opus-4-5-20251101'],
    ['anthropic/claude-opus-4-1', 'anthropic/claude-opus-4-1'],
    ['openrouter/meta-llama/llama-3.3-70b-instruct', 'openrouter/meta-llama/llama-3.3-70b-instruct'],
  ])('%j is %s', async (reference, expected) => {
    expect(await named(reference)).toBe(expected)
  })

  test('a dated model has the limits and the prices of its base name', async () => {
    const { id: _, name: __, ...snapshot } = await registry.find('claude-opus-4-5-20251101')
    const { id: ___, name: ____, ...model } = await registry.find('claude-opus-4-5')
    expect(snapshot).toEqual(model)
  })

  test('an unknown model is an error that suggests similar ones', async () => {
    await expect(registry.find('claude-sonet-5')).rejects.toMatchObject({
      code: 'unknown-model',
      message: expect.stringContaining('There is no model "claude-sonet-5". Did you mean anthropic/claude-sonnet-5'),
    })
    await expect(registry.find('openai/gtp-6-sol')).rejects.toThrow('openai/gpt-6-sol')
    await expect(registry.find('nothing like it at all')).rejects.toMatchObject({ suggestions: [] })
    await expect(registry.find('')).rejects.toMatchObject({ code: 'unknown-model' })
  })

  test('an unknown model of a known provider is an error that suggests models of this provider', async () => {
    const error = (await registry.find('groq/nope').catch((each: unknown) => each)) as RegistryError
    expect(error.code).toBe('unknown-model')
    expect(error.message).toMatch(
      /^There is no model "groq\/nope"\. Models of groq include groq\/qwen\/qwen3\.8-27b, groq\//,
    )
    expect(error.suggestions.filter((each) => !each.startsWith('groq/'))).toEqual([])
    // The name is right and the provider is wrong.
    await expect(registry.find('groq/claude-sonnet-5')).rejects.toThrow('Did you mean anthropic/claude-sonnet-5?')
  })

  test('an unknown version of a known family is an error that suggests the family', async () => {
    await expect(registry.find('sonnet-99')).rejects.toThrow(/Did you mean anthropic\/claude-sonnet-\S+ or /)
  })

  test('a name without similar ones is an error that suggests models with a key', async () => {
    const withKey = createModelRegistry({ env: { MISTRAL_API_KEY: 'not-a-real-one' } })
    await expect(withKey.find('nosuch')).rejects.toThrow(
      'There is no model "nosuch". Available models include mistral/mistral-large-4.',
    )
  })

  test('a displayed name is short and has no control characters', async () => {
    const error = await registry.find(`\u001B[2J\u202E${'x'.repeat(500)}`).catch((each: Error) => each)
    expect((error as Error).message).toMatch(/^There is no model "\uFFFD\[2J\uFFFDx{90,99}…"/)
  })

  test('an ambiguous name is an error that lists the matches', async () => {
    await expect(registry.find('claude-fable')).rejects.toMatchObject({
      code: 'ambiguous-model',
      suggestions: expect.arrayContaining(['anthropic/claude-fable-5', 'anthropic/claude-fable-5-1']),
    })
    await expect(registry.find('anthropic/claude')).rejects.toMatchObject({ code: 'ambiguous-model' })
  })

  test('of several matches, the only one with a key is chosen', async () => {
    const having = (...variables: string[]): ModelRegistry =>
      createModelRegistry({ env: Object.fromEntries(variables.map((variable) => [variable, aKey])) })
    expect(await named('gpt-oss-120b')).toBe('cerebras/gpt-oss-120b')
    expect(await named('gpt-oss-120b', having('GROQ_API_KEY'))).toBe('groq/openai/gpt-oss-120b')
    expect(await named('kimi-k3.1', having('OPENROUTER_API_KEY'))).toBe('openrouter/moonshotai/kimi-k3.1-pro')
    expect(await named('gpt-6-sol', having('OPENROUTER_API_KEY'))).toBe('openrouter/openai/gpt-6-sol')
    expect(await named('gpt-6-sol', having('OPENROUTER_API_KEY', 'OPENAI_API_KEY'))).toBe('openai/gpt-6-sol')
    expect(await named('claude-sonnet-5', having('OPENROUTER_API_KEY'))).toBe('anthropic/claude-sonnet-5')
    await expect(registry.find('kimi-k3.1')).rejects.toMatchObject({ code: 'ambiguous-model' })
  })

  test('a reference from a session is found exactly, listed or not', async () => {
    const gone = { provider: 'anthropic', id: 'claude-of-the-past' }
    expect(await registry.find(gone)).toMatchObject({
      ...gone,
      contextWindow: 128_000,
      keyVariable: 'ANTHROPIC_API_KEY',
    })
    await expect(registry.find({ provider: 'nobody', id: 'x' })).rejects.toMatchObject({ code: 'unknown-provider' })
  })

  test('every listed model is found by its own reference', async () => {
    for (const model of await registry.list()) expect(await registry.find(referenceOf(model))).toEqual(model)
  })
})

describe('user-defined providers', () => {
  const models: ProviderAddition['models'] = [
    { id: 'small', contextTokens: 32_000, outputTokens: 4000, hasImages: false, prices: { input: 1, output: 2 } },
    { id: 'plain' },
  ]

  test('are listed with their settings', async () => {
    const registry = createModelRegistry({
      env: { MINE_KEY: aKey },
      providers: { mine: { baseUrl: 'http://10.0.0.1:8000/v1/', keyVariable: 'MINE_KEY', models } },
    })
    expect(await registry.find('mine/small')).toEqual({
      provider: 'mine',
      id: 'small',
      name: 'small',
      contextWindow: 32_000,
      maxOutputTokens: 4000,
      thinkingLevels: ['off', 'low', 'medium', 'high'],
      images: false,
      prices: { input: 1, output: 2 },
      keyVariable: 'MINE_KEY',
      source: 'user',
      key: { type: 'found', origin: 'the environment variable MINE_KEY' },
    })
    expect(registry.providers.find(({ id }) => id === 'mine')?.baseUrl).toBe('http://10.0.0.1:8000/v1')
  })

  test('need no key without a variable, and have the configured prices', async () => {
    const providers = { mine: { baseUrl: fake.baseUrl('openaiCompatible'), models } }
    const { model } = await createModelRegistry({ env: {}, providers }).open('mine/small')
    fake.script(say('ok'))
    await collect(model)
    expect(fake.requests[0]?.headers.authorization).toBeUndefined()
    expect(model.costOf?.({ inputTokens: 1_000_000, outputTokens: 1_000_000 })).toBe(3)
  })

  test('may serve unlisted models', async () => {
    const registry = createModelRegistry({ env: {}, providers: { mine: { baseUrl: 'http://127.0.0.1:9/v1' } } })
    expect(await registry.find('mine/org/new-model')).toMatchObject({ id: 'org/new-model', source: 'user' })
  })

  test('may change a provider of the catalogue', async () => {
    const registry = createModelRegistry({
      env: { GATEWAY_KEY: aKey },
      providers: { anthropic: { keyVariable: 'GATEWAY_KEY', models: [{ id: 'claude-next' }] } },
    })
    expect(await registry.find('claude-opus-5')).toMatchObject({ keyVariable: 'GATEWAY_KEY', key: { type: 'found' } })
    expect(await registry.find('claude-next')).toMatchObject({ provider: 'anthropic', source: 'user' })
    expect(registry.providers.find(({ id }) => id === 'anthropic')).toMatchObject({
      api: 'anthropic',
      baseUrl: 'https://api.anthropic.com/v1',
    })
  })

  test.each([
    ['no address', { mine: {} }],
    ['an invalid URL', { mine: { baseUrl: 'here' } }],
    ['a name with a slash', { 'a/b': { baseUrl: 'http://127.0.0.1/v1' } }],
    ['a model id that is unsafe to display', { mine: { baseUrl: 'http://127.0.0.1/v1', models: [{ id: 'a\nb' }] } }],
  ] as [string, Record<string, ProviderAddition>][])('with %s are refused', (_, providers) => {
    expect(() => createModelRegistry({ env: {}, providers })).toThrow(
      expect.objectContaining({ code: 'invalid-provider' }),
    )
  })
})

describe('a bare URL', () => {
  test('is enough to use a model, and to find it again', async () => {
    const registry = createModelRegistry({ env: {} })
    const { model, info } = await registry.open(`${fake.baseUrl('openaiCompatible')}/#org/my-model`)
    fake.script(say('Hello'), say('again'))
    expect(spoken(await collect(model))).toBe('Hello')
    expect(fake.requests[0]).toMatchObject({ path: '/v1/chat/completions', body: { model: 'org/my-model' } })
    expect(info).toMatchObject({ id: 'org/my-model', source: 'url', contextWindow: 128_000 })
    const later = await registry.open({ provider: model.provider, id: model.id })
    expect(spoken(await collect(later.model))).toBe('again')
    expect(referenceOf(info)).toBe(`${fake.baseUrl('openaiCompatible')}#org/my-model`)
  })

  test.each(['http://127.0.0.1:8000/v1', 'http://127.0.0.1:8000/v1#', 'http://#x', 'https://me:pw@host/v1#x'])(
    '%s is rejected',
    async (reference) => {
      await expect(createModelRegistry({ env: {} }).find(reference)).rejects.toMatchObject({
        code: 'invalid-reference',
      })
    },
  )
})

describe('local servers', () => {
  test('their models are listed after discovery, and answer', async () => {
    await using ollama = await serveOllama({ models: ['qwen3:8b', 'gemma:2b'], window: 40_960 })
    const registry = createModelRegistry({ env: {}, localServers: [ollama.server], clock: new FakeClock() })
    expect((await registry.list()).filter(({ source }) => source === 'local')).toEqual([])
    await registry.discover()
    expect(await registry.find('qwen3')).toMatchObject({
      provider: 'ollama',
      id: 'qwen3:8b',
      contextWindow: 40_960,
      maxOutputTokens: 16_384,
      source: 'local',
      key: { type: 'not-needed' },
    })
    ollama.models = ['gemma:2b']
    await registry.discover()
    expect((await registry.list()).filter(({ source }) => source === 'local').map(({ id }) => id)).toEqual(['gemma:2b'])
  })

  test('a named one is discovered on demand', async () => {
    await using ollama = await serveOllama({ models: ['qwen3:8b'], window: 4096 })
    const registry = createModelRegistry({ env: {}, localServers: [ollama.server], clock: new FakeClock() })
    expect(await registry.find('ollama/qwen3')).toMatchObject({ id: 'qwen3:8b', maxOutputTokens: 4096 })
    await expect(registry.find('ollama/other')).rejects.toMatchObject({ code: 'unknown-model' })
  })

  test('a missing one is reported as missing', async () => {
    const ollama = await serveOllama({ models: [], window: 1 })
    await ollama[Symbol.asyncDispose]()
    const registry = createModelRegistry({ env: {}, localServers: [ollama.server], clock: new FakeClock() })
    await expect(registry.open('ollama/qwen3')).rejects.toMatchObject({
      code: 'no-local-server',
      message: `Ollama serves no model at http://127.0.0.1:${ollama.server.port}/v1. Start it, or load a model there, and try again.`,
    })
    expect(await registry.find({ provider: 'ollama', id: 'qwen3:8b' })).toMatchObject({ source: 'local' })
  })
})

test('a chosen list keeps its order, and reports problems with the rest', async () => {
  const registry = createModelRegistry({ env: {} })
  const { models, problems } = await registry.choose([
    'gpt-6-sol',
    'no-such-thing',
    'claude-opus-5',
    'openai/gpt-6-sol',
  ])
  expect(models.map(referenceOf)).toEqual(['openai/gpt-6-sol', 'anthropic/claude-opus-5'])
  expect(problems.map(({ code }) => code)).toEqual(['unknown-model'])
})

/** Everything leads to the fake provider, with a key for each, and one user-defined provider. */
function keyed(options: ModelRegistryOptions = {}): ModelRegistry {
  const providers = Object.fromEntries(
    catalogueProviders.map(({ id, api }) => [id, { baseUrl: fake.baseUrl(fakeApis[api]) }]),
  )
  return createModelRegistry({
    env: Object.fromEntries(catalogueProviders.map(({ keyVariables: [variable] }) => [variable, aKey])),
    providers: { ...providers, mine: { baseUrl: fake.baseUrl('openaiCompatible') } },
    ...options,
  })
}

function say(words: string): FakeAnswer {
  return { type: 'answer', content: [{ type: 'text', chunks: [words] }] }
}

async function collect(model: Model, asked = request): Promise<ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of model.prepare(asked).stream(new AbortController().signal)) parts.push(part)
  return parts
}

function spoken(parts: ModelPart[]): string {
  return parts.map((part) => (part.type === 'text_delta' ? part.text : '')).join('')
}

interface ServedOllama extends AsyncDisposable {
  server: { id: 'ollama'; name: string; port: number }
  models: string[]
}

async function serveOllama({ models, window }: { models: string[]; window: number }): Promise<ServedOllama> {
  const answers: Record<string, () => unknown> = {
    '/api/tags': () => ({ models: served.models.map((name) => ({ name })) }),
    '/api/ps': () => ({ models: [] }),
    '/api/show': () => ({ capabilities: ['completion'], model_info: { 'x.context_length': window } }),
  }
  const server: Server = createServer(({ url = '' }, response) => {
    response.end(JSON.stringify(answers[url]?.() ?? null))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const served: ServedOllama = {
    server: { id: 'ollama', name: 'Ollama', port: (server.address() as AddressInfo).port },
    models,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return served
}
