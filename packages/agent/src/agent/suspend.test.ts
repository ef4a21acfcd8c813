import { memoryStore, type SessionStore } from '@tapetree/session'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '@tapetree/session/util/wait'
import { FakeClock } from '../testing/fake-clock.ts'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { bashTool } from '../tools/builtin/bash.ts'
import { allowAll, defineTool, type Tool } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions, ToolsContext } from './agent-session-options.ts'
import { onlyModel } from './model-choice.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Place {
  store: SessionStore
  sessionId?: string
}

async function open(
  { store, sessionId }: Place,
  says: ScriptBuilder,
  options: Partial<AgentSessionOptions> = {},
): Promise<AgentSession> {
  const agent = await AgentSession.open({
    store,
    ...(sessionId !== undefined && { sessionId }),
    models: onlyModel(scriptedModel(says, { clock: systemClock })),
    gate: () => allowAll,
    tools: () => [],
    hasSubagents: false,
    cwd: '/',
    ...options,
  })
  cleanUps.push(() => agent.close())
  return agent
}

/** Resolves at the first line of this type. */
function lineOf(agent: AgentSession, type: string): Promise<void> {
  return new Promise((resolve) => {
    agent.session.subscribe(({ line }) => {
      if (line.type === type) resolve()
    })
  })
}

/** The whole log from the first prompt on, a word or two for each line. */
async function lines(store: SessionStore, id: string): Promise<string[]> {
  await using session = await store.open(id, { readOnly: true })
  const found: string[] = []
  for await (const stored of session.lines()) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type === 'message') found.push(`${line.message.role}: ${JSON.stringify(line.message.content)}`)
    else if (line.type === 'run_end') found.push(`run_end ${line.runEnd.outcome}`)
    else if (/^(run_start|tool_start|attempt|permission_.*)$/.test(line.type)) found.push(line.type)
  }
  return found
}

async function resumed(place: Required<Place>, says: ScriptBuilder, options: Partial<AgentSessionOptions> = {}) {
  const agent = await open(place, says, options)
  const run = await agent.resume()
  expect(await run?.done).toMatchObject({ outcome: 'completed' })
  await agent.close()
  return lines(place.store, place.sessionId)
}

/** A tool that counts its calls, and whose calls end when the test says so. */
function slowTool(replay: Tool['replay'] = 'never'): { tool: Tool; finish: () => void; runs: () => number } {
  const end = Promise.withResolvers<void>()
  let runs = 0
  const tool = defineTool({
    name: 'act',
    description: 'acts',
    schema: z.looseObject({}),
    replay,
    access: () => [],
    run: async () => {
      runs++
      await end.promise
      return { content: 'acted' }
    },
  })
  return { tool, finish: end.resolve, runs: () => runs }
}

