import { text, type Content, type Message } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { buildContext } from '@tapetree/session/view'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ModelError, type Model, type ModelPart, type ModelRequest } from '../../models/model.ts'
import { anthropic } from '../../models/providers/anthropic.ts'
import { google } from '../../models/providers/google.ts'
import { openai } from '../../models/providers/openai.ts'
import { openaiCompatible } from '../../models/providers/openai-compatible.ts'
import type { ProviderOptions } from '../../models/providers/connection.ts'
import { FakeClock } from '../fake-clock.ts'
import { startFakeProvider, type FakeAnswer, type FakeApi, type FakeProvider, type FakeStep } from './index.ts'

let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(async () => {
  await provider.close()
  vi.unstubAllEnvs()
})

interface Subject {
  name: FakeApi
  make: (options?: Partial<ProviderOptions>) => Model
  /** The answer of `thoughtful` as it is sent back to the provider. */
  sentBack: unknown
  pickSentBack: (body: any) => unknown
  /** The results of its two calls. */
  results: unknown
  pickResults: (body: any) => unknown
  countsCacheWrites: boolean
  overloadedStatus: number | undefined
}

const thoughtful: FakeAnswer = {
  type: 'answer',
  content: [
    { type: 'reasoning', chunks: ['Two ', 'files.'], signature: 'c2lnbmVk' },
    { type: 'text', chunks: ['I read ', 'both.'] },
    { type: 'tool_call', id: 'call_a', name: 'read', chunks: ['{"path":', '"a"}'] },
    { type: 'tool_call', id: 'call_b', name: 'read', chunks: ['{"path":"b"}'] },
  ],
  usage: { input: 100, output: 20, cacheRead: 60, cacheWrite: 10, reasoning: 7 },
}

