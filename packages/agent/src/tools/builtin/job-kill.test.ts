import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessOf, callTool, testContext, type TestContext } from '../../testing/tool-context.ts'
import { bashTool } from './bash.ts'
import { readClaim } from '../commands/claim.ts'
import type { Command } from '../commands/command.ts'
import { dismissSupervisor } from '../commands/supervisor-process.ts'
import { jobKillTool } from './job-kill.ts'
import { Jobs } from '../commands/jobs.ts'

let cwd: string
beforeAll(() => void (cwd = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-job-kill-')))))
afterAll(async () => {
  await dismissSupervisor()
  rmSync(cwd, { recursive: true })
})

test('stops a job with all of its processes, also in a process that did not start it', async () => {
  const { jobId, command } = await startJob('setsid sleep 100 & echo one; sleep 100')
  await expect.poll(async () => (await command.output()).end, { timeout: 20_000 }).toBe(4)
  const ended = { content: 'one\n\n[Stopped by job_kill, with all of its processes.]' }
  expect(await kill(jobId)).toEqual(ended)
  expect(await kill(jobId)).toEqual(ended)
})

test('does not change a job that has ended', async () => {
  const { jobId, command } = await startJob('echo one; exit 2')
  await command.wait()
  expect(await kill(jobId)).toEqual({ content: 'one\n\n[Exit code 2.]' })
})

test('stops the remaining processes of a job whose supervisor was killed', async () => {
  const { jobId, command } = await startJob('echo one; sleep 100')
  await expect.poll(async () => (await command.output()).end, { timeout: 20_000 }).toBe(4)
  process.kill(readClaim(command.spool).claim?.pid ?? 0, 'SIGKILL')
  expect((await kill(jobId)).content).toMatch(/^one\n\n\[Outcome unknown/)
})

test('rejects a job of another session', async () => {
  expect(await kill('job-000000000000')).toEqual({
    content: 'There is no job job-000000000000 in this session.',
    isError: true,
  })
})

test('needs no permission, but is not read-only', () => {
  const tool = jobKillTool({ jobs: new Jobs() })
  expect(accessOf(tool, { jobId: 'job-1' }, { cwd })).toEqual([])
  expect([tool.readOnly, tool.replay]).toEqual([false, 'safe'])
})

async function startJob(command: string): Promise<{ jobId: string; command: Command }> {
  const jobs = new Jobs()
  const { content } = await callTool(bashTool({ jobs }), { command, background: true }, context())
  const jobId = /job-\w+/.exec(content as string)?.[0] ?? ''
  return { jobId, command: (await jobs.find(jobId, cwd)) as Command }
}

function kill(jobId: string): ReturnType<typeof callTool> {
  return callTool(jobKillTool({ jobs: new Jobs() }), { jobId }, context())
}

function context(): TestContext {
  return testContext({ cwd, localFolder: cwd })
}