describe('a session that is suspended', () => {
  test('keeps the partial answer, leaves its run open, and sends the request again when it is resumed', async () => {
    const store = memoryStore()
    const agent = await open({ store }, script().text('half ').wait(3_600_000).text('never'))
    const said = new Promise<void>((resolve) => {
      agent.subscribe((event) => {
        if (event.type === 'delta') resolve()
      })
    })
    const { id: sessionId } = agent.session
    const outcome = await agent.prompt('go')
    const ended = outcome.type === 'started' ? outcome.run.done.catch((error: Error) => error.name) : undefined
    await said
    await agent.suspend()
    expect(await ended).toBe('SessionSuspended')
    const left = await lines(store, sessionId)
    expect(left.map((line) => line.split(':')[0])).toEqual(['user', 'run_start', 'attempt'])
    const all = await resumed({ store, sessionId }, script().text('whole'))
    expect(all.slice(3).map((line) => line.split(':')[0])).toEqual(['run_start', 'assistant', 'run_end completed'])
  })

  test('waits for a call that cannot be resumed, keeps its result and starts no other', async () => {
    const store = memoryStore()
    const { tool, finish, runs } = slowTool()
    const calls = script().toolCall('1', 'act').toolCall('2', 'act')
    const agent = await open({ store }, calls, { tools: () => [tool] })
    const { id: sessionId } = agent.session
    const begun = lineOf(agent, 'tool_start')
    await agent.prompt('go')
    await begun
    const suspended = agent.suspend()
    finish()
    await suspended
    expect(runs()).toBe(1)
    expect((await lines(store, sessionId)).at(-1)).toContain('acted')
    const all = await resumed({ store, sessionId }, script().text('done'), { tools: () => [tool] })
    expect(runs()).toBe(2)
    expect(all.filter((line) => line === 'tool_start')).toHaveLength(2)
    expect(all.at(-1)).toBe('run_end completed')
  })

  test('waits only a limited time: the outcome of such a call is then unknown, and it is not run again', async () => {
    const store = memoryStore()
    const clock = new FakeClock()
    const { tool, runs } = slowTool()
    const agent = await open({ store }, script().toolCall('1', 'act'), { tools: () => [tool], clock })
    const { id: sessionId } = agent.session
    const begun = lineOf(agent, 'tool_start')
    await agent.prompt('go')
    await begun
    const suspended = agent.suspend()
    const start = clock.now()
    const passing = async (): Promise<'not yet'> => {
      await new Promise(setImmediate)
      clock.advance(100)
      return 'not yet'
    }
    while ((await Promise.race([suspended, passing()])) === 'not yet') continue
    expect(clock.now() - start).toBeLessThan(5000)
    const all = await resumed({ store, sessionId }, script().text('done'), { tools: () => [tool] })
    expect(runs()).toBe(1)
    expect(all.filter((line) => line.includes('may have taken effect'))).toHaveLength(1)
  })

  test('lets a command continue, and reports its end when it is resumed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'suspend-'))
    cleanUps.push(() => rm(folder, { recursive: true, force: true }))
    const store = openFileStore({ folder: join(folder, 'sessions') })
    cleanUps.push(() => store.close())
    const command = 'echo x >> began; until [ -e go ]; do sleep 0.02; done; echo it is done'
    const coding = { cwd: folder, tools: ({ jobs }: ToolsContext) => [bashTool({ jobs })] }
    const own = await open({ store }, script().toolCall('1', 'bash', { command }), coding)
    const { id: sessionId } = own.session
    await own.prompt('go')
    const hasBegun = (): Promise<boolean> =>
      readFile(join(folder, 'began'), 'utf8').then(
        (text) => text === 'x\n',
        () => false,
      )
    while (!(await hasBegun())) await new Promise((resolve) => setTimeout(resolve, 10))
    await own.suspend()
    await writeFile(join(folder, 'go'), '')
    const all = await resumed({ store, sessionId }, script().text('done'), coding)
    expect(all.find((line) => line.startsWith('tool:'))).toContain('it is done')
    expect(await readFile(join(folder, 'began'), 'utf8')).toBe('x\n')
  })

  test('keeps a question pending, and it is the same question afterwards', async () => {
    const store = memoryStore()
    const { tool, finish, runs } = slowTool()
    finish()
    const asking: Partial<AgentSessionOptions> = {
      tools: () => [tool],
      gate: (requests) => ({
        admit: async ({ runId, callId, tool: name }, signal) => {
          const options = [{ optionId: 'yes', label: 'Yes', kind: 'allow_once' as const }]
          await requests.ask({ runId, callId, tool: name, title: 'May I?', options }, signal)
          return { type: 'allowed' }
        },
      }),
    }
    const agent = await open({ store }, script().toolCall('1', 'act'), asking)
    const { id: sessionId } = agent.session
    const asked = lineOf(agent, 'permission_request')
    await agent.prompt('go')
    await asked
    await agent.suspend()
    expect((await lines(store, sessionId)).at(-1)).toBe('permission_request')
    const next = await open({ store, sessionId }, script().text('done'), asking)
    const [question] = next.session.pendingPermissions
    const run = await next.resume()
    expect(await next.answer({ requestId: question?.requestId ?? '', optionId: 'yes', outcome: 'allowed' })).toEqual({
      type: 'taken',
    })
    await run?.done
    expect(runs()).toBe(1)
    expect((await lines(store, sessionId)).filter((line) => line === 'permission_request')).toHaveLength(1)
  })

  test('suspends its subagents, and they are resumed with it', async () => {
    const store = memoryStore()
    const says = script()
      .toolCall('1', 'task', { description: 'look into it', prompt: 'Look.' })
      .step()
      .text('I see ')
      .wait(3_600_000)
      .text('nothing')
    const agent = await open({ store }, says, { hasSubagents: true })
    const { id: sessionId } = agent.session
    const begun = lineOf(agent, 'tool_start')
    await agent.prompt('go')
    await begun
    const child = async (): Promise<AgentSession> => {
      for (;;) {
        const [found] = agent.subagents.values()
        if (found?.session.openRun) return found as AgentSession
        await new Promise(setImmediate)
      }
    }
    const { id: childId } = (await child()).session
    await agent.suspend()
    expect((await lines(store, childId)).filter((line) => line.startsWith('run_end'))).toEqual([])
    expect((await lines(store, sessionId)).at(-1)).toBe('tool_start')
    const says2 = script().text('all of it').step().text('done')
    const all = await resumed({ store, sessionId }, says2, { hasSubagents: true })
    expect(all.find((line) => line.startsWith('tool:'))).toContain('all of it')
    expect((await lines(store, childId)).at(-1)).toBe('run_end completed')
  })
})
