import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SessionStore } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import { allowAll } from '../tools/tool.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { AgentSession } from './agent-session.ts'
import { onlyModel } from './model-choice.ts'

let folder: string
let store: SessionStore
const cleanUps: (() => unknown)[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'shell-'))
  store = openFileStore({ folder: join(folder, 'sessions') })
})

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

afterAll(() => dismissSupervisor())

interface Opened {
  agent: AgentSession
  model: ScriptedModel
}

async function open(
  says: ScriptBuilder,
  { sessionId, cwd = folder }: { sessionId?: string; cwd?: string } = {},
): Promise<Opened> {
  const model = scriptedModel(says)
  const agent = await AgentSession.open({
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    systemPrompt: () => 'You are a test.',
    gate: () => allowAll,
    hasSubagents: false,
    store,
    cwd,
    ...(sessionId !== undefined && { sessionId }),
  })
  cleanUps.push(() => agent.close())
  return { agent, model }
}

async function linesOf({ session }: AgentSession): Promise<Line[]> {
  const lines: Line[] = []
  for await (const line of session.lines()) {
    if (line.type === 'line') lines.push(fromDisk(JSON.parse(line.text) as DiskLine, line.seq))
  }
  return lines
}

async function path({ session }: AgentSession): Promise<string[]> {
  const entries = await session.getContextPath()
  return entries.flatMap((entry) => {
    if (entry.type !== 'message') return []
    const { role, content, bashExecution } = entry.message
    const said = content.map((block) => (block.type === 'text' ? block.text.content : `<${block.type}>`)).join(' ')
    return [`${role}: ${bashExecution ? `${bashExecution.command} → ${bashExecution.output}` : said}`]
  })
}

const cause = { cmd: 'deploy-1', client: 'me' }
const unknown =
  'Outcome unknown: the process ended while this command was running. It may have taken effect. It was not run again.'

test('a command of the user is in the log before it starts, and its message has the same cause', async () => {
  const { agent } = await open(script())
  const { session } = agent
  await agent.executeBash(`grep -c '"bash_start".*deploy-1' sessions/${session.id}/events.jsonl`, { cause })
  const [start, end] = (await linesOf(agent)).slice(-2)
  expect([start, end]).toMatchObject([
    { type: 'bash_start', bashStart: { messageId: end?.id }, cause },
    { type: 'message', message: { bashExecution: { output: '1', exitCode: 0 } }, cause },
  ])
  expect(session.effectOf('deploy-1')).toBe(end?.seq)
  expect(session.openCommands).toEqual([])
})

test('a command that cannot start has an outcome', async () => {
  const { agent } = await open(script(), { cwd: join(folder, 'gone') })
  const { exitCode, output } = await agent.executeBash('true', { cause })
  expect([exitCode, output]).toEqual([undefined, expect.stringContaining('not be started')])
  expect(agent.session.openCommands).toEqual([])
})

test('another agent session leaves a running command alone', async () => {
  const { agent } = await open(script())
  const running = agent.executeBash('echo begun; sleep 60', { cause })
  await vi.waitFor(() => expect(agent.session.openCommands).toHaveLength(1))
  const { agent: other } = await open(script(), { sessionId: agent.session.id })
  expect(await path(other)).toEqual([])
  await agent.stopCommands()
  expect(await running).toMatchObject({ cancelled: true })
  expect(await path(other)).toHaveLength(1)
})

describe('the outcome of a command whose process died', () => {
  interface Dead {
    /** Set if a run was open, too. */
    call?: string
    excludeFromContext?: boolean
    spool?: string
  }

  async function dead({ call, excludeFromContext }: Dead = {}): Promise<string> {
    await using session = await store.create({ cwd: folder })
    const bashStart = { messageId: 'm', command: './deploy.sh', ...(excludeFromContext && { excludeFromContext }) }
    if (call !== undefined) {
      const runId = 'r'
      await session.appendMessage('user', 'go', { with: { runId } })
      await session.append({ type: 'run_start', runStart: { runId, leafId: session.leafId } })
      const toolUse = { id: call, name: 'act', input: {} }
      await session.appendMessage('assistant', [{ type: 'tool_use', toolUse }], { with: { runId } })
    }
    await session.append({ type: 'bash_start', bashStart }, { cause })
    return session.id
  }

  test('is stated when the session is opened again, once', async () => {
    const sessionId = await dead()
    const { agent, model } = await open(script().text('ok'), { sessionId })
    expect(await path(agent)).toEqual([`bashExecution: ./deploy.sh → ${unknown}`])
    expect((await linesOf(agent)).at(-1)).toMatchObject({ id: 'm', cause })
    await agent.ask('look')
    expect(model.requests[0]?.messages).toHaveLength(2)
    await agent.close()
    const { agent: again } = await open(script(), { sessionId })
    expect((await path(again)).filter((line) => line.startsWith('bash'))).toHaveLength(1)
  })

  test('is hidden from the model if the command was', async () => {
    const { agent, model } = await open(script().text('ok'), { sessionId: await dead({ excludeFromContext: true }) })
    await agent.ask('look')
    expect(model.requests[0]?.messages).toHaveLength(1)
    expect(await path(agent)).toContain(`bashExecution: ./deploy.sh → ${unknown}`)
  })

  test('does not change what an interrupted run does when it is resumed', async () => {
    const says = script().toolResult('1', 'done').text('ok')
    const { agent } = await open(says, { sessionId: await dead({ call: '1' }) })
    expect(await path(agent)).toEqual(['user: go', 'assistant: <tool_use>'])
    const run = await agent.resume()
    expect(await run?.done).toMatchObject({ outcome: 'completed' })
    expect(await path(agent)).toEqual([
      'user: go',
      'assistant: <tool_use>',
      `bashExecution: ./deploy.sh → ${unknown}`,
      'tool: <tool_result>',
      'assistant: ok',
    ])
  })

  test.each(['end_turn', 'aborted'])('does not continue a run whose last answer ended with %s', async (stopReason) => {
    const sessionId = await dead({ call: '1' })
    {
      await using session = await store.open(sessionId)
      const toolResult = { toolUseId: '1', content: 'done' }
      await session.appendMessage('tool', [{ type: 'tool_result', toolResult }], { with: { runId: 'r' } })
      await session.appendMessage('assistant', 'so far', { with: { runId: 'r', stopReason } })
    }
    const { agent, model } = await open(script().text('never'), { sessionId })
    await (
      await agent.resume()
    )?.done
    expect(model.requests).toHaveLength(0)
    expect((await path(agent)).slice(-2)).toEqual(['assistant: so far', `bashExecution: ./deploy.sh → ${unknown}`])
  })

  test('is stated when an interrupted run is closed', async () => {
    const { agent } = await open(script().text('ok'), { sessionId: await dead({ call: '1' }) })
    await agent.ask('other')
    expect(await path(agent)).toEqual([
      'user: go',
      'assistant: <tool_use>',
      'tool: <tool_result>',
      `bashExecution: ./deploy.sh → ${unknown}`,
      'user: other',
      'assistant: ok',
    ])
  })
})
