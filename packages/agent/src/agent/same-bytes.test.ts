import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Model } from '../models/model.ts'
import { anthropic } from '../models/providers/anthropic.ts'
import { google } from '../models/providers/google.ts'
import { openaiCompatible } from '../models/providers/openai-compatible.ts'
import { openai } from '../models/providers/openai.ts'
import { startFakeProvider, type FakeAnswer, type FakeApi, type FakeProvider } from '../testing/fake-provider/index.ts'
import { allowAll, defineTool } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import { checkRequests } from '../prompt/check-requests.ts'
import { onlyModel } from './model-choice.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const apis: Record<FakeApi, (provider: FakeProvider) => Model> = {
  anthropic: (provider) => anthropic({ ...connectionTo(provider, 'anthropic'), model: 'claude-opus-5' }),
  openai: (provider) => openai({ ...connectionTo(provider, 'openai'), model: 'gpt-5.5' }),
  google: (provider) => google({ ...connectionTo(provider, 'google'), model: 'gemini-3.1-pro-preview' }),
  openaiCompatible: (provider) =>
    openaiCompatible({ ...connectionTo(provider, 'openaiCompatible'), model: 'local', name: 'local' }),
}

function connectionTo(provider: FakeProvider, api: FakeApi): { baseUrl: string; apiKey: string } {
  return { baseUrl: provider.baseUrl(api), apiKey: 'test' }
}

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  schema: z.strictObject({ at: z.string() }),
  readOnly: true,
  access: () => [],
  run: ({ at }) => Promise.resolve({ content: `${at}: a tree, ünïcode, "quotes"\n` }),
})

const thinking: FakeAnswer = {
  type: 'answer',
  content: [
    { type: 'reasoning', chunks: ['Let me ', 'think.'], signature: 'c2lnbmVk' },
    { type: 'text', chunks: ['I look.'] },
    { type: 'tool_call', id: 'call_1', name: 'look', chunks: ['{"at":', '"here"}'] },
    { type: 'tool_call', id: 'call_2', name: 'look', chunks: ['{"at":"there"}'] },
  ],
  usage: { input: 100, output: 20 },
}
const answer: FakeAnswer = { type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }] }
const image = { mediaType: 'image/png', bytes: Buffer.from('\x89PNG\r\n\x1a\npixels', 'latin1') }

/** The requests of three prompts, with the given number of restarts between them. */
async function converse(api: FakeApi, hasRestarts: boolean): Promise<{ bodies: string[]; outcomes: string[] }> {
  const provider = await startFakeProvider()
  cleanUps.push(() => provider.close())
  const folder = await mkdtemp(join(tmpdir(), 'same-bytes-'))
  cleanUps.push(() => rm(folder, { recursive: true }))
  provider.script(thinking, answer, thinking, answer, answer)
  let sessionId: string | undefined
  let outcomes: string[] = []
  const prompts = [
    ['Look', [image]],
    ['Again', []],
    ['And now?', []],
  ] as const
  for (const part of hasRestarts ? prompts.map((prompt) => [prompt]) : [prompts]) {
    const store = openFileStore({ folder })
    const model = apis[api](provider)
    const agent = await AgentSession.open({
      store,
      models: onlyModel(model),
      thinkingLevel: 'low',
      tools: () => [look],
      systemPrompt: () => 'You are a test.',
      gate: () => allowAll,
      hasSubagents: false,
      ...(sessionId !== undefined && { sessionId }),
    })
    sessionId = agent.session.id
    for (const [words, images] of part) {
      const outcome = await agent.prompt(words, { images })
      if (outcome.type === 'started') expect(await outcome.run.done).toMatchObject({ outcome: 'completed' })
    }
    outcomes = (await checkRequests(agent.session, { model: () => model })).map((each) => each.outcome)
    await agent.close()
    await store.close()
  }
  return { bodies: provider.requests.map(({ bytes }) => Buffer.from(bytes).toString('utf8')), outcomes }
}

describe.each(Object.keys(apis) as FakeApi[])('a session that is opened again (%s)', (api) => {
  test('sends the same bytes, and every request can be rebuilt from its log', async () => {
    const straight = await converse(api, false)
    const restarted = await converse(api, true)
    expect(straight.bodies).toHaveLength(5)
    expect(restarted.bodies).toEqual(straight.bodies)
    expect(restarted.outcomes).toEqual(Array.from({ length: 5 }, () => 'same'))
  })
})
