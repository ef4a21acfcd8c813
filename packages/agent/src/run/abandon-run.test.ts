import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from '@tapetree/session'
import type { ToolStartRecord } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { bashTool } from '../tools/builtin/bash.ts'
import { attach, startCommand, type Command } from '../tools/commands/command.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { Jobs } from '../tools/commands/jobs.ts'
import { testContext } from '../testing/tool-context.ts'
import { abandonRun } from './abandon-run.ts'

const runId = 'the-run'
let folder: string
let agent: TestAgent
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'abandon-'))
  agent = await TestAgent.open({ model: scriptedModel(script()), store: openFileStore({ folder }) })
  const leafId = await agent.session.appendMessage('user', [text('go')])
  await agent.session.append({ type: 'run_start', runStart: { runId, leafId } })
})
afterEach(async () => {
  await agent.close()
  await rm(folder, { recursive: true })
})
afterAll(dismissSupervisor)

async function answerWith(...ids: string[]): Promise<void> {
  const calls = ids.map((id) => ({ type: 'tool_use' as const, toolUse: { id, name: 'bash', input: {} } }))
  await agent.session.appendMessage('assistant', calls, { with: { runId } })
}

/** A command as the tool announces it in the log. The test decides what happens to it. */
async function announced(callId: string, command: string): Promise<Command> {
  const { localFolder } = agent.session
  const checked = bashTool({ jobs: new Jobs() }).check({ command }, { cwd: folder })
  if (typeof checked === 'string') throw new Error(checked)
  const start = (await checked.start?.(testContext({ cwd: folder, localFolder }))) ?? {}
  const toolStart: ToolStartRecord['toolStart'] = { runId, callId, name: 'bash', ...start }
  await agent.session.append({ type: 'tool_start', toolStart })
  return attach(start.spool ?? '')
}

async function begin({ spool }: Command, command: string): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '' }
  await startCommand({ spool, command, cwd: folder, env, deadlineMs: 60_000 })
}

const spools = (): Promise<string[]> => readdir(join(agent.session.localFolder ?? '', 'spool'))

test('a call that did not start and a call that may have taken effect get different results', async () => {
  await answerWith('1', '2')
  await agent.session.append({ type: 'tool_start', toolStart: { runId, callId: '1', name: 'write' } })
  await abandonRun(agent.session)
  expect((await agent.path()).slice(2)).toEqual([
    'tool: 1 failed: The process ended while this was running, and the run was abandoned. It may have taken effect.',
    'tool: 2 failed: Not run: the run was abandoned before this call started.',
  ])
  expect(await records('run_end')).toMatchObject([{ run_end: { outcome: 'abandoned' } }])
  expect(agent.session.openRun).toBeNull()
})

test('a command that ended by itself gets its real result, and its spool is removed', async () => {
  await answerWith('1', '2')
  const [good, bad] = [await announced('1', 'echo fine'), await announced('2', 'echo bad; exit 3')]
  await begin(good, 'echo fine')
  await begin(bad, 'echo bad; exit 3')
  await Promise.all([good.wait(), bad.wait()])
  await abandonRun(agent.session)
  expect((await agent.path()).slice(2)).toEqual(['tool: 1 fine', 'tool: 2 failed: bad\n\n[Exit code 3.]'])
  expect(await spools()).toEqual([])
})

test('a command that is still running is reported as running, and can be found as a job', async () => {
  await answerWith('1')
  const command = await announced('1', 'echo begun; sleep 50')
  await begin(command, 'echo begun; sleep 50')
  await expect.poll(async () => (await command.output()).end).toBeGreaterThan(0)
  await abandonRun(agent.session)
  const [said = ''] = (await agent.path()).slice(2)
  expect(said).toContain('begun')
  expect(said).toContain('was still running when the run was abandoned, and may have taken effect')
  const [, jobId = ''] = /jobId (job-\w+)/.exec(said) ?? []
  const job = await new Jobs().find(jobId, agent.session.localFolder)
  expect(await job?.state()).toEqual({ type: 'running' })
  await job?.stop()
})

test('a command that was announced but did not start never starts', async () => {
  await answerWith('1')
  const command = await announced('1', 'echo late')
  await abandonRun(agent.session)
  expect((await agent.path()).slice(2)).toEqual([
    'tool: 1 failed: Not run: the run was abandoned before this call started.',
  ])
  expect(await spools()).toEqual([])
  expect((await command.state()).type).toBe('lost')
})

test('the text of a partial answer is kept', async () => {
  const { localFolder = '' } = agent.session
  const line = { item: 'half', run_id: runId, part: 0, kind: 'text', off: 0, text: 'half an ans' }
  await writeFile(join(localFolder, 'draft.jsonl'), `${JSON.stringify(line)}\n`)
  await abandonRun(agent.session)
  expect(await records('attempt')).toMatchObject([{ attempt: { item: 'half', run_id: runId } }])
  expect(await readdir(localFolder)).not.toContain('draft.jsonl')
})

async function records(type: string): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = []
  for await (const line of agent.session.lines()) {
    const parsed = line.type === 'line' ? (JSON.parse(line.text) as Record<string, unknown>) : {}
    if (parsed['type'] === type) found.push(parsed)
  }
  return found
}
