import type { Content, Message } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { withAcceptedCallIds } from './call-ids.ts'
import { anthropicFacts } from '../provider-facts.ts'

describe('withAcceptedCallIds', () => {
  test('an accepted id is unchanged', () => {
    const messages = [calls('toolu_1', 'call-2'), result('toolu_1'), result('call-2')]
    expect(withAcceptedCallIds(messages, anthropicFacts.callIds)).toEqual(messages)
  })

  test('an id of another provider is replaced, in the call and in its result, always by the same one', () => {
    const sent = ids([calls('functions.read:0'), result('functions.read:0')])
    expect(sent).toEqual(ids([calls('functions.read:0'), result('functions.read:0')]))
    expect(sent[0]).toMatch(/^call_[0-9a-f]{24}$/)
    expect(sent[1]).toBe(sent[0])
  })

  test('a reused id is replaced for the later call and its result', () => {
    const [first, firstResult, second, secondResult] = ids([calls('a'), result('a'), calls('a'), result('a')])
    expect([first, firstResult]).toEqual(['a', 'a'])
    expect(second).not.toBe('a')
    expect(secondResult).toBe(second)
  })
})

function ids(messages: Message[]): string[] {
  return withAcceptedCallIds(messages, anthropicFacts.callIds).flatMap(({ content }) =>
    content.flatMap((block) => {
      if (block.type === 'tool_use') return [block.toolUse.id]
      return block.type === 'tool_result' ? [block.toolResult.toolUseId] : []
    }),
  )
}

function calls(...ids: string[]): Message {
  const content = ids.map((id): Content => ({ type: 'tool_use', toolUse: { id, name: 'read', input: {} } }))
  return { role: 'assistant', content }
}

function result(toolUseId: string): Message {
  return { role: 'tool', content: [{ type: 'tool_result', toolResult: { toolUseId, content: 'ok' } }] }
}
