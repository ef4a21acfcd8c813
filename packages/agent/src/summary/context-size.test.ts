import { memoryStore, text, type Message, type Session, type Usage } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import { assistant, call, toolResult, user } from '@tapetree/session/testing'
import { estimateTokenCount } from 'tokenx'
import { describe, expect, test } from 'vitest'
import { contextSize, countedTokens, entryTokens } from './context-size.ts'

describe('contextSize', () => {
  test('an empty session has no tokens', async () => {
    expect(await contextSize(await memoryStore().create())).toBe(0)
  })

  test('without a count everything is estimated, including system prompt and tools', async () => {
    const session = await memoryStore().create()
    const tools = [{ name: 'read', description: 'reads a file', inputSchema: { type: 'object' } }]
    await session.append({ type: 'system', system: { prompt: 'You are helpful.', tools, sha256: '' } })
    await user(session, 'a question that has some words')
    const expected = [
      estimateTokenCount('You are helpful.') + estimateTokenCount(JSON.stringify(tools)),
      estimateTokenCount('a question that has some words') + 4,
    ]
    expect(await contextSize(session)).toBe(expected[0]! + expected[1]!)
  })

  test('the newest count of the provider is used, and only entries after it are estimated', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    await answered(session, { inputTokens: 100, outputTokens: 10 })
    await user(session, 'go on')
    await answered(session, { inputTokens: 50_000, outputTokens: 700, cacheReadTokens: 49_000 })
    expect(await contextSize(session)).toBe(50_700)
    await user(session, 'and now?')
    expect(await contextSize(session)).toBe(50_700 + estimateTokenCount('and now?') + 4)
  })

  test('a count from before the newest compaction is ignored', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    const kept = await user(session, 'keep this')
    await answered(session, { inputTokens: 150_000, outputTokens: 1000 })
    await session.appendCompaction('what was', kept, 151_000)
    expect(await contextSize(session)).toBeLessThan(50)
    await user(session, 'on')
    await answered(session, { inputTokens: 900, outputTokens: 100 })
    expect(await contextSize(session)).toBe(1000)
  })

  test('after a compaction, the earlier system prompt and only the newest summary count', async () => {
    const session = await memoryStore().create()
    const prompt = 'A rather long system prompt. '.repeat(100)
    await session.append({ type: 'system', system: { prompt, tools: [], sha256: '' } })
    const first = await user(session, 'one')
    await session.appendCompaction('an old summary, long and not heard any more. '.repeat(200), first, 1)
    await user(session, 'two')
    await session.appendCompaction('brief', first, 1)
    const said = ['one', 'two', 'brief'].reduce((sum, each) => sum + estimateTokenCount(each) + 4, 0)
    const expected = estimateTokenCount(prompt) + estimateTokenCount('[]') + said
    expect(await contextSize(session)).toBe(expected)
  })

  test('a system prompt that was set after the count is added to it', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    await answered(session, { inputTokens: 100, outputTokens: 10 })
    const prompt = 'Be brief and exact. '.repeat(50)
    await session.append({ type: 'system', system: { prompt, tools: [], sha256: '' } })
    expect(await contextSize(session)).toBe(110 + estimateTokenCount(prompt) + estimateTokenCount('[]'))
  })

  test('a stopped answer counts by its text, whatever its usage says', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    const words = 'many words before the stop '.repeat(100)
    const message = { usage: { inputTokens: 100, outputTokens: 1 }, stopReason: 'aborted' }
    await session.appendMessage('assistant', [text(words)], { with: message })
    expect(await contextSize(session)).toBe(100 + estimateTokenCount(words) + 4)
  })

  test('a total that exceeds input and output is used', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    await answered(session, { inputTokens: 100, outputTokens: 10, cacheReadTokens: 900, totalTokens: 1010 })
    expect(await contextSize(session)).toBe(1010)
  })

  test('a count of zero is ignored', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    await answered(session, { inputTokens: 0, outputTokens: 0, totalTokens: 0 })
    expect(await contextSize(session)).toBeGreaterThan(0)
    expect(await contextSize(session)).toBeLessThan(20)
  })
})

test('entries before the newest count are not estimated', () => {
  const unreadable = new Proxy({} as Entry, {
    get: () => {
      throw new Error('looked at')
    },
  })
  const counted = message({ role: 'assistant', content: [], usage: { inputTokens: 7, outputTokens: 1 } })
  const tail = message({ role: 'user', content: [text('hello')] })
  expect(countedTokens([unreadable, unreadable, counted, tail])).toBe(8 + 1 + 4)
})

test('an entry is estimated only once', () => {
  let reads = 0
  const entry = message({ role: 'user', content: [text('hello')] }) as Entry & { type: 'message' }
  const { content } = entry.message
  Object.defineProperty(entry.message, 'content', { get: () => (reads++, content) })
  expect([entryTokens(entry), entryTokens(entry)]).toEqual([5, 5])
  expect(reads).toBe(1)
})

test('images cost a fixed amount, in a message and in a result', () => {
  const image = {
    type: 'image' as const,
    image: { source: { type: 'url' as const, mediaType: 'image/png', data: 'x' } },
  }
  const inResult = { type: 'tool_result' as const, toolResult: { toolUseId: 'a', content: [image] } }
  expect(entryTokens(message({ role: 'user', content: [image] }))).toBe(1604)
  expect(entryTokens(message({ role: 'tool', content: [inResult] }))).toBe(1608)
})

test('calls, results and reasoning count; content that is hidden from the model does not', async () => {
  const session = await memoryStore().create()
  const reasoning = { type: 'reasoning' as const, reasoning: { text: 'let me think about it for a while' } }
  await assistant(session, reasoning, call('a', 'read', { path: 'src/some/file.ts' }))
  await toolResult(session, 'a', 'the content of the file')
  const bash = { command: 'ls', output: 'a b c d e f', excludeFromContext: true }
  await session.appendMessage('bashExecution', [], { with: { bashExecution: bash } })
  await session.appendMessage('bashExecution', [], { with: { bashExecution: { ...bash, excludeFromContext: false } } })
  await session.appendCustomEntry('state', { much: 'x '.repeat(1000) })
  await session.branchWithSummary(session.leafId, 'a branch was left')
  const sizes = (await session.getContextPath()).map(entryTokens)
  expect(sizes).toEqual([
    4 +
      estimateTokenCount('let me think about it for a while') +
      4 +
      1 +
      estimateTokenCount('{"path":"src/some/file.ts"}'),
    4 + 4 + estimateTokenCount('the content of the file'),
    0,
    4 + 1 + estimateTokenCount('a b c d e f'),
    0,
    4 + estimateTokenCount('a branch was left'),
  ])
})

async function answered(session: Session, usage: Usage): Promise<void> {
  await session.appendMessage('assistant', [text('fine')], { with: { usage, stopReason: 'stop' } })
}

function message(payload: Message): Entry {
  return { type: 'message', id: 'e', parentId: null, seq: 1, timestamp: '', message: payload }
}
