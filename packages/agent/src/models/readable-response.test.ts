import { text, type Usage } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { Answer } from '../run/answer.ts'
import { ThinkTags } from './events/chat-events.ts'
import type { Model, ModelError } from './model.ts'
import { anthropic } from './providers/anthropic.ts'
import { google } from './providers/google.ts'
import { openai } from './providers/openai.ts'
import { openaiCompatible } from './providers/openai-compatible.ts'

type Json = Record<string, unknown>

const apis = ['anthropic', 'openai', 'google', 'chat'] as const
type Api = (typeof apis)[number]

const makers: Record<Api, (fetch: typeof globalThis.fetch) => Model> = {
  anthropic: (fetch) => anthropic({ model: 'claude-sonnet-5', apiKey: 'k', fetch }),
  openai: (fetch) => openai({ model: 'gpt-5.5', apiKey: 'k', fetch }),
  google: (fetch) => google({ model: 'gemini-3.1-pro-preview', apiKey: 'k', fetch }),
  chat: (fetch) => openaiCompatible({ name: 'host', model: 'm', baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k', fetch }),
}

/** The same answer in each format: reasoning, text and a call. */
const answers: Record<Api, readonly Json[]> = {
  anthropic: [
    {
      type: 'message_start',
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm, ' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'yes.' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hel' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'lo.' } },
    { type: 'content_block_stop', index: 1 },
    {
      type: 'content_block_start',
      index: 2,
      content_block: { type: 'tool_use', id: 'toolu_1', name: 'read', input: {} },
    },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"path":' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '"ä"}' } },
    { type: 'content_block_stop', index: 2 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ],
  openai: [
    { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'm', status: 'in_progress' } },
    { type: 'response.output_item.added', output_index: 0, item: { id: 'rs_1', type: 'reasoning', summary: [] } },
    { type: 'response.reasoning_summary_part.added', item_id: 'rs_1', output_index: 0, summary_index: 0 },
    {
      type: 'response.reasoning_summary_text.delta',
      item_id: 'rs_1',
      output_index: 0,
      summary_index: 0,
      delta: 'Hm, ',
    },
    {
      type: 'response.reasoning_summary_text.delta',
      item_id: 'rs_1',
      output_index: 0,
      summary_index: 0,
      delta: 'yes.',
    },
    { type: 'response.reasoning_summary_part.done', item_id: 'rs_1', output_index: 0, summary_index: 0 },
    {
      type: 'response.output_item.done',
      output_index: 0,
      item: { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'c2ln' },
    },
    {
      type: 'response.output_item.added',
      output_index: 1,
      item: { id: 'msg_1', type: 'message', role: 'assistant', content: [] },
    },
    { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 1, content_index: 0, delta: 'Hel' },
    { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 1, content_index: 0, delta: 'lo.' },
    {
      type: 'response.output_item.done',
      output_index: 1,
      item: { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] },
    },
    {
      type: 'response.output_item.added',
      output_index: 2,
      item: { id: 'fc_1', type: 'function_call', call_id: 'toolu_1', name: 'read', arguments: '' },
    },
    { type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 2, delta: '{"path":"ä"}' },
    {
      type: 'response.output_item.done',
      output_index: 2,
      item: {
        id: 'fc_1',
        type: 'function_call',
        call_id: 'toolu_1',
        name: 'read',
        arguments: '{"path":"ä"}',
        status: 'completed',
      },
    },
    {
      type: 'response.completed',
      response: {
        id: 'resp_1',
        status: 'completed',
        usage: {
          input_tokens: 10,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 9,
          output_tokens_details: { reasoning_tokens: 3 },
          total_tokens: 19,
        },
      },
    },
  ],
  google: [
    { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hm, ', thought: true }] } }] },
    { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'yes.', thought: true }] } }] },
    { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hello.' }] } }] },
    {
      candidates: [
        {
          index: 0,
          content: {
            role: 'model',
            parts: [{ functionCall: { id: 'toolu_1', name: 'read', args: { path: 'ä' } }, thoughtSignature: 'c2ln' }],
          },
        },
      ],
    },
    {
      candidates: [{ index: 0, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 6, thoughtsTokenCount: 3, totalTokenCount: 19 },
    },
  ],
  chat: [
    chunk({ role: 'assistant', reasoning_content: 'Hm, ' }),
    chunk({ reasoning_content: 'yes.' }),
    chunk({ content: 'Hel' }),
    chunk({ content: 'lo.' }),
    chunk({
      tool_calls: [{ index: 0, id: 'toolu_1', type: 'function', function: { name: 'read', arguments: '{"path":' } }],
    }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '"ä"}' } }] }),
    {
      ...chunk({}, 'tool_calls'),
      usage: {
        prompt_tokens: 10,
        completion_tokens: 9,
        total_tokens: 19,
        completion_tokens_details: { reasoning_tokens: 3 },
      },
    },
  ],
}

