import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text, type Message, type Usage } from '@tapetree/session'
import { describe, expect, onTestFinished, test } from 'vitest'
import { catalogueProviders, loadCataloguePrices } from './registry/catalogue.ts'
import { createModelRegistry, type ModelRegistry } from './registry/model-registry.ts'
import { Answer } from '../run/answer.ts'
import { startFakeProvider, type FakeHost } from '../testing/fake-provider/index.ts'
import { hostOf, hosts, type HostErrorKind } from './hosts.ts'
import type { Model, ModelRequest } from './model.ts'
import { costAt } from './model-prices.ts'
import { openaiCompatible } from './providers/openai-compatible.ts'

const question: Message = { role: 'user', content: [text('What does a.txt say?')] }
const tools = [{ name: 'read', description: 'Reads a file.', inputSchema: { type: 'object' } }]

describe('an answer with reasoning and a call is sent back as the host requires', () => {
  const thoughts = 'I should read it.'
  const calling = {
    tool_calls: [{ index: 0, id: 'abc123XYZ', type: 'function', function: { name: 'read', arguments: '{}' } }],
  }

  test.each([
    ['groq', 'qwen/qwen3.8-27b', { reasoning: thoughts }, { reasoning: thoughts }],
    ['cerebras', 'qwen-3.8-27b', { reasoning: thoughts }, { reasoning: thoughts }],
    ['deepseek', 'deepseek-v4-pro', { reasoning_content: thoughts }, { reasoning_content: thoughts }],
    ['moonshotai', 'kimi-k3', { reasoning_content: thoughts }, { reasoning_content: thoughts }],
    ['xai', 'grok-4.7', { reasoning_content: thoughts }, { reasoning_content: thoughts }],
    ['ollama', 'gpt-oss:20b', { reasoning: thoughts }, { reasoning: thoughts }],
    ['somebody', 'large', { reasoning_content: thoughts }, { reasoning_content: thoughts }],
    [
      'mistral',
      'mistral-large-4',
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: thoughts }] }] },
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: thoughts }] }] },
    ],
  ])('%s', async (provider, modelId, said, returned) => {
    const { registry, requests } = await hostThatSays(provider, [{ role: 'assistant', ...said }, calling])
    const { model } = await registry.open({ provider, id: modelId })
    const answer = await ask(model, [question])
    await ask(model, [question, answer, result('abc123XYZ')])
    const sent = assistantIn(requests[1])
    const places = ['reasoning', 'reasoning_content', 'reasoning_details', 'content'] as const
    expect(Object.fromEntries(places.flatMap((place) => (sent[place] ? [[place, sent[place]]] : [])))).toEqual(returned)
    expect(sent['tool_calls']).toMatchObject([{ id: 'abc123XYZ', function: { name: 'read' } }])
  })

  test('a host of the table is recognized by its URL, whatever its name in the settings', () => {
    expect(hostOf({ id: 'work', baseUrl: 'https://api.groq.com/openai/v1' })?.id).toBe('groq')
    expect(hostOf({ id: 'work', baseUrl: 'http://127.0.0.1:1/v1' })).toBeUndefined()
  })
})

describe('after a switch of models', () => {
  const foreign: Message = {
    role: 'assistant',
    provider: 'anthropic',
    model: 'claude-opus-5',
    content: [
      { type: 'reasoning', reasoning: { text: 'Hm.', signature: 'sig' } },
      { type: 'tool_use', toolUse: { id: 'toolu_01A09q90qw90lq917835lq9', name: 'read', input: {} } },
    ],
  }

  test.each([
    ['deepseek', 'deepseek-v4-pro', ''],
    ['moonshotai', 'kimi-k3', ''],
    ['zai', 'glm-5.3', undefined],
    ['groq', 'qwen/qwen3.8-27b', undefined],
  ])('%s gets reasoning_content with calls only if it requires it', async (provider, modelId, expected) => {
    const { registry, requests } = await hostThatSays(provider, [{ role: 'assistant', content: 'Done.' }])
    const { model } = await registry.open({ provider, id: modelId })
    await ask(model, [question, foreign, result('toolu_01A09q90qw90lq917835lq9')])
    expect(assistantIn(requests[0])['reasoning_content']).toBe(expected)
  })

  test.each(hosts.filter(({ api }) => api === 'openai-compatible'))(
    '$id gets call ids that it accepts',
    async (host) => {
      const { registry, requests } = await hostThatSays(host.id, [{ role: 'assistant', content: 'Done.' }])
      const { model } = await registry.open({ provider: host.id, id: 'some-model' })
      const id = 'toolu_01A09q90qw90lq917835lq9'
      await ask(model, [question, foreign, result(id), { ...foreign }, result(id)])
      const calls = messagesIn(requests[0]).flatMap((message) => (message['tool_calls'] ?? []) as { id: string }[])
      expect(calls).toHaveLength(2)
      for (const call of calls) expect(call.id).toMatch(host.callIds ?? /./)
      expect(new Set(calls.map((call) => call.id)).size).toBe(2)
      const results = messagesIn(requests[0]).filter(({ role }) => role === 'tool')
      expect(results.map((message) => message['tool_call_id'])).toEqual(calls.map((call) => call.id))
    },
  )
})

