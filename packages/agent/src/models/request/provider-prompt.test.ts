import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { text, type Content, type Message, type MessageRole } from '@tapetree/session'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anthropicFacts, googleFacts, openaiCompatibleFacts, openaiFacts } from '../provider-facts.ts'
import { toPrompt, type PromptReader } from './provider-prompt.ts'

const claude: PromptReader = { provider: 'anthropic', modelId: 'claude-opus-5', facts: anthropicFacts, hasImages: true }
const gpt: PromptReader = { provider: 'openai', modelId: 'gpt-5.5', facts: openaiFacts, hasImages: true }
const gemini: PromptReader = { provider: 'google', modelId: 'gemini-3', facts: googleFacts, hasImages: true }
const local: PromptReader = {
  provider: 'local',
  modelId: 'qwen',
  facts: openaiCompatibleFacts({ name: 'local' }),
  hasImages: true,
}

describe('roles', () => {
  test('the system prompt comes first, if there is one', () => {
    expect(toPrompt({ system: 'Be brief.', messages: [said('user', 'go')] }, claude)).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'go' }] },
    ])
    expect(prompt([said('user', 'go')])).toHaveLength(1)
  })

  test('an answer in several messages is one for Gemini, whose calls must follow the user', () => {
    const call: Content = { type: 'tool_use', toolUse: { id: 'c1', name: 'look', input: {} } }
    const messages = [said('user', 'go'), said('assistant', 'I look.'), { ...said('assistant', ''), content: [call] }]
    expect(toPrompt({ system: '', messages }, gemini)).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ type: 'text' }, { type: 'tool-call' }] },
    ])
    expect(toPrompt({ system: '', messages }, claude)).toHaveLength(3)
  })

  test('a custom message is sent as a user message', () => {
    expect(prompt([said('custom', 'The build is green.')])).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'The build is green.' }] },
    ])
  })

  test('a command of the user is sent with its output and its exit code', () => {
    const bashExecution = { command: 'ls missing', output: 'No such file', exitCode: 2 }
    expect(userText([{ role: 'bashExecution', content: [], bashExecution }])).toBe(
      'I ran this command:\n```\nls missing\n```\nOutput:\n```\nNo such file\n```\nExit code 2.',
    )
  })

  test('a command that was cancelled, printed nothing or is truncated says so', () => {
    const tell = (bashExecution: Message['bashExecution']): string | undefined =>
      userText([{ role: 'bashExecution', content: [], ...(bashExecution && { bashExecution }) }])
    expect(tell({ command: 'sleep 9', output: '', cancelled: true })).toMatch(/printed nothing\.\nIt was cancelled\.$/)
    expect(tell({ command: 'yes', output: 'y', exitCode: 0, truncated: true })).toMatch(/output is truncated\.$/)
    expect(tell({ command: 'x', output: 'y' })).toMatch(/exit code is unknown\.$/)
  })

  test('summaries of compactions and branches are marked as such', () => {
    expect(userText([said('compactionSummary', 'We wrote a parser.')])).toMatch(
      /replaced by this summary.*<summary>\nWe wrote a parser\.\n<\/summary>/s,
    )
    expect(userText([said('branchSummary', 'It did not work.')])).toMatch(
      /another way.*<summary>\nIt did not work\.\n/s,
    )
  })

  test('an unknown role is sent as the user', () => {
    expect(userText([said('narrator' as MessageRole, 'Meanwhile')])).toBe('Meanwhile')
  })
})