const unknown = { holo: { colors: [1, null, 'x'] } }

/** Events that a later version of the API may send. */
const strangers: Record<Api, readonly Json[]> = {
  anthropic: [
    { type: 'message_limit', limits: unknown },
    { type: 'ping' },
    { type: 'content_block_start', index: 9, content_block: { type: 'hologram', ...unknown } },
    { type: 'content_block_start', index: 9, content_block: { type: 'web_search_tool_result', content: unknown } },
    { type: 'content_block_delta', index: 9, delta: { type: 'text_delta', text: 'not ours' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'hologram_delta', ...unknown } },
    { type: 'content_block_delta', index: 1, delta: { type: 'citations_delta', citation: unknown } },
    { type: 'content_block_stop', index: 9 },
  ],
  openai: [
    { type: 'response.hologram.delta', ...unknown },
    { type: 'response.output_item.added', output_index: 9, item: { type: 'hologram_call', id: 'h_1', ...unknown } },
    { type: 'response.output_item.done', output_index: 9, item: { type: 'web_search_call', id: 'ws_1', ...unknown } },
    { type: 'response.output_text.delta', item_id: 'h_1', output_index: 9, delta: 'not ours' },
    { type: 'response.output_text.annotation.added', annotation: unknown },
    { type: 'response.code_interpreter_call_code.delta', ...unknown },
  ],
  google: [
    { candidates: [{ index: 0, content: { parts: [{ hologram: unknown }] } }] },
    { candidates: [{ index: 0, content: { parts: [{ executableCode: unknown }] }, safetyRatings: unknown }] },
    { candidates: [{ index: 0, groundingMetadata: unknown }] },
    { candidates: [{ index: 1, content: { parts: [{ text: 'not ours' }] } }] },
    { hologram: unknown },
  ],
  chat: [
    { object: 'ping' },
    { choices: null },
    { id: 1, choices: [] },
    chunk({ hologram: unknown, content: [{ type: 'hologram', ...unknown }] }),
    { choices: [{ index: 1, delta: { content: 'not ours' } }] },
    { choices: [{ index: 0, delta: null, logprobs: unknown }] },
  ],
}