const subjects: Subject[] = [
  {
    name: 'anthropic',
    make: (options) => anthropic({ ...connection('anthropic'), model: 'claude-opus-5', ...options }),
    pickSentBack: (body) => body.messages[1].content,
    sentBack: [
      { type: 'thinking', thinking: 'Two files.', signature: 'c2lnbmVk' },
      { type: 'text', text: 'I read both.' },
      { type: 'tool_use', id: 'call_a', name: 'read', input: { path: 'a' } },
      { type: 'tool_use', id: 'call_b', name: 'read', input: { path: 'b' } },
    ],
    pickResults: (body) => body.messages[2].content,
    results: [
      { type: 'tool_result', tool_use_id: 'call_a', content: 'A' },
      {
        type: 'tool_result',
        tool_use_id: 'call_b',
        content: 'no such file',
        is_error: true,
        cache_control: { type: 'ephemeral' },
      },
    ],
    countsCacheWrites: true,
    overloadedStatus: 529,
  },
  {
    name: 'openai',
    make: (options) => openai({ ...connection('openai'), model: 'gpt-5.5', ...options }),
    pickSentBack: (body) => body.input.slice(2, 6),
    sentBack: [
      {
        type: 'reasoning',
        id: 'rs_fake_1_0',
        encrypted_content: 'c2lnbmVk',
        summary: [{ type: 'summary_text', text: 'Two files.' }],
      },
      { role: 'assistant', content: 'I read both.' },
      { type: 'function_call', call_id: 'call_a', name: 'read', arguments: '{"path":"a"}' },
      { type: 'function_call', call_id: 'call_b', name: 'read', arguments: '{"path":"b"}' },
    ],
    pickResults: (body) => body.input.slice(6),
    results: [
      { type: 'function_call_output', call_id: 'call_a', output: 'A' },
      { type: 'function_call_output', call_id: 'call_b', output: 'no such file' },
    ],
    countsCacheWrites: false,
    overloadedStatus: 500,
  },
  {
    name: 'google',
    make: (options) => google({ ...connection('google'), model: 'gemini-3.1-pro-preview', ...options }),
    pickSentBack: (body) => body.contents[1].parts,
    sentBack: [
      { text: 'Two files.', thought: true, thoughtSignature: 'c2lnbmVk' },
      { text: 'I read both.' },
      { functionCall: { id: 'call_a', name: 'read', args: { path: 'a' } }, thoughtSignature: 'c2lnbmVk' },
      { functionCall: { id: 'call_b', name: 'read', args: { path: 'b' } } },
    ],
    pickResults: (body) => body.contents[2].parts,
    results: [
      { functionResponse: { id: 'call_a', name: 'read', response: { name: 'read', content: 'A' } } },
      { functionResponse: { id: 'call_b', name: 'read', response: { name: 'read', error: 'no such file' } } },
    ],
    countsCacheWrites: false,
    overloadedStatus: 503,
  },
  {
    name: 'openaiCompatible',
    make: (options) =>
      openaiCompatible({ ...connection('openaiCompatible'), name: 'local', model: 'qwen3-coder', ...options }),
    pickSentBack: (body) => body.messages[2],
    sentBack: {
      role: 'assistant',
      content: 'I read both.',
      reasoning_content: 'Two files.',
      tool_calls: [
        { id: 'call_a', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
        { id: 'call_b', type: 'function', function: { name: 'read', arguments: '{"path":"b"}' } },
      ],
    },
    pickResults: (body) => body.messages.slice(3),
    results: [
      { role: 'tool', tool_call_id: 'call_a', content: 'A' },
      { role: 'tool', tool_call_id: 'call_b', content: 'no such file' },
    ],
    countsCacheWrites: false,
    overloadedStatus: undefined,
  },
]

describe.each(subjects)('a model of $name', (subject) => {
  const { make } = subject

  test('streams text, the finish reason and the usage', async () => {
    provider.script({
      ...say('Hel', 'lo'),
      usage: { input: 100, output: 20, cacheRead: 60, cacheWrite: 10, reasoning: 7 },
    })
    const parts = await answer(make())
    expect(deltas(parts)).toEqual(['text 0: Hel', 'text 0: lo'])
    expect(parts.slice(-2)).toEqual([
      {
        type: 'usage',
        usage: {
          inputTokens: 100,
          outputTokens: 20,
          cacheReadTokens: 60,
          ...(subject.countsCacheWrites && { cacheWriteTokens: 10 }),
          reasoningTokens: 7,
          totalTokens: 120,
        },
      },
      { type: 'finish', reason: 'stop' },
    ])
  })

  test('numbers blocks in the order in which they began, and a call has one number for its input and itself', async () => {
    provider.script(thoughtful)
    const parts = await answer(make())
    expect(messageOf(make(), parts).content.map(({ type }) => type)).toEqual([
      'reasoning',
      'text',
      'tool_use',
      'tool_use',
    ])
    const placesOf = (type: 'tool_input_start' | 'tool_call'): number[] =>
      parts.flatMap((part) => (part.type === type ? [part.part] : []))
    expect([placesOf('tool_input_start'), placesOf('tool_call')]).toEqual([
      [2, 3],
      [2, 3],
    ])
    expect(parts.at(-1)).toEqual({ type: 'finish', reason: 'tool-calls' })
  })

  test('sends signed reasoning back unchanged, and the calls with it', async () => {
    provider.script(thoughtful, say('Done.'))
    const model = make()
    const answered = messageOf(model, await answer(model))
    await answer(model, { messages: [user('go'), answered, result('call_a', 'A'), failed('call_b', 'no such file')] })
    expect(subject.pickSentBack(provider.requests[1]?.body)).toEqual(subject.sentBack)
  })

  test('sends the results of parallel calls together, in order, with failures', async () => {
    provider.script(thoughtful, say('Done.'))
    const model = make()
    const answered = messageOf(model, await answer(model))
    await answer(model, { messages: [user('go'), answered, result('call_a', 'A'), failed('call_b', 'no such file')] })
    expect(subject.pickResults(provider.requests[1]?.body)).toEqual(subject.results)
  })

  test('sends the reasoning of another model neither as reasoning nor as metadata', async () => {
    provider.script(say('Done.'))
    const foreign: Message = {
      role: 'assistant',
      provider: 'elsewhere',
      model: 'other',
      content: [
        { type: 'reasoning', reasoning: { text: 'Secret thought.', signature: 'Zm9yZWlnbg' } },
        {
          type: 'text',
          text: { content: 'Said.', providerMetadata: { google: { thoughtSignature: 'Zm9yZWlnbg' } } },
        },
      ],
    }
    await answer(make(), { messages: [user('go'), foreign, user('and?')] })
    const sent = rawBody()
    expect(sent).toContain('Said.')
    expect(sent).not.toMatch(/Secret thought|Zm9yZWlnbg/)
  })

  test('sends images of the user', async () => {
    provider.script(say('A dot.'))
    await answer(make({ limits: { hasImages: true } }), {
      messages: [{ role: 'user', content: [text('What is it?'), image] }],
    })
    expect(rawBody()).toContain(dot)
  })

  test('omits images if the model does not support them, with a note', async () => {
    provider.script(say('I cannot see.'))
    await answer(make({ limits: { hasImages: false } }), {
      messages: [{ role: 'user', content: [text('What?'), image] }],
    })
    expect(rawBody()).not.toContain(dot)
    expect(rawBody()).toContain('An image (image/png) was left out')
  })

  test('distinguishes length from a natural end', async () => {
    provider.script({ ...say('And then'), finish: 'length' })
    expect((await answer(make())).at(-1)).toEqual({ type: 'finish', reason: 'length' })
  })

  test('a filtered answer is `refused`, after its text', async () => {
    provider.script({ ...say('Well,'), finish: 'content-filter' })
    const { parts, error } = await failure(make())
    expect(deltas(parts)).toEqual(['text 0: Well,'])
    expect(error.kind).toBe('refused')
  })

  test('reports an invalid request, and does not mistake a word for a timeout', async () => {
    provider.script({ type: 'failure', error: 'invalid-request' })
    const { error } = await failure(make())
    expect(error).toMatchObject({ kind: 'invalid-request', status: 400, retryAfterMs: undefined })
    expect(error.message).toMatch(/timeout/)
  })

  test('HTTP 429 with Retry-After in seconds', async () => {
    provider.script({ type: 'failure', error: 'rate-limited', retryAfter: { seconds: 7 } })
    const { error } = await failure(make())
    expect(error).toMatchObject({ kind: 'rate-limited', status: 429, retryAfterMs: 7000 })
  })

  test('HTTP 429 with Retry-After in milliseconds', async () => {
    provider.script({ type: 'failure', error: 'rate-limited', retryAfter: { ms: 1234 } })
    expect((await failure(make())).error).toMatchObject({ kind: 'rate-limited', retryAfterMs: 1234 })
  })

  test('HTTP 429 with Retry-After as a date', async () => {
    const clock = new FakeClock(Date.parse('2026-11-20T10:00:00Z'))
    provider.script({ type: 'failure', error: 'rate-limited', retryAfter: { date: new Date('2026-11-20T10:00:20Z') } })
    expect((await failure(make({ clock }))).error).toMatchObject({ kind: 'rate-limited', retryAfterMs: 20_000 })
  })

  test('an exhausted quota is not a transient limit', async () => {
    provider.script({ type: 'failure', error: 'quota' })
    expect((await failure(make())).error.kind).toBe('quota')
  })

  test.each([500, 502, 503, 504, 529])('HTTP %i means that the provider is overloaded', async (status) => {
    provider.script({ type: 'failure', error: 'server-error', status })
    expect((await failure(make())).error).toMatchObject({ kind: 'overloaded', status })
  })

  test('HTTP 400 "prompt is too long" in the text of the provider', async () => {
    provider.script({ type: 'failure', error: 'context-overflow' })
    expect((await failure(make())).error).toMatchObject({ kind: 'context-overflow', status: 400 })
  })

  test('a rejected key', async () => {
    provider.script({ type: 'failure', error: 'auth' })
    expect((await failure(make())).error.kind).toBe('auth')
  })

  test('200 and an overload as the first event', async () => {
    provider.script({ type: 'answer', content: [], ending: { type: 'error', error: 'overloaded' } })
    const { parts, error } = await failure(make())
    expect(parts).toEqual([])
    expect(error).toMatchObject({ kind: 'overloaded', status: subject.overloadedStatus })
  })

  test('an overload after some text, which comes as a plain object', async () => {
    provider.script({ ...say('Half'), ending: { type: 'error', error: 'overloaded' } })
    const { parts, error } = await failure(make())
    expect(deltas(parts)).toEqual(['text 0: Half'])
    expect(error).toMatchObject({ kind: 'overloaded', status: subject.overloadedStatus })
    expect(error.message).toMatch(/overloaded/i)
  })

  test('a context overflow in the stream', async () => {
    provider.script({ ...say('Half'), ending: { type: 'error', error: 'context-overflow' } })
    expect((await failure(make())).error.kind).toBe('context-overflow')
  })

  test('a socket that is cut in mid-stream', async () => {
    provider.script({
      type: 'answer',
      content: [...say('Half').content, wait, ...say('').content],
      ending: { type: 'cut' },
    })
    const { parts, error } = await failure(make(), { onPart: () => provider.release('gate') })
    expect(deltas(parts)).toEqual(['text 0: Half'])
    expect(error).toMatchObject({ kind: 'network', status: undefined })
  })

  test('a clean end in mid-stream', async () => {
    provider.script({ ...say('Half'), ending: { type: 'eof' } })
    const { parts, error } = await failure(make())
    expect(deltas(parts)).toEqual(['text 0: Half'])
    expect(error.kind).toBe('network')
  })

  test('an answer without any event', async () => {
    provider.script({ type: 'answer', content: [], ending: { type: 'eof' } })
    expect((await failure(make())).error.kind).toBe('network')
  })

  test('an event that is not JSON, in the middle and as the first', async () => {
    provider.script({ ...say('Half'), ending: { type: 'malformed' } })
    provider.script({ type: 'answer', content: [], ending: { type: 'malformed' } })
    expect((await failure(make())).error.kind).toBe('network')
    expect((await failure(make())).error.kind).toBe('network')
  })

  test('a connection that is closed before an answer, and one that is refused', async () => {
    provider.script({ type: 'cut' })
    expect((await failure(make())).error).toMatchObject({ kind: 'network', status: undefined })
    const gone = make()
    await provider.close()
    expect((await failure(gone)).error).toMatchObject({ kind: 'network', status: undefined })
    provider = await startFakeProvider()
  })

  test('an abort in mid-stream throws its reason and closes the connection', async () => {
    provider.script({ ...say('Half'), ending: { type: 'hang' } })
    const aborting = new AbortController()
    const reason = new Error('enough')
    const parts: ModelPart[] = []
    const reading = (async () => {
      for await (const part of make().prepare(request()).stream(aborting.signal)) {
        parts.push(part)
        aborting.abort(reason)
      }
    })()
    await expect(reading).rejects.toBe(reason)
    expect(deltas(parts)).toEqual(['text 0: Half'])
    expect(await provider.requests[0]?.closed).toBe('cut')
  })

  test('an abort before the headers throws its reason and closes the connection', async () => {
    provider.script({ type: 'hang' })
    const aborting = new AbortController()
    const reason = new Error('enough')
    const reading = answer(make(), {}, aborting.signal)
    const { closed } = await provider.request(1)
    aborting.abort(reason)
    await expect(reading).rejects.toBe(reason)
    expect(await closed).toBe('cut')
  })

  test('an already aborted signal sends nothing', async () => {
    const reason = new Error('too late')
    await expect(answer(make(), {}, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(provider.requests).toEqual([])
  })

  test('a reader that stops closes the connection', async () => {
    provider.script({ ...say('Half'), ending: { type: 'hang' } })
    for await (const part of make().prepare(request()).stream(new AbortController().signal)) {
      expect(part.type).toBe('text_delta')
      break
    }
    expect(await provider.requests[0]?.closed).toBe('cut')
  })

  test('a complete answer leaves the connection open for later requests', async () => {
    for (let count = 0; count < 4; count += 1) {
      provider.script(say('ok'))
      await answer(make())
      expect(await provider.requests[count]?.closed).toBe('complete')
    }
    expect(provider.connections).toBeLessThan(4)
  })

  test('silence before the headers ends after the first limit', async () => {
    const clock = new FakeClock()
    provider.script({ type: 'hang' })
    const failing = failure(make({ clock }))
    const { closed } = await provider.request(1)
    expect(await clock.skip()).toBe(300_000)
    const { error } = await failing
    expect(error.kind).toBe('network')
    expect(error.message).toContain('sent nothing for 300 seconds')
    expect(await closed).toBe('cut')
  })

  test('keep-alive events are not content: they do not extend the limit', async () => {
    const clock = new FakeClock()
    provider.script({ type: 'answer', content: [wait, { type: 'keep_alive', count: 20 }], ending: { type: 'hang' } })
    const failing = failure(make({ clock }))
    await provider.request(1)
    clock.advance(200_000)
    provider.release('gate')
    await provider.idle(1)
    clock.advance(100_000)
    expect((await failing).error.message).toContain('sent nothing for 300 seconds')
  })

  test('silence in mid-stream ends after the second limit', async () => {
    const clock = new FakeClock()
    provider.script({ ...say('Half'), ending: { type: 'hang' } })
    const stream = make({ clock }).prepare(request()).stream(new AbortController().signal)[Symbol.asyncIterator]()
    expect((await stream.next()).value).toMatchObject({ text: 'Half' })
    const next = stream.next()
    await vi.waitFor(() => expect(clock.waits).toEqual([120_000]))
    clock.advance(120_000)
    await expect(next).rejects.toThrow('sent nothing for 120 seconds')
  })

  test('equal requests are equal bytes and have equal hashes', async () => {
    provider.script(say('a'), say('b'), say('c'))
    const first = make().prepare(conversation())
    const second = make().prepare(conversation())
    await collect(first)
    await collect(second)
    await collect(first)
    const [a, b, c] = provider.requests.map(({ bytes }) => Buffer.from(bytes).toString())
    expect(b).toBe(a)
    expect(c).toBe(a)
    expect(second.reference).toEqual(first.reference)
  })

  test('the bytes of a conversation begin with those of the shorter one, as a cache requires', async () => {
    provider.script(say('a'), say('b'))
    await collect(make().prepare(conversation()))
    const longer = conversation()
    await collect(make().prepare({ ...longer, messages: [...longer.messages, assistantText('ok'), user('more')] }))
    const [shorter, whole] = provider.requests.map(({ body }) => wireMessages(body).map(withoutMarks))
    expect(whole?.slice(0, shorter?.length)).toEqual(shorter)
  })
})

test.each(['anthropic', 'openai', 'google'] as const)(
  'without an API key %s fails at once and sends nothing',
  async (name) => {
    const { make } = subjects.find((subject) => subject.name === name)!
    for (const variable of ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY']) {
      vi.stubEnv(variable, undefined)
    }
    const { baseUrl } = connection(name)
    const { error } = await failure({ anthropic, openai, google }[name]({ model: make().id, baseUrl }))
    expect(error.kind).toBe('auth')
    expect(provider.requests).toEqual([])
  },
)

describe('traps of the provider packages', () => {
  test('trap 1: OpenAI never stores anything, so reasoning is sent back encrypted and complete', async () => {
    provider.script(thoughtful, say('Done.'))
    const model = openai({ ...connection('openai'), model: 'gpt-5.5', promptCacheKey: 'session-1' })
    const answered = messageOf(model, await answer(model))
    await answer(model, { messages: [user('go'), answered, result('call_a', 'A'), result('call_b', 'B')] })
    for (const { body } of provider.requests) {
      expect(body).toMatchObject({
        store: false,
        include: ['reasoning.encrypted_content'],
        prompt_cache_key: 'session-1',
      })
      expect(JSON.stringify(body)).not.toContain('item_reference')
    }
  })

  test('trap 1: a model of OpenAI without reasoning gets no request for encrypted reasoning, which it would reject', async () => {
    provider.script(say('Hi.'))
    await answer(openai({ ...connection('openai'), model: 'gpt-4.1' }))
    expect(provider.requests[0]?.body).toMatchObject({ store: false })
    expect(provider.requests[0]?.body).not.toHaveProperty('include')
  })

  test('trap 2: an image in a tool result is never sent as base64 text', async () => {
    provider.script(say('ok'))
    const model = openaiCompatible({ ...connection('openaiCompatible'), name: 'local', model: 'qwen3-vl' })
    await answer(model, { messages: withImageResult(model) })
    expect(rawBody()).not.toContain(dot)
    expect(provider.requests[0]?.body['messages']).toContainEqual({
      role: 'tool',
      tool_call_id: 'call_a',
      content: 'dot.png\n[An image (image/png) was left out: the model does not support images in tool results.]',
    })
  })

  test.each([
    ['anthropic', 'claude-opus-5', { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'DOT' } }],
    ['openai', 'gpt-5.5', { type: 'input_image', image_url: 'data:image/png;base64,DOT' }],
    ['google', 'gemini-3.1-pro-preview', { inlineData: { mimeType: 'image/png', data: 'DOT' } }],
    ['google', 'gemini-2.5-pro', { inlineData: { mimeType: 'image/png', data: 'DOT' } }],
  ] as const)('an image in a tool result is an image to %s %s', async (name, model, expected) => {
    provider.script(say('ok'))
    const subject = { anthropic, openai, google }[name]({ ...connection(name), model })
    await answer(subject, { messages: withImageResult(subject) })
    expect(rawBody()).toContain(JSON.stringify(expected).replace('DOT', dot))
  })

  test('a tool result with several texts and images is one answer to a model before Gemini 3', async () => {
    provider.script(say('ok'))
    const model = google({ ...connection('google'), model: 'gemini-2.5-pro' })
    await answer(model, {
      messages: [user('go'), assistantCall(model), blocks('call_a', [image, text('one'), image, text('two')])],
    })
    expect(rawBody().match(/functionResponse"/g)).toHaveLength(1)
    expect(rawBody()).toContain('one\\ntwo')
  })

  test('trap 3: the context answers a call without a result, so nothing unanswered is sent', async () => {
    provider.script(say('ok'))
    const model = anthropic({ ...connection('anthropic'), model: 'claude-opus-5' })
    const path = [user('go'), assistantCall(model), user('never mind')].map(
      (message, index) => ({ type: 'message', id: `e${index}`, message }) as Entry,
    )
    const context = buildContext({ path, compaction: null, system: null, model: null, thinking: null })
    await answer(model, { messages: context.messages.map(({ message }) => message) })
    expect(provider.requests[0]?.body['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'call_a' }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'call_a', is_error: true }, { text: 'never mind' }],
      },
    ])
  })

  test.each(['anthropic', 'openai', 'openaiCompatible'] as const)(
    'trap 4: a call of %s with incomplete JSON arrives unchanged',
    async (name) => {
      const cutOff = { type: 'tool_call', id: 'call_a', name: 'read', chunks: ['{"path": "a', 'bc'] } as const
      provider.script({ type: 'answer', content: [{ ...cutOff, chunks: [...cutOff.chunks] }], finish: 'tool-calls' })
      const model = subjects.find((subject) => subject.name === name)!.make()
      const parts = await answer(model)
      expect(parts).toContainEqual(
        expect.objectContaining({ type: 'tool_call', part: 0, callId: 'call_a', input: '{"path": "abc' }),
      )
      expect(parts.at(-1)).toEqual({ type: 'finish', reason: 'tool-calls' })
    },
  )

  test('trap 4: Google does not deliver such a call, and a retry may succeed', async () => {
    provider.script({
      type: 'answer',
      content: [{ type: 'tool_call', id: 'a', name: 'read', chunks: ['{"path": "a'] }],
    })
    const { error } = await failure(google({ ...connection('google'), model: 'gemini-3.1-pro-preview' }))
    expect(error.kind).toBe('overloaded')
    expect(error.message).toContain('MALFORMED_FUNCTION_CALL')
  })

  test('a call without input has an empty object', async () => {
    for (const subject of subjects) {
      provider.script({ type: 'answer', content: [{ type: 'tool_call', id: 'call_a', name: 'ls', chunks: [] }] })
      const call = (await answer(subject.make())).find(({ type }) => type === 'tool_call')
      expect(['{}', '']).toContain((call as ModelPart & { type: 'tool_call' }).input)
    }
  })

  test('encrypted reasoning without text is sent back too', async () => {
    provider.script({
      type: 'answer',
      content: [{ type: 'reasoning', chunks: [], signature: 'ZW5j' }, ...say('Hi.').content],
    })
    provider.script(say('Done.'))
    const model = openai({ ...connection('openai'), model: 'gpt-5.5' })
    const answered = messageOf(model, await answer(model))
    await answer(model, { messages: [user('go'), answered, user('more')] })
    expect(provider.requests[1]?.body['input']).toContainEqual(
      expect.objectContaining({ type: 'reasoning', encrypted_content: 'ZW5j', summary: [] }),
    )
  })
})

describe('cache markers of Anthropic', () => {
  test('are on the system prompt, the last tool, the last message and the end of the previous request', async () => {
    provider.script(say('ok'))
    const model = anthropic({ ...connection('anthropic'), model: 'claude-opus-5' })
    const messages = [user('one'), assistantText('two'), user('three'), assistantCall(model), result('call_a', 'A')]
    await answer(model, { messages, tools: [tool('read'), tool('write')] })
    const { system, tools, messages: sent } = provider.requests[0]!.body as any
    const marks = [...system, ...tools, ...sent.flatMap(({ content }: any) => content)]
      .filter((block: any) => block.cache_control)
      .map((block: any) => block.name ?? block.tool_use_id ?? block.text)
    expect(marks).toEqual(['Be brief.', 'write', 'three', 'call_a'])
  })

  test('are at most four, whatever the request', async () => {
    const model = anthropic({ ...connection('anthropic'), model: 'claude-opus-5' })
    for (const messages of [
      [user('one')],
      [user('one'), user('two')],
      [user('one'), assistantText('two'), user('three')],
    ]) {
      provider.script(say('ok'))
      await answer(model, { messages })
      expect(rawBody().match(/cache_control/g)!.length).toBeLessThanOrEqual(4)
    }
  })

  test('are for Anthropic only', async () => {
    for (const { name, make } of subjects.filter((subject) => subject.name !== 'anthropic')) {
      provider.script(say('ok'))
      await answer(make())
      expect([name, rawBody().includes('cache')]).toEqual([name, false])
    }
  })
})

describe('thinking levels', () => {
  test.each([
    ['anthropic', 'claude-opus-5', 'off', { thinking: { type: 'disabled' } }],
    ['anthropic', 'claude-opus-5', 'high', { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }],
    ['anthropic', 'claude-opus-5', 'max', { output_config: { effort: 'max' }, max_tokens: 64_000 }],
    ['openai', 'gpt-5.5', 'off', { reasoning: { effort: 'none' } }],
    ['openai', 'gpt-5.5', 'medium', { reasoning: { effort: 'medium', summary: 'auto' } }],
    ['openai', 'o3', 'off', { reasoning: { effort: 'low' } }],
    ['openai', 'o3', 'max', { reasoning: { effort: 'high' } }],
    ['google', 'gemini-3.1-pro-preview', 'high', { generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } }],
    ['google', 'gemini-2.5-flash', 'off', { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }],
    ['openaiCompatible', 'qwen3', 'xhigh', { reasoning_effort: 'high' }],
    ['openaiCompatible', 'qwen3', 'minimal', { reasoning_effort: 'low' }],
  ] as const)('%s %s at level %s', async (name, model, thinkingLevel, expected) => {
    provider.script(say('ok'))
    const make = subjects.find((subject) => subject.name === name)!.make
    await answer(make({ model }), { thinkingLevel })
    expect(provider.requests[0]?.body).toMatchObject(expected)
  })

  test.each([
    ['anthropic', 'claude-3-5-haiku-latest', 'thinking'],
    ['openai', 'gpt-4.1', 'reasoning'],
    ['google', 'gemini-2.0-flash', 'thinkingConfig'],
    ['openaiCompatible', 'qwen3', 'reasoning'],
  ] as const)('%s %s gets no thinking parameter when it is off', async (name, model, word) => {
    provider.script(say('ok'))
    await answer(subjects.find((subject) => subject.name === name)!.make({ model }), { thinkingLevel: 'off' })
    expect(rawBody()).not.toContain(word)
  })
})

const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const image: Content = { type: 'image', image: { source: { type: 'base64', mediaType: 'image/png', data: dot } } }
const wait = { type: 'wait', gate: 'gate' } as const

function connection(name: FakeApi): { apiKey: string; baseUrl: string } {
  return { apiKey: 'test-key', baseUrl: provider.baseUrl(name) }
}

function say(...chunks: string[]): FakeAnswer {
  return { type: 'answer', content: [{ type: 'text', chunks }] } satisfies FakeStep
}

function tool(name: string): ModelRequest['tools'][number] {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
  }
}

function request(given: Partial<ModelRequest> = {}): ModelRequest {
  return { system: 'Be brief.', tools: [tool('read')], messages: [user('go')], thinkingLevel: 'high', ...given }
}

function conversation(): ModelRequest {
  const calls: Message = {
    role: 'assistant',
    content: [{ type: 'tool_use', toolUse: { id: 'call_a', name: 'read', input: { path: 'a', lines: [1, 2] } } }],
  }
  return request({ messages: [user('go'), assistantText('I look.'), user('yes'), calls, result('call_a', 'A')] })
}

function user(words: string): Message {
  return { role: 'user', content: [text(words)] }
}

function assistantText(words: string): Message {
  return { role: 'assistant', content: [text(words)] }
}

function assistantCall({ provider, id: model }: Model): Message {
  const toolUse = { id: 'call_a', name: 'read', input: { path: 'dot.png' } }
  return { role: 'assistant', provider, model, content: [{ type: 'tool_use', toolUse }] }
}

function result(toolUseId: string, content: string): Message {
  return { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId, content } }] }
}

