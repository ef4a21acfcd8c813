import { text } from '@tapetree/session'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { defineTool } from '../tools/tool.ts'
import { RunSlot } from './run-slot.ts'
import { bashMessage } from './user-command.ts'

const note = defineTool({
  name: 'note',
  description: 'Notes.',
  schema: z.looseObject({}),
  access: () => [],
  run: async () => ({ content: 'noted' }),
})

test('an entry of an extension that is refused does not end the run', async () => {
  const tooDeep = Array.from({ length: 100 }).reduce<object>((inner) => ({ inner }), {})
  const custom = { customType: 'x', data: { tooDeep } }
  const model = scriptedModel(script().toolCall('1', 'note').step().text('done'))
  const agent = await TestAgent.open({ model, tools: [note] })
  const slot = slotOf(agent)
  const refused = vi.fn<() => void>()
  agent.session.subscribe(({ line }) => {
    if (line.type === 'message' && line.message.role === 'tool') slot.append({ type: 'custom', custom }).catch(refused)
  })
  const run = await slot.start({ type: 'prompt', content: [text('go')] })
  expect(await run.done).toMatchObject({ outcome: 'completed' })
  expect(refused).toHaveBeenCalled()
  expect(await agent.path()).toEqual(['user: go', 'assistant: [note 1]', 'tool: 1 noted', 'assistant: done'])
})

test("a user's command that ends between two runs stays on the path", async () => {
  const agent = await TestAgent.open({ model: scriptedModel(script().text('one').step().text('two')) })
  const { session } = agent
  const slot = slotOf(agent)
  await session.submit('more')
  const append = session.append.bind(session)
  vi.spyOn(session, 'append').mockImplementation(async (draft, context) => {
    // The storage takes its time.
    if (draft.type === 'message' && draft.message.role === 'bashExecution') await new Promise(setImmediate)
    return append(draft, context)
  })
  const stop = session.subscribe(({ line }) => {
    if (line.type !== 'run_end') return
    stop()
    void slot.append(bashMessage({ messageId: 'c', command: 'ls' }, { output: 'a.txt' }))
  })
  const run = await slot.start({ type: 'prompt', content: [text('go')] })
  expect(await run.done).toMatchObject({ outcome: 'completed' })
  expect(await agent.path()).toEqual(['user: go', 'assistant: one', 'bashExecution: ', 'user: more', 'assistant: two'])
})

test("a user's command that ends between a result and the next request is in that request", async () => {
  const model = scriptedModel(script().toolCall('1', 'note').step().text('done'))
  const agent = await TestAgent.open({ model, tools: [note] })
  const { session } = agent
  const slot = slotOf(agent)
  const append = session.append.bind(session)
  vi.spyOn(session, 'append').mockImplementation(async (draft, context) => {
    // The storage takes its time.
    if (draft.type === 'message' && draft.message.role === 'bashExecution') await new Promise(setImmediate)
    return append(draft, context)
  })
  session.subscribe(({ line }) => {
    if (line.type !== 'message' || line.message.role !== 'tool') return
    void slot.append(bashMessage({ messageId: 'c', command: 'ls' }, { output: 'a.txt' }))
  })
  const run = await slot.start({ type: 'prompt', content: [text('go')] })
  expect(await run.done).toMatchObject({ outcome: 'completed' })
  expect((await agent.path()).slice(2)).toEqual(['tool: 1 noted', 'bashExecution: ', 'assistant: done'])
  expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain('a.txt')
})

test("a user's command that ends while a steer is delivered follows it", async () => {
  const agent = await TestAgent.open({ model: scriptedModel(script().text('one').step().text('two')) })
  const { session } = agent
  const slot = slotOf(agent)
  const deliver = session.deliver.bind(session)
  vi.spyOn(session, 'deliver').mockImplementation(async (id, options) => {
    void slot.append(bashMessage({ messageId: 'c', command: 'ls' }, { output: 'a.txt' }))
    // The storage takes its time.
    await new Promise(setImmediate)
    return deliver(id, options)
  })
  const stop = session.subscribe(({ line }) => {
    if (line.type !== 'run_start') return
    stop()
    void session.submit('wait', { delivery: 'steer' })
  })
  const run = await slot.start({ type: 'prompt', content: [text('go')] })
  expect(await run.done).toMatchObject({ outcome: 'completed' })
  const path = await agent.path()
  expect(path.slice(path.indexOf('user: wait'))).toEqual([
    'user: wait',
    'bashExecution: ',
    expect.stringMatching('assistant'),
  ])
})

function slotOf(agent: TestAgent): RunSlot {
  return new RunSlot({ session: agent.session, deps: () => agent.deps, observe: () => undefined })
}
