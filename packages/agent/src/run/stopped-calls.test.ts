import { expect, test } from 'vitest'
import { z } from 'zod'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { defineTool, SessionSuspended, type Tool } from '../tools/tool.ts'
import { RunSlot } from './run-slot.ts'

test('a call that waits for its snapshot does not start after a stop', async () => {
  const { agent, waits, runs } = await waitingCall()
  const done = agent.prompt('go')
  await waits
  agent.abort()
  expect(await done).toMatchObject({ outcome: 'aborted' })
  expect(runs()).toBe(0)
  expect((await agent.path()).at(-1)).toBe('tool: 1 failed: Not run: the user stopped the run.')
})

test('a call whose preparation the user stops does not start', async () => {
  const { agent, go, runs } = await waitingCall({ start: async () => agent.abort() })
  go()
  expect(await agent.prompt('go')).toMatchObject({ outcome: 'aborted' })
  expect(runs()).toBe(0)
  expect((await agent.path()).at(-1)).toBe('tool: 1 failed: Not run: the user stopped the run.')
})

test('a call that waits for its snapshot stays open when the session is suspended', async () => {
  const { agent, waits, go, runs } = await waitingCall()
  const slot = new RunSlot({ session: agent.session, deps: () => agent.deps, observe: () => undefined })
  const run = await slot.start({ type: 'prompt', content: [] })
  const ended = expect(run.done).rejects.toThrow(SessionSuspended)
  await waits
  const suspended = slot.suspend()
  go()
  await suspended
  await ended
  expect(runs()).toBe(0)
  expect((await agent.lineTypes()).slice(-2)).toEqual(['run_start', 'message'])
})

/** An agent whose call waits for its snapshot. */
async function waitingCall({ start }: { start?: () => Promise<void> } = {}): Promise<{
  agent: TestAgent
  /** Resolves when the call waits. */
  waits: Promise<void>
  go: () => void
  runs: () => number
}> {
  let runs = 0
  const act: Tool = defineTool({
    name: 'act',
    description: 'Acts.',
    schema: z.looseObject({}),
    access: () => [],
    ...(start && { start: () => start().then(() => ({})) }),
    run: async () => ({ content: `acted ${++runs}` }),
  })
  const agent = await TestAgent.open({ model: scriptedModel(script().toolCall('1', 'act')), tools: [act] })
  const waits = Promise.withResolvers<void>()
  const snapshot = Promise.withResolvers<void>()
  agent.deps.files = {
    runStarted: () => undefined,
    beforeCall: () => {
      waits.resolve()
      return snapshot.promise
    },
    afterCall: () => undefined,
    caughtUp: async () => undefined,
    runEnded: async () => undefined,
  }
  return { agent, waits: waits.promise, go: snapshot.resolve, runs: () => runs }
}