function failed(toolUseId: string, content: string): Message {
  return { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId, isError: true, content } }] }
}

function blocks(toolUseId: string, content: Content[]): Message {
  return { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId, content } }] }
}

function withImageResult(model: Model): Message[] {
  return [user('go'), assistantCall(model), blocks('call_a', [text('dot.png'), image])]
}

async function collect(
  call: ReturnType<Model['prepare']>,
  signal = new AbortController().signal,
): Promise<ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of call.stream(signal)) parts.push(part)
  return parts
}

function answer(model: Model, given: Partial<ModelRequest> = {}, signal?: AbortSignal): Promise<ModelPart[]> {
  return collect(model.prepare(request(given)), signal)
}

async function failure(
  model: Model,
  { onPart }: { onPart?: () => void } = {},
): Promise<{ parts: ModelPart[]; error: ModelError }> {
  const parts: ModelPart[] = []
  try {
    for await (const part of model.prepare(request()).stream(new AbortController().signal)) {
      parts.push(part)
      onPart?.()
    }
  } catch (error) {
    if (error instanceof ModelError) return { parts, error }
    throw error
  }
  throw new Error(`It did not fail: ${JSON.stringify(parts)}`)
}

function deltas(parts: ModelPart[]): string[] {
  return parts.flatMap((part) => (part.type === 'text_delta' ? [`text ${part.part}: ${part.text}`] : []))
}