describe('unknown kinds are skipped', () => {
  const [runs, seed] = [60, Number(process.env['SEED'] ?? Math.floor(Math.random() * 1e9))]

  test.each(apis)(
    `%s: unknown events anywhere, in any chunks and with any line ends, change nothing (seed ${seed})`,
    async (api) => {
      const random = randomFrom(seed)
      const plain = await answerTo(api, bytesOf(api, answers[api]))
      expect(plain.content.map(({ type }) => type)).toEqual(['reasoning', 'text', 'tool_use'])
      expect(plain.skipped).toBeUndefined()
      for (let run = 0; run < runs; run += 1) {
        const events = answers[api].flatMap((event, place) => {
          const isBefore = place > 0 && random() < 0.4
          return [...(isBefore ? [pick(strangers[api], random)] : []), withStrangeMembers(event, random)]
        })
        const lineEnd = pick(['\n', '\r\n', '\r'], random)
        const told = await answerTo(api, bytesOf(api, events, lineEnd), pick([0, 1, 7, 300], random), random)
        expect(told, `run ${run}`).toEqual({ ...plain, ...(told.skipped && { skipped: told.skipped }) })
      }
    },
  )

  test('each kind is counted', async () => {
    const [first, ...rest] = answers.anthropic
    const told = await answerTo('anthropic', bytesOf('anthropic', [first ?? {}, ...strangers.anthropic, ...rest]))
    expect(told.skipped).toEqual({ 'event:message_limit': 1, 'block:hologram': 1, 'block:web_search_tool_result': 1 })
  })

  test.each(apis)('%s: an event that is JSON but not an object is skipped and counted', async (api) => {
    const [first, ...rest] = answers[api].map((event) => bytesOf(api, [event]).replace('data: [DONE]\n\n', ''))
    const odd = ['null', '[]', '"x"', '1'].map((data) => `data: ${data}\n\n`)
    const told = await answerTo(api, [first, ...odd, ...rest].join(''))
    expect(told).toEqual({
      ...(await answerTo(api, bytesOf(api, answers[api]))),
      skipped: { 'event:not-an-object': 4 },
    })
  })

  test.each([
    ['google', { hologram: unknown }, 'event:hologram'],
    ['chat', { hologram: unknown }, 'event:hologram'],
    ['chat', { object: 'ping' }, 'event:ping'],
  ] as const)('%s: an event without any known content is counted', async (api, event, kind) => {
    const told = await answerTo(api, bytesOf(api, [event, ...answers[api]]))
    expect(told.skipped).toEqual({ [kind]: 1 })
  })

  test.each([
    ['anthropic', { type: 'message_delta', delta: { stop_reason: 'out_of_coffee' }, usage: { output_tokens: 9 } }],
    ['openai', { type: 'response.incomplete', response: { incomplete_details: { reason: 'out_of_coffee' } } }],
    ['google', { candidates: [{ index: 0, finishReason: 'out_of_coffee' }] }],
    ['chat', chunk({}, 'out_of_coffee')],
  ] as const)('%s: an unknown finish reason ends the answer and is counted', async (api, end) => {
    const isEnd = (event: Json): boolean =>
      /"tool_use","stop|response.completed|"STOP"|"tool_calls"\}/.test(JSON.stringify(event))
    const told = await answerTo(
      api,
      bytesOf(
        api,
        answers[api].map((event) => (isEnd(event) ? end : event)),
      ),
    )
    expect(told).toMatchObject({ finish: 'tool-calls', skipped: { 'stop-reason:out_of_coffee': 1 } })
  })

  test.each(apis)('%s: members named like those of Object.prototype change nothing', async (api) => {
    const names = '"__proto__":{"a":1},"constructor":{"prototype":1},"toString":null'
    const bytes = bytesOf(api, answers[api]).replaceAll(/\{(?="(?!path))/g, `{${names},`)
    const { skipped, ...told } = await answerTo(api, bytes)
    expect({ ...told, skipped: undefined }).toEqual(await answerTo(api, bytesOf(api, answers[api])))
  })

  test.each(apis)('%s: an error is still an error', async (api) => {
    const error = {
      type: 'overloaded_error',
      code: 'server_is_overloaded',
      message: 'Overloaded',
      status: 'UNAVAILABLE',
    }
    const event = api === 'google' ? { error: { ...error, code: 503 } } : { type: 'error', error }
    const events = [...answers[api].slice(0, 3), event]
    await expect(answerTo(api, bytesOf(api, events))).rejects.toMatchObject({ name: 'ModelError', kind: 'overloaded' })
  })

  test.each(apis)('%s: an answer that is cut off at any event is incomplete', async (api) => {
    const events = answers[api]
    // The events after the last one with a finish reason may be missing.
    const lastNeeded = api === 'anthropic' ? events.length - 2 : events.length - 1
    for (let length = 0; length <= lastNeeded; length += 1) {
      const bytes = bytesOf(api, events.slice(0, length)).replace('data: [DONE]\n\n', '')
      await expect(answerTo(api, bytes), `${length} events`).rejects.toMatchObject({ kind: 'network' })
    }
  })
})

describe('Chat Completions', () => {
  test('[DONE] without a finish reason ends the answer', async () => {
    const bytes = bytesOf('chat', [
      chunk({ content: 'Hello.' }),
      { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } },
    ])
    expect(await answerTo('chat', bytes)).toMatchObject({ content: [text('Hello.')], finish: 'stop' })
    const calling = bytesOf('chat', answers.chat.slice(0, -1))
    expect(await answerTo('chat', calling)).toMatchObject({ finish: 'tool-calls' })
  })

  test('[DONE] alone is not an answer', async () => {
    await expect(answerTo('chat', bytesOf('chat', []))).rejects.toMatchObject({ kind: 'network' })
  })

  test.each(['stays open', 'breaks'])(
    'an answer is complete at [DONE], whether the connection then %s',
    async (then) => {
      const bytes = new TextEncoder().encode(bytesOf('chat', answers.chat))
      let isCancelled = false
      const body = new ReadableStream<Uint8Array>(
        {
          start: (controller) => controller.enqueue(bytes),
          pull: () => (then === 'breaks' ? Promise.reject(new Error('ECONNRESET')) : new Promise(() => undefined)),
          cancel: () => void (isCancelled = true),
        },
        { highWaterMark: 0 },
      )
      const model = makers.chat(() => Promise.resolve(new Response(body)))
      expect(await ask(model)).toMatchObject({ finish: 'tool-calls' })
      expect(isCancelled).toBe(true)
    },
  )

  test('events after [DONE] are ignored', async () => {
    const bytes = `${bytesOf('chat', answers.chat)}data: {"late":true}\n\n`
    expect(await answerTo('chat', bytes)).toMatchObject({ finish: 'tool-calls' })
  })

  test('input as an object, numbers as text and the old function_call are supported', async () => {
    const call = { index: 0, id: 'a', type: 'function', function: { name: 'read', arguments: { path: 'a' } } }
    const usage = { prompt_tokens: '10', completion_tokens: '5', total_tokens: '15' }
    expect(
      await answerTo('chat', bytesOf('chat', [chunk({ tool_calls: [call] }), { ...chunk({}, 'tool_calls'), usage }])),
    ).toMatchObject({
      content: [{ toolUse: { id: 'a', input: { path: 'a' } } }],
      usage: { inputTokens: 10, outputTokens: 5 },
    })
    const old = [
      chunk({ function_call: { name: 'read', arguments: '{"path":' } }),
      chunk({ function_call: { arguments: '"a"}' } }),
    ]
    expect(await answerTo('chat', bytesOf('chat', [...old, chunk({}, 'function_call')]))).toMatchObject({
      content: [{ toolUse: { name: 'read', input: { path: 'a' } } }],
    })
  })

  test('null for no arguments is an empty input, and null within arguments stays', async () => {
    const start = (input: string): Json => ({
      index: 0,
      id: 'a',
      type: 'function',
      function: { name: 'ls', arguments: input },
    })
    const none = [chunk({ tool_calls: [start('null')] }), chunk({}, 'tool_calls')]
    expect((await answerTo('chat', bytesOf('chat', none))).content).toMatchObject([{ toolUse: { input: {} } }])
    const pieces = ['null', '}'].map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }))
    const within = [chunk({ tool_calls: [start('{"a":')] }), ...pieces, chunk({}, 'tool_calls')]
    expect((await answerTo('chat', bytesOf('chat', within))).content).toMatchObject([
      { toolUse: { input: { a: null } } },
    ])
  })

  test('<think> tags are reasoning, wherever the deltas are split', async () => {
    const whole = '\n<think>\nHm.\n</think>\n\nHello <b>.'
    for (let at = 1; at < whole.length; at += 1) {
      const events = [chunk({ content: whole.slice(0, at) }), chunk({ content: whole.slice(at) }), chunk({}, 'stop')]
      expect((await answerTo('chat', bytesOf('chat', events))).content, `cut at ${at}`).toEqual([
        { type: 'reasoning', reasoning: { text: 'Hm.' } },
        text('Hello <b>.'),
      ])
    }
  })

  test('text that only looks like a tag stays text', () => {
    for (const said of ['<', '<thi', '<b>', 'a <think>b</think>', '', '  x']) {
      const tags = new ThinkTags()
      const read = Array.from(said, (character) => tags.read(character).text).join('') + tags.flush().text
      expect(read).toBe(said)
    }
  })

  test('reasoning details with their signatures are sent back to OpenRouter unchanged', async () => {
    const bodies: Json[] = []
    const events = [
      chunk({
        role: 'assistant',
        reasoning: 'I should ',
        reasoning_details: [{ type: 'reasoning.text', text: 'I should ', index: 0, format: 'f' }],
      }),
      chunk({ reasoning: 'read.', reasoning_details: [{ type: 'reasoning.text', text: 'read.', index: 0 }] }),
      chunk({ reasoning_details: [{ type: 'reasoning.text', signature: 'c2ln', index: 0 }] }),
      chunk({ tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'read', arguments: '{}' } }] }),
      chunk({ reasoning_details: [{ type: 'reasoning.encrypted', id: 'a', data: 'b3BhcXVl', index: 1 }] }),
      chunk({}, 'tool_calls'),
    ]
    const fetch = (async (_url: unknown, init?: RequestInit) => {
      bodies.push(JSON.parse(init?.body as string) as Json)
      return new Response(bytesOf('chat', events))
    }) as typeof globalThis.fetch
    const model = openaiCompatible({
      name: 'openrouter',
      model: 'google/gemini-3-pro',
      baseUrl: 'https://openrouter.ai/api/v1',
      apiKey: 'k',
      fetch,
    })
    const { content } = await ask(model)
    const question = { role: 'user' as const, content: [text('go')] }
    const result = {
      role: 'tool' as const,
      content: [{ type: 'tool_result' as const, toolResult: { toolUseId: 'a', content: 'x' } }],
    }
    const answer = { role: 'assistant' as const, provider: 'openrouter', model: 'google/gemini-3-pro', content }
    await ask(model, [question, answer, result])
    const sent = (bodies[1]?.['messages'] ?? []) as Json[]
    expect(sent[2]).toMatchObject({
      role: 'assistant',
      reasoning_details: [
        { type: 'reasoning.text', text: 'I should read.', signature: 'c2ln', index: 0, format: 'f' },
        { type: 'reasoning.encrypted', id: 'a', data: 'b3BhcXVl', index: 1 },
      ],
    })
    expect(sent[2]).not.toHaveProperty('reasoning_content')
  })
})

