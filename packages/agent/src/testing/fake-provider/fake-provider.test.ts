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

describe('FakeProvider', () => {
  test('takes its steps one after the other, and then asks the function', async () => {
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

  test('says so when it has no step left', async () => {
    const response = await post('anthropic', {})
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('The fake provider has no step for request 1.')
  })

  test('says so when a function of the script throws', async () => {
    provider.script(() => {
      throw new Error('my mistake')
    })
    const response = await post('openai', {})
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('my mistake')
  })

  test('has nothing at other paths', async () => {
    expect((await fetch(`${provider.url}/v1/models`)).status).toBe(404)
  })

  test('keeps each request as it came', async () => {
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
    expect(Buffer.from(request!.bytes).toString()).toBe('{"model":"claude"}')
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
  ] as const)('speaks the format of %s, the same in every run', async (api, events) => {
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

  test('stops at a gate until it is released, with all that came before it sent', async () => {
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

  test('closes while an answer hangs', async () => {
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

function post(api: FakeApi, body: unknown, to = provider): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${to.baseUrl(api)}${paths[api]}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** The kind of each event, or its first member where the format has no kinds. */
function eventsIn(body: string): string[] {
  return [...body.matchAll(/^data: (.+)$/gm)].map(([, data]) => {
    if (data === '[DONE]') return data
    const event = JSON.parse(data!) as { type?: string; object?: string }
    return event.type ?? event.object ?? Object.keys(event)[0]!
  })
}