describe('usage', () => {
  test('reasoning that is counted beside the completion is output', async () => {
    const usage = await usageFrom('xai', 'grok-4.7', {
      prompt_tokens: 119,
      completion_tokens: 9,
      total_tokens: 226,
      prompt_tokens_details: { cached_tokens: 112 },
      completion_tokens_details: { reasoning_tokens: 98 },
    })
    expect(usage).toMatchObject({ inputTokens: 119, outputTokens: 107, reasoningTokens: 98, cacheReadTokens: 112 })
    expect(usage?.totalTokens).toBe(226)
  })

  test('reasoning that is counted inside the completion is not counted twice', async () => {
    const usage = await usageFrom('groq', 'qwen/qwen3.8-27b', {
      prompt_tokens: 100,
      completion_tokens: 50,
      total_tokens: 150,
      completion_tokens_details: { reasoning_tokens: 40 },
    })
    expect(usage).toMatchObject({ outputTokens: 50, reasoningTokens: 40, totalTokens: 150 })
  })

  test.each([
    ['deepseek', 'deepseek-v4-pro', { prompt_cache_hit_tokens: 64 }],
    ['moonshotai', 'kimi-k3', { cached_tokens: 64 }],
  ])('%s counts cached tokens in a separate member', async (provider, modelId, member) => {
    const usage = await usageFrom(provider, modelId, {
      prompt_tokens: 100,
      completion_tokens: 5,
      total_tokens: 105,
      ...member,
    })
    expect(usage).toMatchObject({ inputTokens: 100, cacheReadTokens: 64 })
  })

  test.each([
    ['xai', { cost_in_usd_ticks: 471_484_000 }, 0.0471484],
    ['openrouter', { cost: 0.453285, is_byok: false, cost_details: { upstream_inference_cost: 0.453285 } }, 0.453285],
    ['openrouter', { cost: 0.00005, is_byok: true, cost_details: { upstream_inference_cost: 0.001 } }, 0.00105],
    ['perplexity', { cost: { input_tokens_cost: 0.001, output_tokens_cost: 0.002, total_cost: 0.003 } }, 0.003],
    ['somebody', { cost: 12 }, undefined],
  ])('the cost that %s reports is the cost of the call', async (provider, member, expected) => {
    const usage = await usageFrom(provider, 'some-model', {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      ...member,
    })
    if (expected === undefined) expect(usage?.cost).toBeUndefined()
    else expect(usage?.cost).toBeCloseTo(expected, 9)
  })

  // Usage and cost as the hosts reported them.
  test.each([
    ['xai', 'grok-4.3', { inputTokens: 35_660, cacheReadTokens: 192, outputTokens: 1110 }, 471_484_000 / 1e10],
    ['xai', 'grok-4.3', { inputTokens: 26_478, cacheReadTokens: 192, outputTokens: 914 }, 351_809_000 / 1e10],
    ['openrouter', 'openai/gpt-5-mini', { inputTokens: 20, outputTokens: 179 }, 0.000363],
    ['openrouter', 'openai/gpt-5.2', { inputTokens: 2695, outputTokens: 1001 }, 0.01873025],
  ])(
    'the computed cost of %s/%s agrees with the reported one within 1 %',
    async (id, modelId, usage: Usage, reported) => {
      const provider = catalogueProviders.find((each) => each.id === id)
      const prices =
        provider && (await loadCataloguePrices()).pricesOf(provider, modelId, new Date('2026-11-15T12:00:00Z'))
      const computed = prices ? costAt(prices, usage) : Number.NaN
      expect(Math.abs(computed / reported - 1)).toBeLessThan(0.01)
    },
  )
})

const failures = hosts.flatMap(({ id, errors = {} }) =>
  Object.entries(errors).map(([kind, { status, body }]) => ({ id, kind, status, body })),
)

test.each(failures)('a $status of $id is classified as $kind', async ({ id, kind, status, body }) => {
  await using provider = await startFakeProvider()
  provider.script({ type: 'failure', error: kind as HostErrorKind })
  const baseUrl = provider.baseUrl('openaiCompatible', { host: id as FakeHost })
  const model = openaiCompatible({ name: id, model: 'm', baseUrl, apiKey: 'k', fetch: provider.fetch })
  await expect(ask(model, [question], [])).rejects.toMatchObject({ name: 'ModelError', kind })
  // The fake provider follows the table.
  const sent = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'go' }] })
  provider.script({ type: 'failure', error: kind as HostErrorKind })
  const response = await provider.fetch(`${baseUrl}/chat/completions`, { method: 'POST', body: sent })
  expect([response.status, await response.json()]).toEqual([status, body])
})