describe('OpenAI Responses', () => {
  const reasoning = { id: 'rs_1', type: 'reasoning', summary: [], content: [] }
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'Hello.' }],
  }
  const completed = answers.openai.at(-1) ?? {}

  test('reasoning text of open models is kept', async () => {
    const events = [
      { type: 'response.output_item.added', output_index: 0, item: reasoning },
      { type: 'response.reasoning_text.delta', item_id: 'rs_1', output_index: 0, content_index: 0, delta: 'Hm.' },
      { type: 'response.output_item.done', output_index: 0, item: reasoning },
      { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
      { type: 'response.output_item.done', output_index: 1, item: message },
      completed,
    ]
    expect((await answerTo('openai', bytesOf('openai', events))).content).toMatchObject([
      { reasoning: { text: 'Hm.' } },
      { text: { content: 'Hello.' } },
    ])
  })

  test('a call whose item does not end is complete', async () => {
    const events = answers.openai.filter(
      ({ type, output_index: place }) => !(type === 'response.output_item.done' && place === 2),
    )
    expect((await answerTo('openai', bytesOf('openai', events))).content[2]).toMatchObject({
      toolUse: { input: { path: 'ä' } },
    })
  })
})

describe('a successful response that is not a stream', () => {
  test('reports the text of the page', async () => {
    const page = '<!DOCTYPE html><html><head><title>Sign in to the network</title></head><body>…</body></html>'
    const error = (await answerTo('chat', page).catch((thrown: unknown) => thrown)) as ModelError
    expect(error).toMatchObject({ kind: 'network' })
    expect(error.message).toContain('Sign in to the network')
  })

  test.each(apis)('%s: reports the text of the error', async (api) => {
    const body = JSON.stringify({ error: { message: 'The model is not loaded.', code: 404 } })
    await expect(answerTo(api, body)).rejects.toThrow('The model is not loaded.')
  })

  test('is an answer if it contains one', async () => {
    const body = {
      id: 'c',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    }
    expect(await answerTo('chat', JSON.stringify(body))).toMatchObject({
      content: [text('Hello.')],
      usage: { outputTokens: 2 },
    })
    expect((await answerTo('google', JSON.stringify(answers.google))).content).toHaveLength(3)
  })
})

