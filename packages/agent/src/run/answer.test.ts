import { describe, expect, test } from 'vitest'
import type { ModelPart } from '../models/model.ts'
import { Answer } from './answer.ts'

function answerOf(...parts: ModelPart[]): Answer {
  const answer = new Answer('item', 'run')
  for (const part of parts) answer.take(part)
  return answer
}

describe('an answer', () => {
  test('keeps its blocks in the order in which they began', () => {
    const answer = answerOf(
      { type: 'reasoning_delta', part: 0, text: 'hm' },
      { type: 'text_delta', part: 1, text: 'yes' },
      { type: 'reasoning_end', part: 0, signature: 'sig', providerMetadata: { p: 1 } },
      { type: 'tool_call', part: 2, callId: 'c', name: 'read', input: '{"path":"a"}', providerMetadata: { t: 1 } },
    )
    expect(answer.content).toEqual([
      { type: 'reasoning', reasoning: { text: 'hm', signature: 'sig', providerMetadata: { p: 1 } } },
      { type: 'text', text: { content: 'yes' } },
      { type: 'tool_use', toolUse: { id: 'c', name: 'read', input: { path: 'a' }, providerMetadata: { t: 1 } } },
    ])
  })

  test.each([[['\n', '\n', '\nHello', '\nyou']], [['\n\n\nHello\nyou']], [[...'\n\n\nHello\nyou']]])(
    'drops the first line break and no other, however the text is split into deltas: %j',
    (deltas) => {
      const answer = answerOf(...deltas.map((text): ModelPart => ({ type: 'text_delta', part: 0, text })))
      expect(answer.content).toEqual([{ type: 'text', text: { content: '\n\nHello\nyou' } }])
    },
  )

  test('reports what is new, by offset', () => {
    const answer = new Answer('item', 'run')
    answer.take({ type: 'text_delta', part: 0, text: 'ab' })
    expect(answer.take({ type: 'text_delta', part: 0, text: 'c' })).toEqual({
      type: 'delta',
      item: 'item',
      part: 0,
      kind: 'text',
      off: 2,
      text: 'c',
      run: 'run',
    })
    expect(answer.take({ type: 'text_delta', part: 0, text: '' })).toBeUndefined()
  })

  test('reports a complete call at once, and a streamed call only once', () => {
    const whole = new Answer('item', 'run')
    expect(whole.take({ type: 'tool_call', part: 0, callId: 'c', name: 'a', input: '{}' })).toMatchObject({
      text: '{}',
    })
    const streamed = answerOf(
      { type: 'tool_input_start', part: 0, callId: 'c', name: 'a' },
      { type: 'tool_input_delta', part: 0, text: '{}' },
    )
    expect(streamed.take({ type: 'tool_call', part: 0, callId: 'c', name: 'a', input: '{}' })).toBeUndefined()
  })

  const deep = `{"a":${'['.repeat(60)}${']'.repeat(60)}}`
  test.each(['{"a":', '[1]', '"text"', 'null', 'no JSON', deep])('a call with the input %s is incomplete', (input) => {
    expect(answerOf({ type: 'tool_call', part: 0, callId: 'c', name: 'a', input }).calls).toEqual([
      { id: 'c', name: 'a', input: {}, partialInput: input },
    ])
  })

  test('a call without input has no arguments', () => {
    expect(answerOf({ type: 'tool_call', part: 0, callId: 'c', name: 'a', input: '' }).calls).toEqual([
      { id: 'c', name: 'a', input: {} },
    ])
  })

  test('a call that was only announced keeps the input that arrived', () => {
    const answer = answerOf(
      { type: 'tool_input_start', part: 0, callId: 'c', name: 'a' },
      { type: 'tool_input_delta', part: 0, text: '{}' },
    )
    expect(answer.calls).toEqual([{ id: 'c', name: 'a', input: {}, partialInput: '{}' }])
  })

  test('reasoning may be a signature without text; empty text is dropped', () => {
    const answer = answerOf(
      { type: 'reasoning_end', part: 0, signature: 's' },
      { type: 'text_end', part: 1 },
      { type: 'reasoning_end', part: 2 },
    )
    expect(answer.content).toEqual([{ type: 'reasoning', reasoning: { text: '', signature: 's' } }])
  })

  test('the last usage counts', () => {
    const answer = answerOf(
      { type: 'usage', usage: { inputTokens: 1 } },
      { type: 'usage', usage: { inputTokens: 2 } },
      { type: 'finish', reason: 'stop' },
    )
    expect([answer.usage, answer.finish]).toEqual([{ inputTokens: 2 }, 'stop'])
  })
})
