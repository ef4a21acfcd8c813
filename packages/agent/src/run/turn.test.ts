import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { systemClock } from '@tapetree/session/util/wait'
import type { Model, ModelPart } from '../models/model.ts'
import { defaultRetry } from './recovery.ts'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'

let folder = ''
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'turn-'))))
afterAll(() => rm(folder, { recursive: true }))

const long = 'so '.repeat(2000)

test.each<[string, (written: () => Promise<void>) => ScriptBuilder, string]>([
  ['an answer', (written) => script().text(long).do(written), 'message'],
  ['a failed answer', (written) => script().text(long).do(written).error('invalid-request'), 'attempt'],
])('the text of %s stays in the draft until it is in the log', async (_, answer, type) => {
  const store = openFileStore({ folder })
  // Drafts are written asynchronously: the answer ends when its text is in the file.
  const written = (): Promise<void> => vi.waitFor(() => expect(draft()).toContain(long))
  const agent = await TestAgent.open({ model: scriptedModel(answer(written)), store })
  const draft = (): string => readFileSync(join(agent.session.localFolder as string, 'draft.jsonl'), 'utf8')
  const drafts: string[] = []
  agent.session.subscribe(({ line, text }) => {
    if (line.type === type && text.includes(long)) drafts.push(draft())
  })
  await agent.prompt('go')
  expect(drafts).toEqual([expect.stringContaining(long)])
  expect(draft()).toBe('')
  await agent.close()
  await store.close()
})

describe('an empty answer', () => {
  const settings = { retry: { ...defaultRetry, baseMs: 0 } }
  const empty: [string, () => ScriptBuilder][] = [
    ['nothing', () => script().finish('stop')],
    ['white space', () => script().text('\n ').finish('stop')],
    ['reasoning alone', () => script().reasoning('Hm.', 'sig').finish('stop')],
    ['reasoning up to the maximum length', () => script().reasoning('Hm.').finish('length')],
    ['announced calls that are missing', () => script().finish('tool-calls')],
  ]

  test.each(empty)('(%s) is retried once', async (_, answer) => {
    const agent = await TestAgent.open({
      model: scriptedModel([...answer().step().build(), ...script().text('Hello.').build()]),
      settings,
      clock: systemClock,
    })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    expect(await agent.path()).toEqual(['user: go', 'assistant: Hello.'])
    expect(await agent.lineTypes()).toContain('attempt')
    await agent.close()
  })

  test.each(empty)('(%s) twice ends the run with an error', async (_, answer) => {
    const agent = await TestAgent.open({
      model: scriptedModel([...answer().step().build(), ...answer().step().text('late').build()]),
      settings,
      clock: systemClock,
    })
    const end = await agent.prompt('go')
    expect(end).toMatchObject({ outcome: 'failed', reason: 'empty-answer' })
    expect(end.message).toMatch(/ended its answer: it .+ A second try did not help\.$/)
    expect(await agent.path()).toEqual(['user: go'])
    await agent.close()
  })
})

test.each(['', '{}'])(
  'a call without input at the end of an answer that reached its limit does not run (%j)',
  async (input) => {
    const model = scriptedModel(
      script().text('I clean up.').toolCall('a', 'delete', input).finish('length').step().text('Never mind.'),
    )
    const agent = await TestAgent.open({ model })
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    expect(await agent.path()).toEqual([
      'user: go',
      expect.stringMatching(/^custom: .*delete/),
      'assistant: Never mind.',
    ])
    expect(await agent.lineTypes()).not.toContain('tool_start')
    await agent.close()
  },
)

test('a turn that the provider pauses is continued', async () => {
  const paused = script().text('Let me search.').finish('pause').step().text('Found.')
  const agent = await TestAgent.open({ model: scriptedModel(paused) })
  expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
  expect(await agent.path()).toEqual([
    'user: go',
    'assistant: Let me search.',
    'custom: Continue.',
    'assistant: Found.',
  ])
  await agent.close()
})

test('an answer records skipped content in the log', async () => {
  const scripted = scriptedModel(script().text('Hello.'))
  const model: Model = {
    ...scripted,
    prepare: (request) => {
      const call = scripted.prepare(request)
      const skipping = async function* (signal: AbortSignal): AsyncGenerator<ModelPart> {
        yield { type: 'skipped', kinds: { 'block:hologram': 2 } }
        yield* call.stream(signal)
      }
      return { reference: call.reference, stream: skipping }
    },
  }
  const agent = await TestAgent.open({ model })
  await agent.prompt('go')
  const path = await agent.session.getContextPath()
  expect(path.at(-1)).toMatchObject({ message: { role: 'assistant', skipped: { 'block:hologram': 2 } } })
  await agent.close()
})
