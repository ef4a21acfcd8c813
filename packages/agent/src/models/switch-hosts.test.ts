import { text, type Message } from '@tapetree/session'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Answer } from '../run/answer.ts'
import { startFakeProvider, type FakeAnswer, type FakeHost, type FakeProvider } from '../testing/index.ts'
import type { Model } from './model.ts'
import { anthropic } from './providers/anthropic.ts'
import { google } from './providers/google.ts'
import { openai } from './providers/openai.ts'
import { openaiCompatible } from './providers/openai-compatible.ts'

let provider: FakeProvider
let step: FakeAnswer
beforeAll(async () => {
  provider = await startFakeProvider()
  provider.script(() => step)
})
afterAll(() => provider.close())

const chat = (host: FakeHost, model: string) => (): Model =>
  openaiCompatible({ name: host, model, baseUrl: provider.baseUrl('openaiCompatible', { host }), apiKey: 'k' })

const models: Record<string, () => Model> = {
  'Claude with a budget': () =>
    anthropic({ model: 'claude-sonnet-4-5', baseUrl: provider.baseUrl('anthropic'), apiKey: 'k' }),
  Claude: () => anthropic({ model: 'claude-opus-5', baseUrl: provider.baseUrl('anthropic'), apiKey: 'k' }),
  OpenAI: () => openai({ model: 'gpt-5.5', baseUrl: provider.baseUrl('openai'), apiKey: 'k' }),
  Gemini: () => google({ model: 'gemini-3-pro', baseUrl: provider.baseUrl('google'), apiKey: 'k' }),
  Cerebras: chat('cerebras', 'gpt-oss-120b'),
  DeepSeek: chat('deepseek', 'deepseek-v4-pro'),
  Fireworks: chat('fireworks', 'kimi-k2'),
  Groq: chat('groq', 'qwen/qwen3.8-27b'),
  'llama.cpp': chat('llamacpp', 'qwen3'),
  Mistral: chat('mistral', 'magistral-medium'),
  Moonshot: chat('moonshotai', 'kimi-k3'),
  Ollama: chat('ollama', 'gpt-oss:20b'),
  'OpenRouter with Gemini': chat('openrouter', 'google/gemini-3-pro'),
  'OpenRouter with Claude': chat('openrouter', 'anthropic/claude-opus-5'),
  Together: chat('together', 'deepseek-ai/DeepSeek-V4'),
  vLLM: chat('vllm', 'qwen3'),
  xAI: chat('xai', 'grok-4.7'),
  'Z.ai': chat('zai', 'glm-5.3'),
}

/** The ids are the same in every answer: some servers renumber calls each time. */
const calling: FakeAnswer = {
  type: 'answer',
  content: [
    { type: 'reasoning', chunks: ['I should ', 'read.'], signature: 'c2lnbmF0dXJl' },
    { type: 'text', chunks: ['Reading.'] },
    { type: 'tool_call', id: 'call_0', name: 'read', chunks: ['{"path":', '"a"}'] },
    { type: 'tool_call', id: 'call_1', name: 'read', chunks: ['{"path":"b"}'] },
  ],
}
const done: FakeAnswer = { type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }] }
const prompt: Message = { role: 'user', content: [text('go')] }

describe.each(Object.keys(models))('a session of %s', (first) => {
  test.each(Object.keys(models))(
    'continues with %s: within a turn, after it, after an abort, and back',
    async (second) => {
      const [from, to] = [models[first]!(), models[second]!()]
      const called = await ask(from, [prompt], calling)
      const open = [prompt, called, ...resultsOf(called)]
      const fallenBack = await ask(to, open, calling)
      const further = [...open, fallenBack, ...resultsOf(fallenBack)]
      const answered = await ask(to, further, done)
      await ask(from, further, done)
      await ask(to, [...further, answered, prompt], done)
      // A prompt directly after results: the run was aborted or steered.
      await ask(to, [...open, prompt], done)
      const aborted: Message = { ...called, stopReason: 'aborted' }
      await ask(to, [prompt, aborted, ...resultsOf(aborted), prompt], done)
      await ask(from, [prompt, aborted, ...resultsOf(aborted), prompt], done)
    },
  )
})

/** The strict provider rejects the same requests as the real one. */
async function ask(model: Model, messages: readonly Message[], next: FakeAnswer): Promise<Message> {
  step = next
  const answer = new Answer('item', 'run')
  const tools = [{ name: 'read', description: 'Reads a file.', inputSchema: { type: 'object', properties: {} } }]
  const call = model.prepare({ system: 'Be brief.', tools, messages, thinkingLevel: 'high' })
  for await (const part of call.stream(new AbortController().signal)) answer.take(part)
  expect(answer.calls).toHaveLength(next === done ? 0 : 2)
  return { role: 'assistant', provider: model.provider, model: model.id, content: answer.content, stopReason: 'stop' }
}

function resultsOf({ content }: Message): Message[] {
  return content.flatMap((block): Message[] => {
    if (block.type !== 'tool_use') return []
    const toolResult = { toolUseId: block.toolUse.id, content: 'ok' }
    return [{ role: 'tool', content: [{ type: 'tool_result', toolResult }] }]
  })
}
