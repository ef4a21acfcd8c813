import { text, type Content, type Message } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import type { Model } from './model.ts'
import { anthropic } from './providers/anthropic.ts'
import { openaiCompatible } from './providers/openai-compatible.ts'

type Body = Record<string, unknown>

const question: Message = { role: 'user', content: [text('go')] }
const call: Content = { type: 'tool_use', toolUse: { id: 'toolu_1', name: 'read', input: {} } }
const thinking: Content = { type: 'reasoning', reasoning: { text: 'Hm.', signature: 'c2ln' } }
const result: Message = {
  role: 'tool',
  content: [{ type: 'tool_result', toolResult: { toolUseId: 'toolu_1', content: 'x' } }],
}

describe('Claude with a thinking budget', () => {
  const own = { role: 'assistant', provider: 'anthropic', model: 'claude-sonnet-4-5' } as const
  const foreign = { ...own, provider: 'openai', model: 'gpt-5' }

  test.each<[string, boolean, Message[]]>([
    ['thinks in a new turn', true, [question]],
    ['keeps thinking after its own thinking', true, [question, { ...own, content: [thinking, call] }, result]],
    ['stops thinking after calls of another model', false, [question, { ...foreign, content: [call] }, result]],
    [
      'stops thinking after an aborted answer',
      false,
      [question, { ...own, stopReason: 'aborted', content: [thinking, call] }, result, question],
    ],
    ['stops thinking after an answer without thinking', false, [question, { ...own, content: [call] }, result]],
    [
      'thinks again once another prompt has been answered',
      true,
      [question, { ...foreign, content: [call] }, result, { ...foreign, content: [text('Done.')] }, question],
    ],
  ])('%s', async (_, isThinking, messages) => {
    const { body } = await sentBy((fetch) => anthropic({ model: 'claude-sonnet-4-5', apiKey: 'k', fetch }), messages)
    expect((body['thinking'] as Body | undefined)?.['type'] === 'enabled').toBe(isThinking)
  })

  test('later models, which decide themselves, are not told to stop thinking', async () => {
    const messages: Message[] = [question, { ...foreign, content: [call] }, result]
    const { body } = await sentBy((fetch) => anthropic({ model: 'claude-opus-5', apiKey: 'k', fetch }), messages)
    expect(body['thinking']).not.toMatchObject({ type: 'disabled' })
  })
})

test('a query of the base URL goes after the path, and Azure gets the key in its own header', async () => {
  const baseUrl = 'https://acme.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21'
  const { url, headers } = await sentBy(
    (fetch) => openaiCompatible({ name: 'azure', model: 'gpt', baseUrl, apiKey: 'secret', fetch }),
    [question],
  )
  expect(url).toBe('https://acme.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2024-10-21')
  expect(headers.get('api-key')).toBe('secret')
})

interface Sent {
  url: string
  headers: Headers
  body: Body
}

/** The request of the model on the wire. */
async function sentBy(make: (fetch: typeof globalThis.fetch) => Model, messages: readonly Message[]): Promise<Sent> {
  const sent: Sent[] = []
  const fetch = ((url: string, init: RequestInit) => {
    sent.push({ url, headers: new Headers(init.headers), body: JSON.parse(init.body as string) as Body })
    return Promise.resolve(new Response('{"error":{"message":"No."}}', { status: 400 }))
  }) as unknown as typeof globalThis.fetch
  const tools = [{ name: 'read', description: 'Reads a file.', inputSchema: { type: 'object' } }]
  const answer = make(fetch).prepare({ system: 'Be brief.', tools, messages, thinkingLevel: 'high' })
  const part = answer.stream(new AbortController().signal)[Symbol.asyncIterator]().next()
  await expect(part).rejects.toThrow('No.')
  const [first] = sent
  if (!first) throw new Error('Nothing was sent.')
  return first
}
