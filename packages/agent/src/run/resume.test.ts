import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text, type Session, type ToolUse } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { defineTool, type Tool, type ToolOptions } from '../tools/tool.ts'
import { planOfOpenRun, planResume } from './resume.ts'

const runId = 'the-run'
const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** A tool that records its calls. */
function tool(name: string, done: string[], options: Partial<ToolOptions<z.ZodObject>> = {}): Tool {
  return defineTool({
    name,
    description: name,
    schema: z.looseObject({}),
    access: () => [],
    run: (_, { callId }) => Promise.resolve({ content: `ran ${done.push(`run ${callId}`)}` }),
    ...options,
  })
}

/** A session as a dead process leaves it: a prompt, a run without its end, and what the test adds. */
async function interrupted(model: ScriptBuilder, tools: Tool[] = []): Promise<TestAgent> {
  const folder = await mkdtemp(join(tmpdir(), 'resume-'))
  cleanUps.push(() => rm(folder, { recursive: true }))
  const store = openFileStore({ folder })
  cleanUps.push(() => store.close())
  const agent = await TestAgent.open({ model: scriptedModel(model), tools, store })
  cleanUps.push(() => agent.close())
  const leafId = await agent.session.appendMessage('user', [text('go')])
  await agent.session.append({ type: 'run_start', runStart: { runId, leafId } })
  return agent
}

async function answerWith({ session }: TestAgent, ...calls: ToolUse[]): Promise<void> {
  const content = calls.map((toolUse) => ({ type: 'tool_use' as const, toolUse }))
  await session.appendMessage('assistant', content, { with: { runId } })
}

async function started({ session }: TestAgent, callId: string, name: string): Promise<void> {
  await session.append({ type: 'tool_start', toolStart: { runId, callId, name } })
}

async function resume(agent: TestAgent, tools: Tool[] = []): Promise<string[]> {
  const plan = await planResume(agent.session, tools)
  if (!plan) throw new Error('nothing to resume')
  await agent.run({ type: 'resume', plan })
  return agent.path()
}

const call = (id: string, name = 'a'): ToolUse => ({ id, name, input: {} })

