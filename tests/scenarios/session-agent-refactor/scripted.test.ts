import type { ModelPart } from '@tapetree/agent/models'
import {
  goldenLog,
  script,
  scriptedModel,
  TestAgent,
  type ScriptBuilder,
  type ScriptedModel,
  type ScriptEvent,
} from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { expect, onTestFinished, vi } from 'vitest'
import { compareWithGolden } from '../../golden/golden-file.ts'
import { specTable } from '../../golden/scenarios/spec-table.ts'
import { Stage } from '../../golden/stage.ts'
import { tool } from '../../golden/tool.ts'
import { storedIn, type Stored } from '../../support/stored.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { finish, linesOf, openAgent, pathOf } from '../agent-session/opened-agent.ts'

const request = { system: '', tools: [], messages: [], thinkingLevel: 'off' as const }

async function partsOf(model: ScriptedModel, signal = new AbortController().signal): Promise<ModelPart[]> {
  const parts: ModelPart[] = []
  for await (const part of model.prepare(request).stream(signal)) parts.push(part)
  return parts
}

/** What a script of one call says, but for its end. */
async function said(events: ScriptBuilder): Promise<ModelPart[]> {
  return (await partsOf(scriptedModel(events))).filter(({ type }) => type !== 'finish')
}

/** Plays one row of the table of golden tests, and gives its lines by their type. */
async function golden(
  name: string,
): Promise<{ stage: Stage; messages: Stored[]; records: (type: string) => Stored[] }> {
  const scenario = specTable.scenarios.find((each) => each.name === name)
  if (!scenario) throw new Error(`There is no golden session ${name}.`)
  const stage = new Stage(temporaryFolder())
  onTestFinished(() => stage.clear())
  await scenario.play(stage)
  compareWithGolden(name, await stage.golden())
  const lines = await storedIn(stage.session)
  const records = (type: string): Stored[] =>
    lines.filter((line) => line['type'] === type).map((line) => line[type] as Stored)
  return { stage, messages: records('message'), records }
}

verifies(
  ['session-agent-refactor/11 scripted-model', 'session-agent-refactor/11 scripted-agent'],
  'the same script makes the same session twice, through the loop that real models go through',
  async () => {
    const play = async (): Promise<string[]> => {
      const steps = script().reasoning('Hm.').text('I look.').toolCall('a', 'read').toolResult('a', 'a tree')
      const agent = await TestAgent.open({
        model: scriptedModel(steps.step().text('A tree.')),
        tools: [tool('read')],
        store: memoryStore({ now: () => new Date('2026-01-01T00:00:00Z') }),
      })
      await agent.prompt('What is there?')
      return goldenLog(agent.session)
    }
    const log = await play()
    expect(log).toEqual(await play())
    expect(log).toHaveLength(11)
  },
)

verifies(['session-agent-refactor/11 no-api-calls'], 'a scripted session needs no key and no network', async () => {
  const fetching = vi.spyOn(globalThis, 'fetch')
  onTestFinished(() => fetching.mockRestore())
  const { agent } = await openAgent({ script: script().toolCall('a', 'read').step().text('ok') })
  expect(await finish(agent, 'go')).toMatchObject({ outcome: 'completed' })
  expect(fetching).not.toHaveBeenCalled()
})

verifies(
  [
    'session-agent-refactor/11 stream-event',
    'session-agent-refactor/11 script-builder',
    'session-agent-refactor/11 build-a-script',
  ],
  'a builder makes a list of events, call by call, which may as well be written out',
  async () => {
    const built = script().toolStart('tool-1', 'bash').cancel().build()
    const written: ScriptEvent[] = [{ type: 'tool_input_start', callId: 'tool-1', name: 'bash' }, { type: 'cancel' }]
    expect(built).toEqual(written)
    expect(await partsOf(scriptedModel(written))).toEqual(await partsOf(scriptedModel(built)))
  },
)

verifies(
  ['session-agent-refactor/11 text-delta', 'session-agent-refactor/11 reasoning'],
  'a script streams words, and thoughts that begin, go on and end',
  async () => {
    expect(
      await said(script().reasoningStart().reasoningDelta('Hm.').reasoningEnd('signed').text('Hel', 'lo')),
    ).toEqual([
      { type: 'reasoning_delta', part: 0, text: 'Hm.' },
      { type: 'reasoning_end', part: 0, signature: 'signed' },
      { type: 'text_delta', part: 1, text: 'Hel' },
      { type: 'text_delta', part: 1, text: 'lo' },
    ])
  },
)

verifies(
  ['session-agent-refactor/11 tool-lifecycle'],
  'a script announces a call, makes it, and says what the tool answers',
  async () => {
    const calls = script().toolStart('a', 'bash').toolCall('a', 'bash', { command: 'ls' }).toolResult('a', 'a.txt')
    expect(await said(calls)).toEqual([
      { type: 'tool_input_start', part: 0, callId: 'a', name: 'bash' },
      { type: 'tool_call', part: 0, callId: 'a', name: 'bash', input: '{"command":"ls"}' },
    ])
    const scripted = scriptedModel(calls.step().text('ok'))
    const { agent } = await openAgent({ scripted, tools: [scripted.tool('bash')] })
    await finish(agent, 'go')
    expect((await pathOf(agent))[2]).toBe('tool: a a.txt')
  },
)

