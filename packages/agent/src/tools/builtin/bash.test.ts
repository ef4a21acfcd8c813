import type { ToolStartRecord } from '@tapetree/session/format'
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
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
import { attach } from '../commands/command.ts'
import { currentBootId, environmentOf, listProcesses } from '../commands/process-table.ts'
import { dismissSupervisor } from '../commands/supervisor-process.ts'
import { Jobs } from '../commands/jobs.ts'
import { SessionSuspended, type StartDetails, type ToolOutput } from '../tool.ts'

const jobs = new Jobs()
const bash = bashTool({ jobs, limits: { graceMs: 1000, lingerMs: 100 } })
let root: string
let cwd: string
beforeAll(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-bash-')))))
beforeEach(() => void (cwd = mkdtempSync(join(root, 'session-'))))
const agents = new Set<ChildProcess>()
afterAll(async () => {
  for (const agent of agents) agent.kill('SIGKILL')
  await jobs.close()
  await dismissSupervisor()
  // Processes of a killed agent have its temporary folder in their environment.
  const left = (): number[] =>
    listProcesses().flatMap(({ pid }) => (environmentOf(pid).includes(`TMPDIR=${root}`) ? [pid] : []))
  await vi.waitFor(() => expect(left()).toEqual([]), { timeout: 20_000 })
  rmSync(root, { recursive: true })
  // A supervisor writes its outcome some time before this process notices its end.
  await vi.waitFor(() => expect(listProcesses().filter(({ parentId }) => parentId === process.pid)).toEqual([]), 5000)
})

describe('the result of a command', () => {
  test('is its output', async () => {
    expect(await run('echo out; echo err >&2')).toEqual({ content: 'out\nerr', exitCode: 0 })
  })

  test('is reported as empty if there is none', async () => {
    expect(await run('true')).toEqual({ content: '(no output)', exitCode: 0 })
  })

  test('includes the exit code if it is not 0', async () => {
    expect(await run('echo no; exit 4')).toEqual({ content: 'no\n\n[Exit code 4.]', isError: true, exitCode: 4 })
    expect(await run('exit 4')).toEqual({ content: '[Exit code 4.]', isError: true, exitCode: 4 })
  })

  test('names the signal that ended it', async () => {
    expect(await run('kill -KILL $$')).toEqual({ content: '[Ended by signal SIGKILL.]', isError: true })
  })

  test('reports a timeout', async () => {
    expect(await run('echo begun; sleep 100', { timeoutMs: 1500 })).toEqual({
      content: 'begun\n\n[Timed out after 1.5 s and was stopped with all of its processes.]',
      isError: true,
    })
  })

  test('names the processes that were still running and stopped', async () => {
    expect(await run('sleep 100 & echo ok')).toEqual({
      content: 'ok\n\n[Processes that it left running were stopped: sleep. To keep one, run it with background.]',
      exitCode: 0,
    })
  })

  test('reports too much output', async () => {
    const small = bashTool({ jobs, limits: { outputCapBytes: 1000, outputLimitBytes: 100_000 } })
    const { content, isError } = await callTool(small, { command: 'yes' }, context())
    expect(content).toMatch(
      /^y\n[^]*\[… [\d,]+ bytes not stored …\]\n[^]*y\n\n\[It printed [\d,]+ bytes, more than the limit, and was stopped with all of its processes\.\]$/,
    )
    expect(isError).toBe(true)
  })

  test('reports why it could not be started', async () => {
    const gone = context({ cwd: join(cwd, 'gone') })
    expect(await callTool(bash, { command: 'true' }, gone)).toEqual({
      content: `[It could not be started: There is no folder ${cwd}/gone.]`,
      isError: true,
    })
  })

  test('has no terminal escapes, while observers get everything', async () => {
    const watched = context()
    const { content } = await callTool(bash, { command: String.raw`printf '\033[31mred\033[0m\n'` }, watched)
    expect(content).toBe('red')
    expect(watched.observed.join('')).toBe('\x1b[31mred\x1b[0m\n')
  })

  test('is shortened if it is long, and stored completely as a blob', async () => {
    const kept = context()
    const { content } = await callTool(bash, { command: 'seq 20000' }, kept)
    const whole = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join('')
    const sha256 = createHash('sha256').update(whole).digest('hex')
    expect(content).toMatch(/^1\n2\n/)
    expect(content).toMatch(/\n19999\n20000$/)
    expect(content).toContain(`bytes left out here. The whole output is kept as blob ${sha256} …]`)
    expect(Buffer.from(kept.blobs.get(sha256) ?? []).toString()).toBe(whole)
  })
})

describe('a call of bash', () => {
  test('requests permission for the command in its folder', () => {
    expect(accessOf(bash, { command: 'ls' }, { cwd: '/x' })).toEqual([{ type: 'command', command: 'ls', cwd: '/x' }])
  })

  test.each([
    ['no command', {}],
    ['an empty command', { command: '' }],
    ['a NUL character', { command: 'echo \0' }],
    ['a command that is too long for the system', { command: `: ${'ü'.repeat(70_000)}` }],
    ['a description that is too long', { command: 'ls', description: 'x'.repeat(1001) }],
    ['an invalid timeout', { command: 'ls', timeoutMs: 0 }],
    ['an unknown member', { command: 'ls', timeout: 5 }],
  ])('with %s is rejected', (_, input) => {
    expect(bash.check(input, { cwd })).toMatch(/^The input of bash is not valid\./)
  })

  test('announces host, boot, folder and deadline before it runs, and its folder exists', async () => {
    const clock = new FakeClock(Date.parse('2026-01-01T00:00:00Z'))
    const { start } = await announce({ command: 'true', timeoutMs: 60_000 }, context({ clock }))
    expect(start).toEqual({
      host: hostname(),
      bootId: currentBootId(),
      spool: expect.stringMatching(/\/spool\/job-[0-9a-f]{12}$/) as string,
      deadline: '2026-01-01T00:01:00.000Z',
    })
    expect(existsSync(start.spool ?? '')).toBe(true)
  })

  test('has its own folder, even if another call had the same id, and it is removed when the result is durable', async () => {
    const first = await announce({ command: 'echo 1' })
    const second = await announce({ command: 'echo 2' })
    expect(await Promise.all([first.run(), second.run()])).toEqual([
      { content: '1', exitCode: 0 },
      { content: '2', exitCode: 0 },
    ])
    expect(readdirSync(join(cwd, 'spool'))).toHaveLength(2)
    await first.settled()
    await second.settled()
    expect(readdirSync(join(cwd, 'spool'))).toEqual([])
  })

  test('passes no key to the command', async () => {
    process.env['ANTHROPIC_API_KEY'] = 'canary-key'
    process.env['TAPETREE_TEST_PASSED'] = 'passed'
    const passing = bashTool({ jobs, environment: { pass: ['TAPETREE_TEST_PASSED'] } })
    const { content } = await callTool(passing, { command: 'env' }, context())
    delete process.env['ANTHROPIC_API_KEY']
    delete process.env['TAPETREE_TEST_PASSED']
    expect(content).toContain('TAPETREE_TEST_PASSED=passed')
    expect(content).toContain('PAGER=cat')
    expect(content).not.toContain('canary-key')
  })

  test('that the user stops returns its output so far', async () => {
    const controller = new AbortController()
    const observe = (text: string): void => (text.includes('begun') ? controller.abort() : undefined)
    const stopped = context({ signal: controller.signal, observe })
    expect(await callTool(bash, { command: 'echo begun; sleep 100' }, stopped)).toEqual({
      content: 'begun\n\n[Stopped by the user, with all of its processes.]',
      isError: true,
    })
  })

  test('whose process ends before it starts is left to the next process, and is not called stopped', async () => {
    const suspended = new SessionSuspended()
    const leaving = context({ signal: AbortSignal.abort(suspended) })
    await expect(callTool(bash, { command: `touch ${cwd}/ran` }, leaving)).rejects.toBe(suspended)
    expect(existsSync(join(cwd, 'ran'))).toBe(false)
  })

  test('that the user stops before it starts does not start', async () => {
    const stopped = context({ signal: AbortSignal.abort() })
    expect(await callTool(bash, { command: `touch ${cwd}/ran` }, stopped)).toEqual({
      content: '[Stopped by the user before it started.]',
      isError: true,
    })
    expect(existsSync(join(cwd, 'ran'))).toBe(false)
  })
})

describe('a long command', () => {
  test('continues in the background after a minute, and its folder stays', async () => {
    const clock = new FakeClock()
    const slow = await announce(
      { command: `echo begun; ${untilGo()}; echo done; exit 5` },
      observing('begun', { clock }),
    )
    const running = slow.run()
    await slow.observed
    expect(clock.waits).toEqual([60_000])
    clock.advance(60_000)
    const { content, isError } = await running
    const jobId = /job-\w+/.exec(content as string)?.[0]
    expect(content).toBe(
      `begun\n\n[Still running after 60 s, and now in the background as ${jobId}. Read more with job_output, jobId ${jobId}, since 6; stop it with job_kill.]`,
    )
    expect(isError).toBeUndefined()
    await slow.settled()
    go()
    const outcome = await attach(slow.start.spool ?? '').wait()
    expect(outcome).toMatchObject({ exit: { cause: 'exited', code: 5 } })
    expect(clock.waits).toEqual([])
  })

  test('starts there with `background`', async () => {
    const server = await announce({ command: untilGo(), background: true })
    const { content } = await server.run()
    expect(content).toMatch(
      /^\[Started in the background as (job-\w+)\. Read more with job_output, jobId \1, since 0; /,
    )
    await server.settled()
    expect(await attach(server.start.spool ?? '').state()).toEqual({ type: 'running' })
    go()
    await attach(server.start.spool ?? '').wait()
  })

  test('has a deadline of a day in the background and half an hour otherwise, unless it sets one', async () => {
    const clock = new FakeClock(0)
    const deadlines = [{}, { background: true }, { timeoutMs: 1000 }].map(async (more) => {
      const { start } = await announce({ command: 'true', ...more }, context({ clock }))
      return Date.parse(start.deadline ?? '')
    })
    expect(await Promise.all(deadlines)).toEqual([30 * 60_000, 24 * 60 * 60_000, 1000])
  })
})

describe('after the agent was killed', () => {
  test('a running command is waited for: its real exit code, all its output, and it ran once', async () => {
    const agent = await startAgent(`echo x >> counter; echo one; ${untilGo()}; echo two; exit 7`)
    await agent.observed('one\n')
    await agent.kill()
    const watched = observing('one')
    const result = reattach(agent, watched.given)
    await watched.observed
    go()
    expect(await result).toEqual({ content: 'one\ntwo\n\n[Exit code 7.]', isError: true, exitCode: 7 })
    expect(watched.given.observed.join('')).toBe('one\ntwo\n')
    expect(readFileSync(join(cwd, 'counter'), 'utf8')).toBe('x\n')
  })

  test('a command that ended meanwhile returns its result, even on another machine or after a restart', async () => {
    const agent = await startAgent(`echo x >> counter; echo one; ${untilGo()}; echo two; exit 7`)
    await agent.observed('one\n')
    await agent.kill()
    go()
    await attach(agent.start.spool ?? '').wait()
    const expected = { content: 'one\ntwo\n\n[Exit code 7.]', isError: true, exitCode: 7 }
    expect(await reattach(agent)).toEqual(expected)
    expect(await reattach(agent, context(), { host: 'elsewhere', bootId: 'earlier' })).toEqual(expected)
    expect(readFileSync(join(cwd, 'counter'), 'utf8')).toBe('x\n')
  })

  test('a command that was announced and never started runs now, once', async () => {
    const agent = await startAgent('echo x >> counter; echo ran', 'announce only')
    await agent.kill()
    expect(await reattach(agent)).toEqual({ content: 'ran', exitCode: 0 })
    expect(await reattach(agent)).toEqual({ content: 'ran', exitCode: 0 })
    expect(readFileSync(join(cwd, 'counter'), 'utf8')).toBe('x\n')
  })

  test('a command whose supervisor was killed too has an unknown outcome, and no process of it is left', async () => {
    const agent = await startAgent('echo x >> counter; echo one; sleep 1000; echo x >> counter')
    await agent.observed('one\n')
    await agent.kill()
    const { claim } = readClaim(agent.start.spool ?? '')
    process.kill(claim?.pid ?? 0, 'SIGKILL')
    expect(await reattach(agent)).toEqual({
      content:
        'one\n\n[Outcome unknown: its supervisor was killed. It may have taken effect; it was not run again. This is its output so far.]',
      isError: true,
    })
    expect(readFileSync(join(cwd, 'counter'), 'utf8')).toBe('x\n')
  })

  test('a command of another machine, another boot or a lost folder has an unknown outcome', async () => {
    const agent = await startAgent(`echo one; ${untilGo()}`)
    await agent.observed('one\n')
    await agent.kill()
    const words = async (change: Partial<ToolStart>): Promise<unknown> =>
      (await reattach(agent, context(), change)).content
    expect(await words({ host: 'elsewhere' })).toMatch(
      /^one\n\n\[Outcome unknown: it was started on another machine, elsewhere\./,
    )
    expect(await words({ bootId: 'earlier' })).toMatch(
      /^one\n\n\[Outcome unknown: the machine has been restarted since\./,
    )
    expect(await words({ spool: '/gone/job-000000000000' })).toMatch(
      /^\[Outcome unknown: its spool folder has been removed\./,
    )
    for (const spool of ['/etc', '../..', '', '/x/job-../../..']) {
      expect(await words({ spool })).toMatch(/^\[Outcome unknown: its spool folder is not in this session\./)
    }
    go()
    expect(await words({})).toBe('one')
  })

  test('a session that was moved meanwhile still finds its commands', async () => {
    const agent = await startAgent('echo one')
    await agent.observed('one\n')
    await agent.kill()
    await attach(agent.start.spool ?? '').wait()
    const spool = `/where/it/was/spool/${agent.start.spool?.split('/').at(-1)}`
    expect(await reattach(agent, context(), { spool })).toEqual({ content: 'one', exitCode: 0 })
  })

  test('a job continues in the background', async () => {
    const agent = await startAgent(untilGo(), 'run', { background: true })
    await agent.result
    await agent.kill()
    const { content } = await reattach(agent, context(), {}, { background: true })
    expect(content).toMatch(/^\[Started in the background as job-\w+\./)
    go()
    await attach(agent.start.spool ?? '').wait()
  })

  test('a reattached command moves to the background like any other, and can be stopped', async () => {
    const agent = await startAgent(`echo one; ${untilGo()}`)
    await agent.observed('one\n')
    await agent.kill()
    const clock = new FakeClock()
    const moved = observing('one', { clock })
    const result = reattach(agent, moved.given)
    await moved.observed
    await clock.skip()
    expect((await result).content).toMatch(/^one\n\n\[Still running after 60 s, and now in the background/)
    expect(await reattach(agent, context({ signal: AbortSignal.abort() }))).toEqual({
      content: 'one\n\n[Stopped by the user, with all of its processes.]',
      isError: true,
    })
  })
})

type ToolStart = ToolStartRecord['toolStart']

function context(more: Partial<TestContextOptions> = {}): TestContext {
  return testContext({ cwd, localFolder: cwd, ...more })
}

function run(command: string, more: object = {}): Promise<ToolOutput> {
  return callTool(bash, { command, ...more }, context())
}

/** A context that reports when it has observed something. */
function observing(
  words: string,
  more: Partial<TestContextOptions> = {},
): { given: TestContext; observed: Promise<void> } {
  const { promise: observed, resolve } = Promise.withResolvers<void>()
  const texts: string[] = []
  const observe = (text: string): void => {
    texts.push(text)
    if (text.includes(words)) resolve()
  }
  return { given: context({ observed: texts, observe, ...more } as Partial<TestContextOptions>), observed }
}

/** A call as the loop makes it, step by step. */
async function announce(
  input: object,
  given: TestContext | ReturnType<typeof observing> = context(),
): Promise<{
  start: StartDetails
  observed: Promise<void>
  run: () => Promise<ToolOutput>
  settled: () => Promise<void>
}> {
  const { given: toolContext, observed } = 'given' in given ? given : { given, observed: Promise.resolve() }
  const checked = bash.check(input, toolContext)
  if (typeof checked === 'string') throw new Error(checked)
  const start = (await checked.start?.(toolContext)) ?? {}
  return {
    start,
    observed,
    run: () => checked.run(toolContext),
    settled: async () => checked.settled?.(start, toolContext),
  }
}

interface DyingAgent {
  input: object
  start: ToolStart
  observed: (text: string) => Promise<void>
  result: Promise<void>
  kill: () => Promise<void>
}

/** Another process that acts as the agent, and is killed later. */
async function startAgent(command: string, what = 'run', more: object = {}): Promise<DyingAgent> {
  const input = { command, timeoutMs: 60_000, ...more }
  const program = join(import.meta.dirname, 'testing/agent-process.ts')
  const args = ['-C', '@tapetree/source', program, cwd, JSON.stringify(input), what]
  const agent: ChildProcess = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: root },
  })
  agents.add(agent)
  const said = createInterface({ input: agent.stdout ?? process.stdin })
  const started = Promise.withResolvers<StartDetails>()
  const result = Promise.withResolvers<void>()
  const watching = new Set<() => void>()
  let text = ''
  said.on('line', (line) => {
    const message = JSON.parse(line) as { start?: StartDetails; observed?: string; result?: ToolOutput }
    if (message.start) started.resolve(message.start)
    if (message.result) result.resolve()
    text += message.observed ?? ''
    for (const look of watching) look()
  })
  return {
    input,
    start: { runId: 'run-1', callId: 'call-1', name: 'bash', ...(await started.promise) },
    result: result.promise,
    observed: (words) =>
      new Promise((resolve) => {
        const look = (): void => (text === words ? resolve() : undefined)
        watching.add(look)
        look()
      }),
    kill: async () => {
      agent.kill('SIGKILL')
      await once(agent, 'exit')
    },
  }
}

async function reattach(
  agent: DyingAgent,
  given: TestContext = context(),
  change: Partial<ToolStart> = {},
  more: object = {},
): Promise<ToolOutput> {
  const checked = bash.check({ ...agent.input, ...more }, given)
  if (typeof checked === 'string' || !checked.reattach) throw new Error('It cannot be reattached')
  return checked.reattach({ ...agent.start, ...change }, given)
}

function untilGo(): string {
  return `until [ -e ${cwd}/go ]; do sleep 0.02; done`
}

function go(): void {
  writeFileSync(join(cwd, 'go'), '')
}
