import { text, type Content, type Message } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { dedupeToolOutput } from './provider-prompt.ts'

const long = 'line\n'.repeat(300)

describe('dedupeToolOutput', () => {
  test('the first output is unchanged, and the later ones refer to it', () => {
    const sent = dedupeToolOutput([result('a', long), result('b', long), result('c', long)])
    expect(sent.map(contentOf)).toEqual([
      long,
      '[The same output as that of call a above; it is not repeated.]',
      '[The same output as that of call a above; it is not repeated.]',
    ])
  })

  test('earlier messages never change, so the cache stays valid', () => {
    const before = [result('a', long), result('b', 'short')]
    expect(dedupeToolOutput([...before, result('c', long)]).slice(0, 2)).toEqual(dedupeToolOutput(before))
  })

  test('short output is repeated', () => {
    const messages = [result('a', 'ok'), result('b', 'ok')]
    expect(dedupeToolOutput(messages)).toEqual(messages)
  })

  test('output with any difference is sent', () => {
    const messages = [result('a', long), result('b', `${long}.`)]
    expect(dedupeToolOutput(messages)).toEqual(messages)
  })

  test('texts and images among other blocks are deduplicated too', () => {
    const image: Content = { type: 'image', image: { source: { type: 'base64', mediaType: 'image/png', data: long } } }
    const [, second] = dedupeToolOutput([result('a', [text('one'), image]), result('b', [text('two'), image])])
    expect(contentOf(second)).toEqual([
      text('two'),
      text('[The same output as that of call a above; it is not repeated.]'),
    ])
  })

  test('repeated messages of the user are sent', () => {
    const messages: Message[] = [
      { role: 'user', content: [text(long)] },
      { role: 'user', content: [text(long)] },
    ]
    expect(dedupeToolOutput(messages)).toEqual(messages)
  })
})

function result(toolUseId: string, content: string | Content[]): Message {
  return { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId, content } }] }
}

function contentOf(message: Message | undefined): unknown {
  const [block] = message?.content ?? []
  return block?.type === 'tool_result' ? block.toolResult.content : undefined
}