/** The message that an answer becomes. */
function messageOf({ provider, id: model }: Model, parts: ModelPart[]): Message {
  const content: Content[] = []
  const texts = new Map<number, string>()
  for (const part of parts) {
    if (part.type === 'text_delta' || part.type === 'reasoning_delta') {
      texts.set(part.part, (texts.get(part.part) ?? '') + part.text)
    } else if (part.type === 'text_end') {
      const { type: _, part: place, ...metadata } = part
      content[place] = { type: 'text', text: { content: texts.get(place) ?? '', ...metadata } }
    } else if (part.type === 'reasoning_end') {
      const { type: _, part: place, ...signed } = part
      content[place] = { type: 'reasoning', reasoning: { text: texts.get(place) ?? '', ...signed } }
    } else if (part.type === 'tool_call') {
      const { type: _, part: place, callId: id, name, input, ...metadata } = part
      content[place] = { type: 'tool_use', toolUse: { id, name, input: JSON.parse(input), ...metadata } }
    }
  }
  return { role: 'assistant', provider, model, content }
}

function rawBody(): string {
  return Buffer.from(provider.requests.at(-1)!.bytes).toString()
}

function wireMessages(body: Record<string, unknown>): unknown[] {
  return (body['messages'] ?? body['input'] ?? body['contents']) as unknown[]
}

/** Cache markers move as the conversation grows; a cache ignores them. */
function withoutMarks(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message, (key, value: unknown) => (key === 'cache_control' ? undefined : value)))
}
