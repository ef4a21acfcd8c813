import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { FakeClock } from '../../testing/fake-clock.ts'
import {
  accessOf,
  callTool,
  testContext,
  type TestContext,
  type TestContextOptions,
} from '../../testing/tool-context.ts'
import { bashTool } from './bash.ts'
import { readClaim } from '../commands/claim.ts'
import type { Command } from '../commands/command.ts'
import { dismissSupervisor } from '../commands/supervisor-process.ts'
import { jobOutputTool } from './job-output.ts'
import { Jobs } from '../commands/jobs.ts'

let root: string
let cwd: string
beforeAll(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-job-output-')))))
beforeEach(() => void (cwd = mkdtempSync(join(root, 'session-'))))
afterAll(async () => {
  await dismissSupervisor()
  rmSync(root, { recursive: true })
})

test('shows the output so far and where to continue, also in a process that did not start the job', async () => {
  const { jobId, command } = await startJob(`echo one; ${untilGo()}; echo two; exit 3`)
  await expect.poll(async () => (await command.output()).end, { timeout: 20_000 }).toBe(4)
  expect(await read({ jobId })).toEqual({ content: 'one\n\n[Still running. Read more with since 4.]' })
  expect(await read({ jobId, since: 4 })).toEqual({ content: '[Still running. Read more with since 4.]' })
  go()
  await command.wait()
  expect(await read({ jobId, since: 4 })).toEqual({ content: 'two\n\n[Exit code 3.]' })
  expect(await read({ jobId })).toEqual({ content: 'one\ntwo\n\n[Exit code 3.]' })
})

test('says who stopped a job, also in another process; the first one counts', async () => {
  for (const [stopper, ended] of [
    ['the user', '[Stopped by the user, with all of its processes.]'],
    ['job_kill', '[Stopped by job_kill, with all of its processes.]'],
    [undefined, '[Stopped, with all of its processes.]'],
  ] as const) {
    const { jobId, command } = await startJob(untilGo())
    if (stopper === 'the user') await new Jobs().stop(jobId, cwd)
    else await command.stop(stopper)
    await new Jobs().stop(jobId, cwd)
    expect(await read({ jobId })).toEqual({ content: ended })
  }
})

test('waits for the end of a job with waitMs', async () => {
  const { jobId } = await startJob(`echo one; ${untilGo()}; echo two`)
  const clock = new FakeClock()
  const reading = read({ jobId, waitMs: 5000 }, { clock })
  expect(await clock.waited()).toBe(5000)
  go()
  expect(await reading).toEqual({ content: 'one\ntwo' })
  expect(clock.waits).toEqual([])
})

test('waits no longer than waitMs', async () => {
  const { jobId, command } = await startJob(untilGo())
  const clock = new FakeClock()
  const reading = read({ jobId, waitMs: 5000 }, { clock })
  await clock.skip()
  expect(await reading).toEqual({ content: '[Still running. Read more with since 0.]' })
  go()
  await command.wait()
})

test('stops waiting when the run is stopped, and the job continues', async () => {
  const { jobId, command } = await startJob(untilGo())
  const signal = AbortSignal.abort(new Error('stopped'))
  await expect(read({ jobId, waitMs: 5000 }, { signal })).rejects.toThrow('stopped')
  expect(await command.state()).toEqual({ type: 'running' })
  go()
  await command.wait()
})

test('reports an unknown outcome if the supervisor of a job was killed', async () => {
  const { jobId, command } = await startJob('echo one; sleep 100')
  await expect.poll(async () => (await command.output()).end, { timeout: 20_000 }).toBe(4)
  process.kill(readClaim(command.spool).claim?.pid ?? 0, 'SIGKILL')
  await command.wait()
  expect((await read({ jobId })).content).toMatch(/^one\n\n\[Outcome unknown: its supervisor was killed/)
  await command.endStrays()
})

test('rejects a job of another session and a path', async () => {
  const { jobId, command } = await startJob('true')
  await command.wait()
  const other = mkdtempSync(join(root, 'session-'))
  expect(await read({ jobId }, { localFolder: other })).toEqual({
    content: `There is no job ${jobId} in this session.`,
    isError: true,
  })
  for (const wrong of [`../../spool/${jobId}`, '/etc', '..', '']) {
    expect(await read({ jobId: wrong })).toMatchObject({ isError: true })
  }
})

test('needs no permission, and may run concurrently', () => {
  const tool = jobOutputTool({ jobs: new Jobs() })
  expect(accessOf(tool, { jobId: 'job-1' }, { cwd })).toEqual([])
  expect([tool.readOnly, tool.replay]).toEqual([true, 'safe'])
})

async function startJob(command: string): Promise<{ jobId: string; command: Command }> {
  const jobs = new Jobs()
  const { content } = await callTool(bashTool({ jobs }), { command, background: true }, context())
  const jobId = /job-\w+/.exec(content as string)?.[0] ?? ''
  return { jobId, command: (await jobs.find(jobId, cwd)) as Command }
}

function read(input: object, more: Partial<TestContextOptions> = {}): ReturnType<typeof callTool> {
  return callTool(jobOutputTool({ jobs: new Jobs() }), input, context(more))
}

function context(more: Partial<TestContextOptions> = {}): TestContext {
  return testContext({ cwd, localFolder: cwd, ...more })
}

function untilGo(): string {
  return `until [ -e ${cwd}/go ]; do sleep 0.02; done`
}

function go(): void {
  writeFileSync(join(cwd, 'go'), '')
}
