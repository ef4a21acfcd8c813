import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startFakeProvider, type FakeAnswer, type FakeApi, type FakeProvider } from './index.ts'

let provider: FakeProvider
beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const paths: Record<FakeApi, string> = {
  anthropic: '/messages',
  openai: '/responses',
  openaiCompatible: '/chat/completions',
  google: '/models/gemini-3:streamGenerateContent?alt=sse',
}

/** The smallest request that each API accepts. */
const bodies: Record<FakeApi, Record<string, unknown>> = {
  anthropic: { model: 'claude-opus-5', max_tokens: 100, messages: [{ role: 'user', content: 'go' }] },
  openai: { model: 'gpt-5.5', input: [{ role: 'user', content: 'go' }] },
  openaiCompatible: { model: 'any', messages: [{ role: 'user', content: 'go' }] },
  google: { contents: [{ role: 'user', parts: [{ text: 'go' }] }] },
}

describe('FakeProvider', () => {
  test('takes its steps one after the other, and then calls the function', async () => {
    provider.script(say('one'), say('two'))
    provider.script(({ body }) => say(`you said ${String(body['say'])}`))
    const answers = []
    for (const each of ['a', 'b', 'c', 'd']) answers.push(await (await post('openaiCompatible', { say: each })).text())
    expect(answers.map((answer) => /"content":"([^"]+)"/.exec(answer)?.[1])).toEqual([
      'one',
      'two',
      'you said c',
      'you said d',
    ])
  })

  test('reports that no step is left', async () => {
    const response = await post('anthropic', {})
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('The fake provider has no step for request 1.')
  })

  test('reports that a function of the script throws', async () => {
    provider.script(() => {
      throw new Error('my mistake')
    })
    const response = await post('openai', {})
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('my mistake')
  })

  describe('without a socket', () => {
    const url = (api: FakeApi): string => `${provider.baseUrl(api)}${paths[api]}`
    const send = (api: FakeApi, signal?: AbortSignal): Promise<Response> =>
      provider.fetch(url(api), { method: 'POST', body: JSON.stringify(bodies[api]), ...(signal && { signal }) })
    const chunks = ['data: a', 'b\n\n', 'c'].map((chunk) => Buffer.from(chunk))

    test.each(Object.keys(paths) as FakeApi[])('answers %s as through a socket', async (api) => {
      provider.script(say('one'), say('one'))
      const bySocket = await (await post(api, {})).text()
      const withoutSocket = await (await send(api)).text()
      expect(withoutSocket.replaceAll(/fake[-_]\d/g, '')).toBe(bySocket.replaceAll(/fake[-_]\d/g, ''))
    })

    test('sends the chunks of a script unchanged, and ends or breaks as the script says', async () => {
      provider.script({ type: 'bytes', chunks }, { type: 'bytes', chunks, ending: 'cut' })
      const read: string[] = []
      for await (const chunk of (await send('openai')).body ?? []) read.push(Buffer.from(chunk).toString())
      expect(read).toEqual(['data: a', 'b\n\n', 'c'])
      expect(await provider.requests[0]?.closed).toBe('complete')
      const reader = (await send('openai')).body?.getReader()
      for (const chunk of chunks) expect(await reader?.read()).toEqual({ done: false, value: chunk })
      await expect(reader?.read()).rejects.toThrow('terminated')
      expect(await provider.requests[1]?.closed).toBe('cut')
      expect(provider.connections).toBe(0)
    })

    test('an abort and closing the provider break a hanging answer', async () => {
      provider.script({ type: 'hang' }, { type: 'bytes', chunks, ending: 'hang' }, { type: 'hang' })
      const controller = new AbortController()
      const waiting = send('openai', controller.signal)
      await provider.request(1)
      controller.abort(new Error('enough'))
      await expect(waiting).rejects.toThrow('enough')
      const second = new AbortController()
      const body = (await send('openai', second.signal)).text()
      await provider.idle(2)
      second.abort(new Error('enough'))
      await expect(body).rejects.toThrow('enough')
      const open = send('openai')
      await provider.request(3)
      const failed = expect(open).rejects.toThrow('terminated')
      await provider.close()
      await failed
      provider = await startFakeProvider()
    })
  })

  test('answers 404 at other paths', async () => {
    expect((await fetch(`${provider.url}/v1/models`)).status).toBe(404)
  })

  test('records each request as received', async () => {
    provider.script(say('ok'))
    await (await post('anthropic', { model: 'claude' })).text()
    const [request] = provider.requests
    expect(request).toMatchObject({
      number: 1,
      api: 'anthropic-messages',
      path: '/v1/messages',
      body: { model: 'claude' },
      headers: { 'content-type': 'application/json' },
    })
    expect(Buffer.from(request!.bytes).toString()).toBe(JSON.stringify({ ...bodies.anthropic, model: 'claude' }))
    expect(await request!.closed).toBe('complete')
  })

  test.each([
    [
      'anthropic',
      'message_start ping content_block_start content_block_delta content_block_delta content_block_stop message_delta message_stop',
    ],
    [
      'openai',
      'response.created response.in_progress response.output_item.added response.reasoning_summary_part.added response.reasoning_summary_text.delta response.reasoning_summary_part.done response.output_item.done response.completed',
    ],
    [
      'openaiCompatible',
      'chat.completion.chunk chat.completion.chunk chat.completion.chunk chat.completion.chunk [DONE]',
    ],
    ['google', 'candidates candidates'],
  ] as const)('uses the format of %s, the same in every run', async (api, events) => {
    await using other = await startFakeProvider()
    const answer: FakeAnswer = { type: 'answer', content: [{ type: 'reasoning', chunks: ['hm'], signature: 'sig' }] }
    provider.script(answer)
    other.script(answer)
    const [said, again] = await Promise.all(
      [post(api, {}), post(api, {}, other)].map(async (each) => (await each).text()),
    )
    expect(eventsIn(said!).join(' ')).toBe(events)
    expect(again).toBe(said)
  })

  test('rejects a request that breaks a rule, in the error format of the provider, and keeps the step for the next request', async () => {
    provider.script(say('ok'))
    const rejected = await post('anthropic', { messages: [] })
    expect([rejected.status, await rejected.json()]).toEqual([
      400,
      {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'messages: At least one message is required. (rule messages-not-empty)',
        },
        request_id: 'req_fake',
      },
    ])
    expect(provider.requests[0]?.broken.map(({ rule }) => rule)).toEqual(['messages-not-empty'])
    expect(await (await post('anthropic', {})).text()).toContain('ok')
  })

  test('answers a request that breaks a rule if it is not strict, and still reports the rule', async () => {
    await using lenient = await startFakeProvider({ strict: false })
    lenient.script(say('ok'))
    expect((await post('openai', { input: [] }, lenient)).status).toBe(200)
    expect(lenient.requests[0]?.broken.map(({ rule }) => rule)).toEqual(['input-not-empty'])
  })

  test.each([
    ['groq', { reasoning: 'hm' }],
    ['deepseek', { reasoning_content: 'hm' }],
    ['openrouter', { reasoning: 'hm', reasoning_details: [{ type: 'reasoning.text', text: 'hm', index: 0 }] }],
    ['mistral', { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] }],
  ] as const)('streams reasoning like %s', async (host, delta) => {
    provider.script({ type: 'answer', content: [{ type: 'reasoning', chunks: ['hm'] }] })
    const url = `${provider.baseUrl('openaiCompatible', { host })}/chat/completions`
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify(bodies.openaiCompatible) })
    expect(await answer.text()).toContain(`"delta":${JSON.stringify(delta)}`)
    expect(provider.requests[0]?.host).toBe(host)
  })

  test('answers 404 for an unknown host', async () => {
    const url = `${provider.url}/elsewhere/v1/chat/completions`
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(404)
  })

  test('stops at a gate until it is released, after sending everything before it', async () => {
    provider.script({
      type: 'answer',
      content: [
        { type: 'text', chunks: ['before'] },
        { type: 'wait', gate: 'go' },
        { type: 'text', chunks: ['after'] },
      ],
    })
    const response = await post('openaiCompatible', {})
    let said = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      said += chunk
      if (!said.includes('before')) continue
      if (!said.includes('after')) provider.release('go')
    }
    expect(said.indexOf('before')).toBeLessThan(said.indexOf('after'))
  })

  test('sends bytes exactly as given, and breaks the connection after them', async () => {
    const chunks = ['da', 'ta: {"a', '":1}\r\n'].map((each) => Buffer.from(each))
    const headers = { 'content-type': 'text/plain' }
    provider.script({ type: 'bytes', chunks }, { type: 'bytes', chunks, status: 500, headers, ending: 'cut' })
    expect(await (await post('openai', {})).text()).toBe('data: {"a":1}\r\n')
    const broken = await post('openai', {})
    expect([broken.status, broken.headers.get('content-type')]).toEqual([500, 'text/plain'])
    await expect(broken.text()).rejects.toThrow('terminated')
  })

  test('closes during a hanging answer', async () => {
    provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['a'] }], ending: { type: 'hang' } })
    const response = await post('anthropic', {})
    await provider.idle(1)
    await provider.close()
    await expect(response.text()).rejects.toThrow('terminated')
    expect(await provider.requests[0]!.closed).toBe('cut')
    provider = await startFakeProvider()
  })
})

function say(...chunks: string[]): FakeAnswer {
  return { type: 'answer', content: [{ type: 'text', chunks }] }
}

function post(api: FakeApi, more: Record<string, unknown>, to = provider): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ ...bodies[api], ...more })
  return fetch(`${to.baseUrl(api)}${paths[api]}`, { method: 'POST', headers, body })
}

/** The kind of each event, or its first member if the format has no kinds. */
function eventsIn(body: string): string[] {
  return [...body.matchAll(/^data: (.+)$/gm)].map(([, data]) => {
    if (data === '[DONE]') return data
    const event = JSON.parse(data!) as { type?: string; object?: string }
    return event.type ?? event.object ?? Object.keys(event)[0]!
  })
}
