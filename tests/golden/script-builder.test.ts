import type { ModelPart } from '@tapetree/agent/models'
import { script, ScriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { describe, expect, test } from 'vitest'

/** What a model says in its first call. */
async function partsOf(events: ScriptBuilder, onCancel?: () => void): Promise<ModelPart[]> {
  const model = new ScriptedModel(events, onCancel && { onCancel })
  return partsIn(model)
}

async function partsIn(model: ScriptedModel): Promise<ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of stream(model)) parts.push(part)
  return parts
}

function stream(model: ScriptedModel, signal = new AbortController().signal): AsyncIterable<ModelPart> {
  return model.prepare({ system: '', tools: [], messages: [], thinkingLevel: 'off' }).stream(signal)
}

/** The events that the refactoring specification lists in section 11. */
describe('a script has', () => {
  test.each<[name: string, events: ScriptBuilder, parts: ModelPart[]]>([
    [
      'TextDelta',
      script().text('a', 'b'),
      [
        { type: 'text_delta', part: 0, text: 'a' },
        { type: 'text_delta', part: 0, text: 'b' },
      ],
    ],
    [
      'ReasoningStart, ReasoningDelta, ReasoningEnd',
      script().reasoningStart().reasoningDelta('a').reasoningEnd('signed').reasoningStart().reasoningDelta('b'),
      [
        { type: 'reasoning_delta', part: 0, text: 'a' },
        { type: 'reasoning_end', part: 0, signature: 'signed' },
        { type: 'reasoning_delta', part: 1, text: 'b' },
      ],
    ],
    [
      'ToolInputStart, ToolCall',
      script().toolStart('1', 'bash').toolInput('{"a"').toolCall('1', 'bash', { a: 1 }),
      [
        { type: 'tool_input_start', part: 0, callId: '1', name: 'bash' },
        { type: 'tool_input_delta', part: 0, text: '{"a"' },
        { type: 'tool_call', part: 0, callId: '1', name: 'bash', input: '{"a":1}' },
      ],
    ],
  ])('%s', async (_, events, parts) => {
    expect((await partsOf(events)).filter(({ type }) => type !== 'finish')).toEqual(parts)
  })

  test('ToolResult: what the scripted tool of that name answers', async () => {
    const model = new ScriptedModel(script().toolCall('1', 'bash').toolResult('1', { content: 'no', isError: true }))
    const checked = model.tool('bash').check({}, { cwd: '/' })
    if (typeof checked === 'string') throw new Error(checked)
    const context = { callId: '1' } as Parameters<typeof checked.run>[0]
    expect(await checked.run(context)).toEqual({ content: 'no', isError: true })
  })

  test('Error: the call fails with it', async () => {
    const failing = partsOf(script().text('a').error('overloaded', 'Busy.', { retryAfterMs: 5 }))
    await expect(failing).rejects.toMatchObject({ kind: 'overloaded', message: 'Busy.', retryAfterMs: 5 })
  })

  test('Cancel: the run is stopped at once, and nothing of the answer comes after it', async () => {
    const controller = new AbortController()
    const model = new ScriptedModel(script().text('a').cancel().text('b'), { onCancel: () => controller.abort() })
    const said: string[] = []
    const playing = (async () => {
      for await (const part of stream(model, controller.signal)) said.push(part.type)
    })()
    await expect(playing).rejects.toMatchObject({ name: 'AbortError' })
    expect(said).toEqual(['text_delta'])
  })

  test('Finish: the reason that is given, or the one that follows from what was said', async () => {
    const finishOf = async (events: ScriptBuilder) => (await partsOf(events)).at(-1)
    expect(await finishOf(script().text('a').finish('length'))).toEqual({ type: 'finish', reason: 'length' })
    expect(await finishOf(script().toolCall('1', 'bash'))).toEqual({ type: 'finish', reason: 'tool-calls' })
    expect(await finishOf(script().text('a'))).toEqual({ type: 'finish', reason: 'stop' })
  })

  test('StepBoundary: what follows is the next call', async () => {
    const model = new ScriptedModel(script().text('a').step().text('b').step())
    expect(await partsIn(model)).toMatchObject([{ text: 'a' }, { reason: 'stop' }])
    expect(await partsIn(model)).toMatchObject([{ text: 'b' }, { reason: 'stop' }])
    expect(model.stepsLeft).toBe(0)
  })
})
