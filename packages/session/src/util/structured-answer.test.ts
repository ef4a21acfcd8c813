import { expect, test } from 'vitest'
import { addCounts, askForValue, type SchemaReader } from './structured-answer.ts'

const reader: SchemaReader<number[]> = {
  jsonSchema: { type: 'array' },
  parse: (given) => (Array.isArray(given) ? { input: given as number[] } : 'It is not a list.'),
}

async function askScripted(...answers: string[]): Promise<{ reply: object; prompts: string[] }> {
  const prompts: string[] = []
  const reply = await askForValue('Which?', {
    reader,
    ask: (text) => {
      prompts.push(text)
      const answer = answers.shift()
      const outcome = answer === undefined ? 'aborted' : 'completed'
      return Promise.resolve({ text: answer ?? '', outcome, usage: { outputTokens: 1 }, cost: 2 })
    },
  })
  return { reply, prompts }
}

test.each([
  ['alone', '[1, 2]'],
  ['in a code fence', 'Here:\n```json\n[1, 2]\n```\nThat is it.'],
  ['with text around it', 'I say [1, 2], surely.'],
])('takes a value %s', async (_, answer) => {
  const { reply, prompts } = await askScripted(answer)
  expect(reply).toMatchObject({ object: [1, 2], outcome: 'completed' })
  expect(prompts).toEqual([expect.stringContaining('{"type":"array"}')])
})

test('sends wrong answers back with what is wrong, and counts the usage and cost of all', async () => {
  const { reply, prompts } = await askScripted('none', '{"a":1}', '[3]')
  expect(reply).toMatchObject({ object: [3], usage: { outputTokens: 3 }, cost: 6 })
  expect(prompts.slice(1)).toEqual([
    expect.stringContaining('not a JSON value'),
    expect.stringContaining('It is not a list.'),
  ])
})

test('gives up after two corrections, with the reason', async () => {
  const { reply, prompts } = await askScripted('a', 'b', 'c', '[1]')
  expect(reply).toMatchObject({ outcome: 'failed', reason: 'invalid-object', text: 'c' })
  expect(prompts).toHaveLength(3)
})

test('does not ask again after a run that did not complete', async () => {
  const { reply, prompts } = await askScripted('a')
  expect(reply).toMatchObject({ outcome: 'aborted', usage: { outputTokens: 2 } })
  expect(prompts).toHaveLength(2)
})

test('adds counts that only one side has', () => {
  const right: { input?: number; output?: number | undefined; cached?: number } = { output: undefined, cached: 2 }
  expect(addCounts({ input: 1 }, right)).toEqual({ input: 1, cached: 2 })
})