describe('after a crash', () => {
  test('an idle session has nothing to resume', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().text('ok')) })
    expect(await planResume(agent.session, [])).toBeUndefined()
    await agent.prompt('go')
    expect(await planResume(agent.session, [])).toBeUndefined()
  })

  test('opening and planning write nothing', async () => {
    const agent = await interrupted(script())
    const before = await agent.lineTypes()
    await planResume(agent.session, [])
    expect(await agent.lineTypes()).toEqual(before)
  })

  test('a delivered message without an answer is answered', async () => {
    const agent = await interrupted(script().text('here I am'))
    expect((await planResume(agent.session, []))?.matters).toMatchObject([{ type: 'unanswered' }])
    expect(await resume(agent)).toEqual(['user: go', 'assistant: here I am'])
    expect(agent.session.openRun).toBeNull()
    expect((await agent.lineTypes()).slice(-3)).toEqual(['run_start', 'message', 'run_end'])
  })

  test('a message whose run did not start is answered', async () => {
    const agent = await TestAgent.open({ model: scriptedModel(script().text('ok')) })
    await agent.session.appendMessage('user', [text('go')])
    expect(await resume(agent)).toEqual(['user: go', 'assistant: ok'])
  })

  test('a draft becomes an attempt, and the request is sent again', async () => {
    const agent = await interrupted(script().text('whole'))
    const line = { item: 'the-item', run_id: runId, part: 0, kind: 'text', off: 0, text: 'hal' }
    const torn = '{"item":"the-item","part":0,"ki'
    await writeFile(join(agent.session.localFolder as string, 'draft.jsonl'), `${JSON.stringify(line)}\n${torn}`)
    expect(await resume(agent)).toEqual(['user: go', 'assistant: whole'])
    const attempts = await recordsOf(agent.session, 'attempt')
    expect(attempts).toMatchObject([{ attempt: { item: 'the-item', content: [{ text: { content: 'hal' } }] } }])
    expect(await planResume(agent.session, [])).toBeUndefined()
  })

  test('a draft whose answer is in the log is stale', async () => {
    const agent = await interrupted(script())
    await agent.session.append({
      type: 'message',
      id: 'the-item',
      message: { role: 'assistant', content: [text('whole')] },
    })
    const line = { item: 'the-item', run_id: runId, part: 0, kind: 'text', off: 0, text: 'hal' }
    await writeFile(join(agent.session.localFolder as string, 'draft.jsonl'), `${JSON.stringify(line)}\n`)
    expect(await resume(agent)).toEqual(['user: go', 'assistant: whole'])
    expect(await recordsOf(agent.session, 'attempt')).toEqual([])
  })

  test('a call that never started is run', async () => {
    const done: string[] = []
    const a = tool('a', done)
    const agent = await interrupted(script().text('ok'), [a])
    await answerWith(agent, call('1'))
    expect(await resume(agent, [a])).toEqual(['user: go', 'assistant: [a 1]', 'tool: 1 ran 1', 'assistant: ok'])
  })

  test('a call that started is not run again, and the model is told that it may have taken effect', async () => {
    const done: string[] = []
    const a = tool('a', done)
    const agent = await interrupted(script().text('ok'), [a])
    await answerWith(agent, call('1'), call('2'))
    await started(agent, '1', 'a')
    expect((await resume(agent, [a])).slice(2)).toEqual([
      'tool: 1 failed: The process ended while this was running. It may have taken effect; it was not run again.',
      'tool: 2 ran 1',
      'assistant: ok',
    ])
    expect(done).toEqual(['run 2'])
  })

  test('a call that is safe to repeat is run again', async () => {
    const done: string[] = []
    const a = tool('a', done, { replay: 'safe' })
    const agent = await interrupted(script().text('ok'), [a])
    await answerWith(agent, call('1'))
    await started(agent, '1', 'a')
    expect((await resume(agent, [a]))[2]).toBe('tool: 1 ran 1')
  })

  test('a command is reattached and reports its outcome', async () => {
    const done: string[] = []
    const a = tool('a', done, {
      replay: 'reattach',
      reattach: (_, { callId }) => Promise.resolve({ content: `${callId} ended with 0` }),
    })
    const agent = await interrupted(script().text('ok'), [a])
    await answerWith(agent, call('1'))
    await started(agent, '1', 'a')
    expect((await resume(agent, [a]))[2]).toBe('tool: 1 1 ended with 0')
    expect(done).toEqual([])
  })

  test('of two parallel calls, the one with a result keeps it', async () => {
    const done: string[] = []
    const a = tool('a', done)
    const agent = await interrupted(script().text('ok'), [a])
    await answerWith(agent, call('1'), call('2'))
    await started(agent, '1', 'a')
    await started(agent, '2', 'a')
    const toolResult = { toolUseId: '2', content: 'finished before' }
    await agent.session.appendMessage('tool', [{ type: 'tool_result', toolResult }])
    const path = await resume(agent, [a])
    expect(path[2]).toBe('tool: 2 finished before')
    expect(path[3]).toMatch(/^tool: 1 failed: The process ended/)
    expect(done).toEqual([])
  })

  test('a call that never started is run, also if an earlier call of the run had the same id', async () => {
    const done: string[] = []
    const agent = await interrupted(script().text('Done.'), [tool('a', done)])
    await answerWith(agent, call('1'))
    await started(agent, '1', 'a')
    const content = [{ type: 'tool_result' as const, toolResult: { toolUseId: '1', content: 'ok' } }]
    await agent.session.appendMessage('tool', content, { with: { runId } })
    await answerWith(agent, call('1'))
    await resume(agent, [tool('a', done)])
    expect(done).toEqual(['run 1'])
  })

  test('of many parallel calls, the one without a result is found behind all results', async () => {
    const done: string[] = []
    const agent = await interrupted(script().text('Done.'), [tool('a', done)])
    const ids = Array.from({ length: 8 }, (_, index) => `c${index}`)
    await answerWith(agent, ...ids.map((id) => call(id)))
    for (const toolUseId of ids.slice(1)) {
      const content = [{ type: 'tool_result' as const, toolResult: { toolUseId, content: 'ok' } }]
      await agent.session.appendMessage('tool', content, { with: { runId } })
    }
    await resume(agent, [tool('a', done)])
    expect(done).toEqual(['run c0'])
  })

  test('the plan for a long run needs the entries at its end only', async () => {
    const agent = await interrupted(script().text('Done.'))
    for (let turn = 0; turn < 40; turn++) {
      await answerWith(agent, call(`c${turn}`))
      const content = [{ type: 'tool_result' as const, toolResult: { toolUseId: `c${turn}`, content: 'ok' } }]
      await agent.session.appendMessage('tool', content, { with: { runId } })
    }
    const [entries, path] = [vi.spyOn(agent.session, 'getEntry'), vi.spyOn(agent.session, 'getContextPath')]
    expect(await planResume(agent.session, [])).toMatchObject({ matters: [{ type: 'unanswered' }] })
    expect([entries.mock.calls.length, path.mock.calls.length]).toEqual([2, 0])
    expect(planOfOpenRun(agent.session)).toEqual({ runId, needsPerson: false })
  })

  test('a queued message is delivered once, after the run', async () => {
    const agent = await interrupted(script().text('1').step().text('2'))
    await agent.session.submit('next')
    expect(await resume(agent)).toEqual(['user: go', 'assistant: 1', 'user: next', 'assistant: 2'])
  })

  test('usage from before the crash counts', async () => {
    const agent = await interrupted(script().toolCall('2', 'a').step().text('ok'), [tool('a', [])])
    agent.deps.settings = { ...agent.deps.settings, runLimits: { turns: 2 } }
    await answerWith(agent, call('1'))
    const plan = await planResume(agent.session, [tool('a', [])])
    expect(plan?.spent.turns).toBe(1)
    expect(await agent.run({ type: 'resume', plan: plan as never })).toMatchObject({ reason: 'limit:turns' })
  })

  test('a call that is in the log already counts once, when it runs', async () => {
    const a = tool('a', [])
    const agent = await interrupted(script().text('ok'), [a])
    agent.deps.settings = { ...agent.deps.settings, sessionLimits: { toolCalls: 2 } }
    await answerWith(agent, call('1'), call('2'))
    const plan = await planResume(agent.session, [a])
    expect(await agent.run({ type: 'resume', plan: plan as never })).toMatchObject({ outcome: 'completed' })
  })

  test('a question about a call that is skipped is withdrawn', async () => {
    const agent = await interrupted(script().text('ok'), [tool('a', [])])
    await answerWith(agent, call('1'))
    const permissionRequest = {
      requestId: 'the-question',
      runId,
      callId: '1',
      tool: 'a',
      title: 'May it?',
      options: [],
    }
    await agent.session.append({ type: 'permission_request', permissionRequest })
    await agent.session.submit('no, wait', { delivery: 'steer' })
    expect((await resume(agent, [tool('a', [])])).slice(2)).toEqual([
      'tool: 1 failed: Not run: the user sent a new message first.',
      'user: no, wait',
      'assistant: ok',
    ])
    expect(await recordsOf(agent.session, 'permission_result')).toMatchObject([
      { permission_result: { request_id: 'the-question', outcome: 'cancelled' } },
    ])
  })

  test('a run that continued from a stopped answer is not stopped itself', async () => {
    const agent = await interrupted(script().text('ok'))
    const toolUse = call('1')
    await agent.session.appendMessage('assistant', [{ type: 'tool_use', toolUse }], {
      with: { runId, stopReason: 'aborted' },
    })
    const toolResult = { toolUseId: '1', content: 'Not run: the user stopped the run.', isError: true }
    await agent.session.appendMessage('tool', [{ type: 'tool_result', toolResult }], { with: { runId } })
    expect(await planResume(agent.session, [])).toMatchObject({ wasStopped: true })
    await agent.session.append({ type: 'run_end', runEnd: { runId, outcome: 'aborted' } })
    const { leafId } = agent.session
    await agent.session.append({ type: 'run_start', runStart: { runId: 'another-run', leafId } })
    expect(await planResume(agent.session, [])).toMatchObject({ wasStopped: false })
    expect((await resume(agent)).at(-1)).toBe('assistant: ok')
  })

  test('a third resume requires a person if two have added nothing', async () => {
    const agent = await interrupted(script())
    const leafId = agent.session.leafId
    expect(await planResume(agent.session, [])).toMatchObject({ fruitless: 0, needsPerson: false })
    await agent.session.append({ type: 'run_start', runStart: { runId, leafId, resumes: runId, fruitless: 0 } })
    expect(await planResume(agent.session, [])).toMatchObject({ fruitless: 1, needsPerson: false })
    await agent.session.append({ type: 'run_start', runStart: { runId, leafId, resumes: runId, fruitless: 1 } })
    expect(await planResume(agent.session, [])).toMatchObject({ fruitless: 2, needsPerson: true })
    await agent.session.appendMessage('assistant', [text('something')])
    expect(await planResume(agent.session, [])).toMatchObject({ fruitless: 0, needsPerson: false })
  })
})

async function recordsOf(session: Session, type: string): Promise<Record<string, unknown>[]> {
  const records: Record<string, unknown>[] = []
  for await (const line of session.lines()) {
    const parsed = line.type === 'line' ? (JSON.parse(line.text) as Record<string, unknown>) : {}
    if (parsed['type'] === type) records.push(parsed)
  }
  return records
}