interface Told {
  content: Answer['content']
  usage: Usage | undefined
  finish: string | undefined
  skipped: Record<string, number> | undefined
}

function answerTo(api: Api, bytes: string, size = 0, random = Math.random): Promise<Told> {
  const fetch = (() =>
    Promise.resolve(new Response(chunked(bytes, size, random)))) as unknown as typeof globalThis.fetch
  return ask(makers[api](fetch))
}

async function ask(
  model: Model,
  messages = [{ role: 'user' as const, content: [text('go')] }] as Parameters<Model['prepare']>[0]['messages'],
): Promise<Told> {
  const answer = new Answer('item', 'run')
  const tools = [{ name: 'read', description: 'Reads a file.', inputSchema: { type: 'object' } }]
  const call = model.prepare({ system: 'Be brief.', tools, messages, thinkingLevel: 'high' })
  for await (const part of call.stream(new AbortController().signal)) answer.take(part)
  const { content, usage, finish, skipped } = answer
  return { content, usage, finish, skipped }
}

function chunk(delta: Json, finish: string | null = null): Json {
  return {
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  }
}

function bytesOf(api: Api, events: readonly Json[], lineEnd = '\n'): string {
  const lines = events.map((event) => {
    const name = typeof event['type'] === 'string' ? `event: ${event['type']}${lineEnd}` : ''
    return `${name}data: ${JSON.stringify(event)}${lineEnd}${lineEnd}`
  })
  return `: hello${lineEnd}${lines.join('')}${api === 'chat' ? `data: [DONE]${lineEnd}${lineEnd}` : ''}`
}

/** In pieces of about this many bytes; 0 for all at once. */
function chunked(text: string, size: number, random: () => number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text)
  let at = 0
  return new ReadableStream({
    pull: (controller) => {
      const length = size === 0 ? bytes.length : size === 1 ? 1 : 1 + Math.floor(random() * 2 * size)
      if (at < bytes.length) controller.enqueue(bytes.subarray(at, at + length))
      at += length
      if (at >= bytes.length) controller.close()
    },
  })
}

/** Unknown members, here and there. */
function withStrangeMembers(event: Json, random: () => number): Json {
  const entries = Object.entries(event).map(([name, value]) => {
    const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value)
    // The input of a call belongs to the model.
    return [name, isPlain && name !== 'args' && name !== 'input' ? withStrangeMembers(value as Json, random) : value]
  })
  const isDelta = 'delta' in event || 'candidates' in event || 'type' in event
  return { ...Object.fromEntries(entries), ...(isDelta && random() < 0.3 && { hologram: unknown }) } as Json
}

function pick<T>(from: readonly T[], random: () => number): T {
  return from[Math.floor(random() * from.length)] as T
}

function randomFrom(seed: number): () => number {
  let state = seed >>> 0 || 1
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