describe('an assistant message', () => {
  const metadata = { anthropic: { caller: { type: 'direct' } } }
  const content: Content[] = [
    { type: 'reasoning', reasoning: { text: 'Hm.', signature: 'sig' } },
    { type: 'text', text: { content: 'I look.', providerMetadata: metadata } },
    { type: 'tool_use', toolUse: { id: 'call_1', name: 'read', input: { path: 'a' }, providerMetadata: metadata } },
  ]

  test('is sent back to the same model with everything that belongs to it', () => {
    expect(prompt([{ role: 'assistant', provider: 'anthropic', model: 'claude-opus-5', content }])).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.', providerOptions: { anthropic: { signature: 'sig' } } },
          { type: 'text', text: 'I look.', providerOptions: metadata },
          {
            type: 'tool-call',
            toolCallId: 'call_1',
            toolName: 'read',
            input: { path: 'a' },
            providerOptions: metadata,
          },
        ],
      },
    ])
  })

  test.each([{ provider: 'anthropic', model: 'claude-opus-4-8' }, { provider: 'bedrock', model: 'claude-opus-5' }, {}])(
    'is sent to any other than %j without reasoning and metadata',
    (maker) => {
      expect(prompt([{ role: 'assistant', ...maker, content }])).toEqual([
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'I look.' },
            { type: 'tool-call', toolCallId: 'call_1', toolName: 'read', input: { path: 'a' } },
          ],
        },
      ])
    },
  )

  test('an aborted answer is sent without partial reasoning', () => {
    const message: Message = { role: 'assistant', provider: 'anthropic', model: 'claude-opus-5', content }
    const sent = prompt([{ ...message, stopReason: 'aborted' }])
    expect(sent[0]?.content).not.toContainEqual(expect.objectContaining({ type: 'reasoning' }))
    expect(sent[0]?.content).toHaveLength(2)
  })

  test('reasoning with only metadata is sent, and keeps its other metadata', () => {
    const reasoning = { text: '', signature: 'enc', providerMetadata: { openai: { itemId: 'rs_1' } } }
    const message: Message = {
      role: 'assistant',
      provider: 'openai',
      model: 'gpt-5.5',
      content: [{ type: 'reasoning', reasoning }, text('Hi.')],
    }
    expect(toPrompt({ system: '', messages: [message] }, gpt)[0]?.content[0]).toEqual({
      type: 'reasoning',
      text: '',
      providerOptions: { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'enc' } },
    })
  })

  test('blank text is never sent, nor a message with nothing else', () => {
    expect(prompt([said('assistant', ' \n'), said('user', ''), said('assistant', '')])).toEqual([])
    const message: Message = { role: 'assistant', content: [text(''), text('Hi.'), text('\n\n')] }
    expect(prompt([message])[0]?.content).toEqual([{ type: 'text', text: 'Hi.' }])
  })

  test('trailing reasoning is not sent back as a block, because providers reject it', () => {
    const thought = (text: string): Content => ({ type: 'reasoning', reasoning: { text, signature: 's' } })
    const answer = (reader: PromptReader): Message => ({
      role: 'assistant',
      provider: reader.provider,
      model: reader.modelId,
      content: [thought('first'), text('Hello.'), thought('cut off by the limit'), thought('twice')],
    })
    for (const reader of [claude, gpt, gemini]) {
      const [sent] = toPrompt({ system: '', messages: [answer(reader)] }, reader)
      expect((sent as { content: { type: string }[] }).content.map(({ type }) => type)).toEqual(['reasoning', 'text'])
    }
    expect(toPrompt({ system: '', messages: [answer(local)] }, local)).toMatchObject([
      { providerOptions: { openaiCompatible: { reasoning_content: 'firstcut off by the limittwice' } } },
    ])
  })

  test('an answer with only reasoning is omitted', () => {
    const reasoning: Content = { type: 'reasoning', reasoning: { text: 'Hm.', signature: 'sig' } }
    expect(
      prompt([{ role: 'assistant', provider: 'anthropic', model: 'claude-opus-5', content: [reasoning] }]),
    ).toEqual([])
  })
})

describe('results', () => {
  test('that are adjacent are sent as one message, each with the name of its tool', () => {
    const sent = prompt([calls('a', 'b'), result('a', 'A'), result('b', 'B'), said('user', 'and?')])
    expect(sent.map(({ role }) => role)).toEqual(['assistant', 'tool', 'user'])
    expect(sent[1]?.content).toEqual([
      { type: 'tool-result', toolCallId: 'a', toolName: 'read', output: { type: 'text', value: 'A' } },
      { type: 'tool-result', toolCallId: 'b', toolName: 'read', output: { type: 'text', value: 'B' } },
    ])
  })

  test('with several texts become one text', () => {
    expect(output([text('one'), text(''), text('two')])).toEqual({ type: 'text', value: 'one\ntwo' })
  })

  test('without text say so', () => {
    expect(output('')).toEqual({ type: 'text', value: '(no output)' })
    expect(output([])).toEqual({ type: 'text', value: '(no output)' })
  })

  test('that failed are marked if the provider supports it', () => {
    expect(output('gone', { isError: true })).toEqual({ type: 'error-text', value: 'gone' })
    expect(output('gone', { isError: true, reader: gpt })).toEqual({ type: 'text', value: 'gone' })
  })

  test('keep text and images in order, unless all text must come first', () => {
    const blocks = [text('one'), image, text('two')]
    expect(types(output(blocks))).toEqual(['text', 'file', 'text'])
    expect(types(output(blocks, { reader: gemini }))).toEqual(['text', 'file'])
    expect(types(output([image], { reader: gemini }))).toEqual(['text', 'file'])
  })

  test('have a note instead of an image that cannot be shown', () => {
    expect(output([text('one'), image], { reader: local })).toEqual({
      type: 'text',
      value: 'one\n[An image (image/png) was left out: the model does not support images in tool results.]',
    })
    expect(output([image], { reader: { ...claude, hasImages: false } })).toEqual({
      type: 'text',
      value: '[An image (image/png) was left out: the model does not support images.]',
    })
  })
})