verifies(
  ['session-agent-refactor/11 error', 'session-agent-refactor/11 finish', 'session-agent-refactor/11 step-boundary'],
  'a script fails with an error of the provider, ends a call with its reason, and goes on with the next call',
  async () => {
    const model = scriptedModel(
      script().text('a').finish('length').step().text('b').step().error('overloaded', 'Busy.'),
    )
    expect((await partsOf(model)).at(-1)).toEqual({ type: 'finish', reason: 'length' })
    expect((await partsOf(model))[0]).toMatchObject({ text: 'b' })
    await expect(partsOf(model)).rejects.toMatchObject({ kind: 'overloaded', message: 'Busy.' })
    expect(model.stepsLeft).toBe(0)
  },
)

verifies(
  ['session-agent-refactor/11 cancel', 'session-agent-refactor/11 cancel-function'],
  'a script calls what cancels the run, and the stream ends there with the reason of the signal',
  async () => {
    const controller = new AbortController()
    const model = scriptedModel(script().text('a').cancel().text('b'), { onCancel: () => controller.abort() })
    const heard: string[] = []
    const playing = (async () => {
      for await (const part of model.prepare(request).stream(controller.signal)) heard.push(part.type)
    })()
    await expect(playing).rejects.toMatchObject({ name: 'AbortError' })
    expect(heard).toEqual(['text_delta'])
  },
)

verifies(
  [
    'session-agent-refactor/11 run-is-cancelled',
    'session-agent-refactor/11 writes-survive-cancel',
    'session-agent-refactor/11 writes-complete',
  ],
  'a run that is cancelled before its tool ends as aborted, and all that was still to be written is in the log',
  async () => {
    const scripted = scriptedModel(script().text('I run it.').toolStart('tool-1', 'bash').cancel(), {
      onCancel: () => void agent.abort(),
    })
    const { agent, events } = await openAgent({ scripted, tools: [tool('bash')] })
    expect(await finish(agent, 'go')).toMatchObject({ outcome: 'aborted' })
    expect(await pathOf(agent)).toEqual([
      'user: go',
      'assistant: I run it. [bash tool-1]',
      'tool: tool-1 failed: Not run: the user stopped the run.',
    ])
    expect(linesOf(events, 'run_end')).toMatchObject([{ runEnd: { outcome: 'aborted' } }])
  },
)

verifies(
  ['session-agent-refactor/11 golden-cancel-mid-tool-call'],
  'a cancel in the middle of a tool call closes the call and says how the answer ended',
  async () => {
    const { messages, records } = await golden('cancel-mid-tool-call')
    expect(messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', stop_reason: 'aborted', content: [{ tool_use: { id: 'tool-1' } }] },
      { role: 'tool', content: [{ tool_result: { tool_use_id: 'tool-1', is_error: true } }] },
    ])
    expect(records('run_end')).toMatchObject([{ outcome: 'aborted' }])
  },
)

verifies(['session-agent-refactor/11 golden-tool-failure'], 'the error of a tool is kept as its result', async () => {
  const { messages } = await golden('tool-failure')
  expect(messages[2]).toMatchObject({
    role: 'tool',
    content: [{ tool_result: { tool_use_id: 'tool-1', content: 'exit code 1', is_error: true } }],
  })
  expect(messages.at(-1)).toMatchObject({ role: 'assistant', stop_reason: 'stop' })
})

verifies(
  ['session-agent-refactor/11 golden-provider-error'],
  'an error of the provider is in the log with its kind and its words, and what had been said beside it',
  async () => {
    const { records } = await golden('provider-error')
    const error = { kind: 'auth', message: 'The key is not valid.' }
    expect(records('attempt')).toMatchObject([{ error, content: [{ text: { content: 'I r' } }] }])
    expect([records('error'), records('run_end')]).toMatchObject([[error], [{ outcome: 'failed', reason: 'auth' }]])
  },
)

verifies(
  ['session-agent-refactor/11 golden-normal-completion'],
  'words stream in, and the answer has them all and the reason of its end',
  async () => {
    const { stage, messages } = await golden('normal-completion')
    const streamed = stage.agent.events.flatMap((event) => (event.type === 'delta' ? [event.text] : []))
    expect(streamed.join('')).toBe('Hello there.')
    expect(messages[1]).toMatchObject({ stop_reason: 'stop', content: [{ text: { content: 'Hello there.' } }] })
  },
)

verifies(
  ['session-agent-refactor/11 golden-reasoning-then-response'],
  'what was thought stands before what was said',
  async () => {
    const { messages } = await golden('reasoning-then-response')
    expect(messages[1]).toMatchObject({
      content: [{ reasoning: { text: 'They greet me.', signature: 'signed' } }, { text: { content: 'Hello.' } }],
    })
  },
)

verifies(
  ['session-agent-refactor/11 golden-multi-step-tool-use'],
  'several steps of tool use make answers and results in the right order',
  async () => {
    const { stage } = await golden('multi-step-tool-use')
    expect(await stage.agent.path()).toEqual([
      'user: What is in here?',
      'assistant: First the list. [ls tool-1]',
      'tool: tool-1 tool-1 is done',
      'assistant: [read tool-2] [read tool-3]',
      'tool: tool-2 tool-2 is done',
      'tool: tool-3 tool-3 is done',
      'assistant: Both are empty.',
    ])
  },
)

verifies(
  ['session-agent-refactor/11 golden-cancel-during-reasoning'],
  'what was thought before a cancel is kept',
  async () => {
    const { messages } = await golden('cancel-during-reasoning')
    expect(messages[1]).toMatchObject({ stop_reason: 'aborted', content: [{ reasoning: { text: 'They greet ' } }] })
  },
)
