import type { FakeAnswer, FakeContent, FakeRequest } from '@tapetree/agent/testing'

export function say(...words: string[]): FakeAnswer {
  return { type: 'answer', content: [{ type: 'text', chunks: words }] }
}

/** Says these words, one a chunk, and goes on when the gate is opened. */
export function sayAndWait(words: readonly string[], gate: string, rest: readonly string[]): FakeAnswer {
  return {
    type: 'answer',
    content: [
      { type: 'text', chunks: [...words] },
      { type: 'wait', gate },
      { type: 'text', chunks: [...rest] },
    ],
  }
}

export function call(...calls: readonly { id: string; name: string; input: unknown }[]): FakeAnswer {
  const content = calls.map(({ id, name, input }): FakeContent => ({
    type: 'tool_call',
    id,
    name,
    chunks: [JSON.stringify(input)],
  }))
  return { type: 'answer', content }
}

/** What the model was shown, one line a message: `user: go`. The system prompt and what it is told of the day are left out. */
export function shownTo({ body }: FakeRequest): string[] {
  const messages = body['messages'] as { role: string; content: unknown }[]
  return messages
    .filter(({ role }) => role !== 'system')
    .map(({ role, content }) => `${role}: ${textOf(content)}`)
    .filter((line) => !line.startsWith('user: <environment>'))
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : '')).join('')
}