describe('images', () => {
  test.each([
    ['https://example.com/a.png', { type: 'url', url: new URL('https://example.com/a.png') }],
    ['data:image/gif;base64,R0lG', { type: 'data', data: 'R0lG' }],
  ])('by the address %s', (data, expected) => {
    expect(userImage(data)).toMatchObject({ type: 'file', data: expected })
  })

  test.each(['file:///etc/passwd', 'not an address', 'javascript:alert(1)'])('not by the URL %s', (data) => {
    expect(userImage(data)).toEqual({
      type: 'text',
      text: '[An image (image/png) was left out: its URL is not usable.]',
    })
  })

  test('by URL as text if the provider does not fetch them', () => {
    expect(userImage('https://example.com/a.png', gemini)).toEqual({
      type: 'text',
      text: '[An image (image/png) was left out: it is at https://example.com/a.png.]',
    })
  })

  test('without loaded bytes are left out', () => {
    const source = { type: 'blob', mediaType: 'image/png', sha256: 'ab', size: 3 } as const
    expect(prompt([{ role: 'user', content: [{ type: 'image', image: { source } }] }])[0]?.content).toEqual([
      { type: 'text', text: '[An image (image/png) was left out: its bytes are not available.]' },
    ])
  })
})

describe('any conversation', () => {
  const words = fc.constantFrom('', ' ', 'a', 'b', 'x'.repeat(2000), 'y'.repeat(2000))
  const id = fc.constantFrom('call_1', 'call_2', 'functions.read:0', 'é'.repeat(80))
  const turn = fc.oneof(
    words.map((each): Message[] => [said('user', each)]),
    words.map((each): Message[] => [said('assistant', each)]),
    fc
      .uniqueArray(fc.tuple(id, words), { minLength: 1, maxLength: 3, selector: ([each]) => each })
      .map((each): Message[] => [calls(...each.map(([id]) => id)), ...each.map(([id, words]) => result(id, words))]),
  )
  const turns = fc.array(turn, { maxLength: 12 })

  test.each([claude, gpt, gemini, local])(
    'is sent to $provider so that everything sent before stays unchanged',
    (reader) => {
      fc.assert(
        fc.property(turns, fc.nat(), (all, cut) => {
          const sent = toPrompt({ system: '', messages: all.slice(0, cut % (all.length + 1)).flat() }, reader)
          // A request never ends with an answer, to which Gemini would have the next one joined.
          const isOpen = reader === gemini && sent.at(-1)?.role === 'assistant'
          const before = isOpen ? sent.slice(0, -1) : sent
          const whole = toPrompt({ system: '', messages: all.flat() }, reader)
          expect(whole.slice(0, before.length)).toEqual(before)
        }),
      )
    },
  )

  test.each([claude, gpt, gemini, local])('has ids that $provider accepts, each once, and answered', (reader) => {
    fc.assert(
      fc.property(turns, (all) => {
        const sent = toPrompt({ system: '', messages: all.flat() }, reader)
        const called = idsIn(sent, 'tool-call')
        expect(called.every((each) => reader.facts.callIds.test(each))).toBe(true)
        expect(new Set(called).size).toBe(called.length)
        expect(idsIn(sent, 'tool-result')).toEqual(called)
      }),
    )
  })

  test('has no empty text in it', () => {
    fc.assert(
      fc.property(turns, (all) => {
        const texts = partsOf(prompt(all.flat())).flatMap(({ text }) => (text === undefined ? [] : [text.trim()]))
        expect(texts).not.toContain('')
      }),
    )
  })
})

const image: Content = { type: 'image', image: { source: { type: 'base64', mediaType: 'image/png', data: 'iVBO' } } }

function prompt(messages: Message[], reader = claude): LanguageModelV4Prompt {
  return toPrompt({ system: '', messages }, reader)
}

function said(role: MessageRole, words: string): Message {
  return { role, content: [text(words)] }
}

function userText(messages: Message[]): string | undefined {
  const [message] = prompt(messages)
  const part = message?.role === 'user' ? message.content[0] : undefined
  return part?.type === 'text' ? part.text : undefined
}

function userImage(data: string, reader = claude): unknown {
  const source = { type: 'url', mediaType: 'image/png', data } as const
  return prompt([{ role: 'user', content: [{ type: 'image', image: { source } }] }], reader)[0]?.content[0]
}

function calls(...ids: string[]): Message {
  const content = ids.map((id): Content => ({ type: 'tool_use', toolUse: { id, name: 'read', input: {} } }))
  return { role: 'assistant', content }
}

function result(toolUseId: string, content: string | Content[], isError = false): Message {
  return { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId, content, isError } }] }
}

function output(content: string | Content[], { reader = claude, isError = false } = {}): any {
  return partsOf(prompt([calls('a'), result('a', content, isError)], reader)).at(-1)?.output
}

function types(content: { value: { type: string }[] }): string[] {
  return content.value.map(({ type }) => type)
}

function idsIn(sent: LanguageModelV4Prompt, type: 'tool-call' | 'tool-result'): string[] {
  return partsOf(sent).flatMap((part) => (part.type === type ? [part.toolCallId ?? ''] : []))
}

interface AnyPart {
  type: string
  text?: string
  toolCallId?: string
  output?: unknown
}

function partsOf(sent: LanguageModelV4Prompt): AnyPart[] {
  return sent.flatMap(({ content }) => (typeof content === 'string' ? [] : (content as AnyPart[])))
}