test('a host that is not in the catalogue needs no URL in the settings', async () => {
  const registry = createModelRegistry({
    env: { TOGETHER_API_KEY: 'k' },
    providers: { together: { models: [{ id: 'm' }] } },
  })
  expect(registry.providers.find(({ id }) => id === 'together')).toMatchObject({
    baseUrl: 'https://api.together.xyz/v1',
    keyVariables: ['TOGETHER_API_KEY'],
  })
  expect((await registry.find('together/m')).key.type).toBe('found')
})

test('the table of hosts in the docs matches the code; UPDATE_HOSTS_TABLE=1 rewrites it', () => {
  const page = new URL('../../../../docs/reference/models.md', import.meta.url)
  const between = /(?<=<!-- made from hosts\.ts -->\n)[^]*?(?=\n<!-- end -->)/
  const rows = hostRows()
  if (process.env['UPDATE_HOSTS_TABLE'] === '1') {
    writeFileSync(
      page,
      readFileSync(page, 'utf8').replace(between, () => `\n${rows.join('\n')}\n`),
    )
  }
  const [table = ''] = between.exec(readFileSync(page, 'utf8')) ?? []
  const written = table.split('\n').map((row) => row.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---'))
  expect(written.filter((row) => row !== '')).toEqual(rows)
})

function hostRows(): string[] {
  const header = [
    'provider',
    'host',
    'key',
    'default model',
    'reasoning is returned as',
    'call ids',
    'reasoning tokens',
    'cached tokens',
    'reported cost',
    'refuses',
  ]
  const returnedAs: Partial<Record<string, string>> = {
    blocks: 'native blocks',
    none: 'not returned',
    'thinking-parts': '`thinking` parts of the content',
  }
  const code = (value: string | undefined): string => (value === undefined ? '' : `\`${value}\``)
  const cells = hosts.map((host) => [
    code(host.id),
    `${host.name}${host.localPort === undefined ? '' : `, port ${host.localPort}`}`,
    host.keyVariables.map(code).join(', ') || 'none',
    code(host.defaultModel) || (host.localPort === undefined ? 'configured by the user' : 'discovered'),
    [
      returnedAs[host.reasoning] ?? code(host.reasoning),
      ...(host.needsReasoning ? ['required with calls, may be empty'] : []),
      ...(host.hasThinkTags ? ['`<think>` tags are read'] : []),
    ].join('; '),
    code(host.callIds?.source) || 'any',
    host.reasoningTokens === undefined ? 'told by the total' : `${host.reasoningTokens} output`,
    code(host.cachedTokens),
    code(host.cost) || 'no',
    [
      ...(host.refuses ?? []).map(code),
      ...(host.needsAnswerAfterResults ? ['a prompt directly after tool results'] : []),
    ].join(', '),
  ])
  return [header, header.map(() => '---'), ...cells].map(
    (row) => `|${row.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`,
  )
}

async function usageFrom(
  provider: string,
  modelId: string,
  usage: Record<string, unknown>,
): Promise<Usage | undefined> {
  const { registry } = await hostThatSays(provider, [{ role: 'assistant', content: 'Done.' }], usage)
  const { model } = await registry.open({ provider, id: modelId })
  const answer = await ask(model, [question])
  const cost = answer.usage && model.costOf?.(answer.usage)
  return answer.usage && { ...answer.usage, ...(cost !== undefined && { cost }) }
}

type Body = Record<string, unknown>

/** A server on loopback that answers every request with the same deltas, and a registry that finds the provider there. */
async function hostThatSays(
  provider: string,
  deltas: readonly Body[],
  usage?: Body,
): Promise<{ registry: ModelRegistry; requests: Body[] }> {
  const requests: Body[] = []
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      requests.push(body)
      const hasCalls = deltas.some((delta) => 'tool_calls' in delta)
      const chunks = [
        ...deltas.map((delta) => ({ id: 'c', choices: [{ index: 0, delta, finish_reason: null }] })),
        { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: hasCalls ? 'tool_calls' : 'stop' }] },
        ...(usage ? [{ id: 'c', choices: [], usage }] : []),
      ]
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const registry = createModelRegistry({
    env: { TEST_KEY: 'k' },
    localServers: [],
    providers: { [provider]: { baseUrl, keyVariable: 'TEST_KEY' } },
  })
  return { registry, requests }
}

async function bodyOf(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Body
}

/** One call; its answer as the loop would store it. */
async function ask(model: Model, messages: readonly Message[], offered = tools): Promise<Message> {
  const request: ModelRequest = { system: 'Be brief.', tools: offered, messages, thinkingLevel: 'off' }
  const answer = new Answer('item', 'run')
  for await (const part of model.prepare(request).stream(new AbortController().signal)) answer.take(part)
  return {
    role: 'assistant',
    provider: model.provider,
    model: model.id,
    content: answer.content,
    ...(answer.usage && { usage: answer.usage }),
  }
}

function result(toolUseId: string): Message {
  return { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId, content: 'hello' } }] }
}

function messagesIn(body: Body | undefined): Body[] {
  return (body?.['messages'] ?? []) as Body[]
}

function assistantIn(body: Body | undefined): Body {
  return messagesIn(body).find(({ role }) => role === 'assistant') ?? {}
}
