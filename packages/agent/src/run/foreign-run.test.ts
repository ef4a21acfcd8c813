import { createRedactor } from '@tapetree/redact'
import { newId, type ToolUse } from '@tapetree/session'
import { setImmediate } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { ModelError } from '../models/model.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import type { ForeignRun } from './foreign-agent.ts'
import type { RunDeps } from './run-deps.ts'
import type { RunEnd } from './run-settings.ts'

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface ForeignTest {
  agent: TestAgent
  /** Runs the tools of this name, in order. */
  done: string[]
  prompt: (more?: Partial<RunDeps>) => Promise<RunEnd>
}

/** A run whose turns are this function. */
async function withAgent(work: (run: ForeignRun) => Promise<void>): Promise<ForeignTest> {
  const done: string[] = []
  const tool = (name: string): Tool =>
    defineTool({
      name,
      description: name,
      schema: z.looseObject({}),
      access: () => [],
      run: () => Promise.resolve({ content: `ran ${done.push(name)}` }),
    })
  const agent = await TestAgent.open({ model: scriptedModel(script()), tools: [tool('write')] })
  cleanUps.push(() => agent.close())
  const foreign = { agent: { name: 'test', work }, leaving: new AbortController().signal, terminal: tool('bash') }
  const prompt = (more: Partial<RunDeps> = {}): Promise<RunEnd> => {
    Object.assign(agent.deps, { foreign, ...more })
    return agent.prompt('go')
  }
  return { agent, done, prompt }
}

const call = (): ToolUse => ({ id: newId(), name: 'other', input: {} })

test('our tools act for the agent only after this process has confirmed that it owns the session', async () => {
  const { signal } = new AbortController()
  const { agent, done, prompt } = await withAgent(async (run) => {
    await run.writeFile('a.txt', 'a', signal)
    const command = await run.startCommand('true', { cwd: '/', asking: signal, signal, onOutput: () => undefined })
    await command.done
  })
  const confirmations: (() => void)[] = []
  let checks = 0
  vi.spyOn(agent.session, 'confirmOwner').mockImplementation(() =>
    ++checks % 2 === 0 ? undefined : new Promise<void>((resolve) => confirmations.push(resolve)),
  )
  const end = prompt()
  for (const before of [[], ['write']]) {
    const confirm = await vi.waitFor(() => confirmations.shift() ?? expect.fail())
    await setImmediate()
    expect(done).toEqual(before)
    confirm()
  }
  await end
  expect(done).toEqual(['write', 'bash'])
})

test('a key in the output of a call is redacted, also if it arrives in two pieces', async () => {
  const secret = 'k3y-8d2f7a6b5c4e'
  const pieces = ['The key is k3y-8d2f', '7a6b5c4e, and ', 'that is all.\n']
  const { agent, prompt } = await withAgent(async (run) => {
    const use = call()
    await run.call(use)
    await run.startCall(use, [])
    for (const piece of pieces) run.showOutput(use, piece)
    await run.answerCall(use, { content: pieces.join('') }, [])
  })
  await prompt({ redactor: createRedactor({ secrets: { KEY: secret } }) })
  const shown = agent.events.flatMap((event) => (event.type === 'delta' && event.kind === 'tool_output' ? [event] : []))
  const text = shown.map((event) => event.text).join('')
  expect(text).toMatch(/^The key is .*, and /)
  expect(text).not.toContain('7a6b5c4e')
  let off = 0
  for (const event of shown) {
    expect(event.off).toBe(off)
    off += event.text.length
  }
})

test('calls count towards what an agent may say in one turn', async () => {
  const { prompt } = await withAgent(async (run) => {
    for (let count = 0; count < 20; count++) {
      const use = { ...call(), input: { text: 'x'.repeat(1024 * 1024) } }
      await run.call(use)
      await run.answerCall(use, { content: '' }, [])
    }
  })
  expect(await prompt()).toMatchObject({ outcome: 'failed', reason: 'flood' })
})

test('an agent that starts a call and dies each time is started again at most three times in a row', async () => {
  let starts = 0
  const { agent, prompt } = await withAgent(async (run) => {
    await run.settle()
    const use = call()
    await run.call(use)
    if (++starts > 20) return
    throw new ModelError('network', 'It died.')
  })
  void passTime(agent)
  expect(await prompt()).toMatchObject({ outcome: 'failed', reason: 'network' })
  expect(starts).toBe(4)
})

test('an agent that answered a prompt before it died has three restarts again', async () => {
  let starts = 0
  const { agent, prompt } = await withAgent(async (run) => {
    await run.settle()
    if (++starts === 6) return
    await run.say('text', 'I did it.')
    await run.endAnswer(starts === 3 ? 'stop' : 'pause')
    throw new ModelError('network', 'It died.')
  })
  void passTime(agent)
  expect(await prompt()).toMatchObject({ outcome: 'completed' })
})

/** Ends each wait at once. */
async function passTime({ clock }: TestAgent): Promise<never> {
  for (;;) clock.advance(await clock.waited())
}
