import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, type BashExecution, type SessionStore } from '@tapetree/session'
import { systemClock } from '@tapetree/session/util/wait'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { RemoteWorkspace } from '../tool-host/remote-workspace.ts'
import { MemoryChannel } from '../tool-host/testing/memory-channel.ts'
import { ToolHost } from '../tool-host/tool-host.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import { onlyModel } from './model-choice.ts'

let root: string
let folder: string
let host: ToolHost
let store: SessionStore
const cleanUps: (() => unknown)[] = []

beforeEach(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'remote-')))
  folder = join(root, 'project')
  mkdirSync(folder)
  host = await ToolHost.open({
    dataFolder: join(root, 'host'),
    name: 'laptop',
    workspaces: { app: folder },
    mode: 'auto',
  })
  store = memoryStore()
  cleanUps.push(() => host.close())
})

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  rmSync(root, { recursive: true, force: true })
})

afterAll(() => dismissSupervisor())

interface Opened {
  agent: AgentSession
  channel: MemoryChannel
  remote: RemoteWorkspace
}

async function open(says: ScriptBuilder, options: Partial<AgentSessionOptions> = {}): Promise<Opened> {
  const channel = new MemoryChannel()
  const { id: hostId, name: hostName, platform } = host.hello
  const remote = new RemoteWorkspace({ name: 'app', hostId, hostName, folder, platform }, channel)
  const agent = await AgentSession.open({
    store,
    models: onlyModel(scriptedModel(says, { clock: systemClock })),
    mode: 'auto',
    hasSubagents: false,
    cwd: folder,
    remote,
    ...options,
  })
  cleanUps.push(async () => {
    await agent.close()
    remote.close()
    channel.cut()
  })
  return { agent, channel, remote }
}

async function connected(says: ScriptBuilder, options: Partial<AgentSessionOptions> = {}): Promise<Opened> {
  const opened = await open(says, options)
  opened.channel.connect(host)
  await opened.remote.ready(new AbortController().signal)
  return opened
}

async function results(agent: AgentSession): Promise<string[]> {
  const { messages } = await agent.session.getContext()
  return messages.flatMap(({ message: { content } }) =>
    content.flatMap((block) => (block.type === 'tool_result' ? [JSON.stringify(block.toolResult.content)] : [])),
  )
}

/** Types a command and leaves the session while it runs. Resolves with the id of the session. */
async function leaveRunning({ agent, channel }: Opened, command: string): Promise<string> {
  const begun = channel.next('output')
  const left = agent.executeBash(command, { cause: { cmd: 'left' } })
  const refused = expect(left).rejects.toMatchObject({ name: 'SessionSuspended' })
  await begun
  const { id } = agent.session
  await agent.suspend()
  await refused
  channel.cut()
  return id
}

/** The next command of the user that has ended. */
async function nextBash(agent: AgentSession): Promise<BashExecution> {
  return new Promise((resolve) => {
    const stop = agent.session.subscribe(({ line }) => {
      if (line.type !== 'message' || !line.message.bashExecution) return
      stop()
      resolve(line.message.bashExecution)
    })
  })
}

const runIn = async (agent: AgentSession, text: string): Promise<unknown> => {
  const outcome = await agent.prompt(text)
  return outcome.type === 'started' ? outcome.run.done : undefined
}

describe('a session whose tools work on another machine', () => {
  test('reads, writes and runs commands there', async () => {
    writeFileSync(join(folder, 'a.txt'), 'one\n')
    const says = script()
      .toolCall('1', 'read', { path: 'a.txt' })
      .step()
      .toolCall('2', 'write', { path: 'b.txt', content: 'two\n' })
      .step()
      .toolCall('3', 'bash', { command: 'cat a.txt b.txt; exit 3' })
      .step()
      .text('done')
    const { agent } = await connected(says)
    expect(await runIn(agent, 'go')).toMatchObject({ outcome: 'completed' })
    expect(await results(agent)).toMatchObject([
      expect.stringContaining('one'),
      expect.stringContaining('b.txt'),
      expect.stringMatching(/one.*two.*3/),
    ])
    expect(readFileSync(join(folder, 'b.txt'), 'utf8')).toBe('two\n')
  })

  test('accepts messages while the host is away, and works on them when it is back', async () => {
    const { agent, channel } = await open(script().toolCall('1', 'bash', { command: 'echo here' }).step().text('done'))
    const outcome = await agent.prompt('go')
    expect(outcome).toMatchObject({ type: 'queued' })
    expect(agent.state()).toMatchObject({ isBusy: true, waiting: [{ message: 'go' }] })
    expect(agent.remote?.problem).toBe('The tool host laptop cannot be reached.')
    channel.connect(host)
    await agent.untilIdle()
    expect(await results(agent)).toEqual([expect.stringContaining('here')])
    expect(agent.state()).toMatchObject({ isBusy: false, waiting: [] })
  })

  test('can be stopped while it waits for the host, and keeps the message', async () => {
    const { agent } = await open(script().text('done'))
    await agent.prompt('go')
    await agent.abort()
    expect(agent.state()).toMatchObject({ isBusy: false, waiting: [{ message: 'go' }] })
  })

  test('continues on another server, which gets the real result of a running command', async () => {
    const command = 'echo begun; until test -e go; do sleep 0.02; done; echo over; exit 7'
    const first = await connected(script().toolCall('1', 'bash', { command }))
    await first.agent.prompt('go')
    await first.channel.next('output')
    const { id: sessionId } = first.agent.session
    await first.agent.suspend()
    first.channel.cut()

    const second = await open(script().text('done'), { sessionId })
    // The host connects later than the server takes over.
    const run = await second.agent.resume()
    second.channel.connect(host)
    writeFileSync(join(folder, 'go'), '')
    expect(await run?.done).toMatchObject({ outcome: 'completed' })
    expect(await results(second.agent)).toEqual([expect.stringMatching(/begun.*over.*7/)])
  })

  test('says that an outcome is unknown only if the host itself has lost it', async () => {
    const first = await connected(script().toolCall('1', 'bash', { command: 'echo begun; sleep 600' }))
    await first.agent.prompt('go')
    await first.channel.next('output')
    const { id: sessionId } = first.agent.session
    await first.agent.suspend()
    first.channel.cut()

    const other = await ToolHost.open({ dataFolder: join(root, 'other'), workspaces: { app: folder }, mode: 'auto' })
    cleanUps.push(() => other.close())
    host = other
    const second = await connected(script().text('done'), { sessionId })
    const run = await second.agent.resume()
    expect(await run?.done).toMatchObject({ outcome: 'completed' })
    expect(await results(second.agent)).toEqual([expect.stringContaining('outcome is unknown')])
  })

  test('runs the commands of the user there, too', async () => {
    const { agent, channel } = await connected(script().text('done'))
    const seen: string[] = []
    agent.subscribe((event) => event.type === 'delta' && seen.push(event.text))
    expect(await agent.executeBash('pwd; exit 3')).toMatchObject({
      command: 'pwd; exit 3',
      output: expect.stringContaining(folder),
      exitCode: 3,
    })
    expect(seen.join('')).toContain(folder)
    expect(channel.requests.map(({ type }) => type)).toEqual(['call', 'settled'])
    channel.cut()
    await expect(agent.executeBash('pwd')).rejects.toThrow('The tool host laptop cannot be reached.')
  })

  test('sends the same command of the user with the same id, so that the host runs it once', async () => {
    const { agent, channel } = await connected(script().text('done'))
    const ids: string[] = []
    for (const cmd of ['one', 'one', 'two']) {
      await agent.executeBash('echo x >> ledger; cat ledger', { cause: { cmd } })
      ids.push(...channel.requests.splice(0).flatMap((request) => (request.type === 'call' ? [request.id] : [])))
    }
    expect(ids[1]).toBe(ids[0])
    expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\nx\n')
  })

  test('records a command of the user before the host gets it', async () => {
    const { agent, channel } = await connected(script().text('done'))
    const seen: unknown[] = []
    const send = channel.send.bind(channel)
    channel.send = (request) => {
      seen.push(agent.session.openCommands)
      send(request)
    }
    await agent.executeBash('true', { cause: { cmd: 'one' }, excludeFromContext: true })
    const started = { command: 'true', excludeFromContext: true, host: host.hello.id, cause: { cmd: 'one' } }
    expect(seen[0]).toMatchObject([started])
    expect(agent.session.openCommands).toEqual([])
  })

  test('a command of the user continues on another server, which records its real result', async () => {
    const command = 'echo begun; until test -e go; do sleep 0.02; done; echo over; exit 7'
    const sessionId = await leaveRunning(await connected(script().text('done')), command)
    const second = await open(script().text('done'), { sessionId })
    const ended = nextBash(second.agent)
    expect(second.agent.session.openCommands).toMatchObject([{ command }])
    second.channel.connect(host)
    writeFileSync(join(folder, 'go'), '')
    const message = await ended
    expect(message).toMatchObject({ command, exitCode: 7 })
    expect(message.output).toMatch(/begun[^]*over/)
    await vi.waitFor(() => expect(second.channel.requests.map(({ type }) => type)).toEqual(['call', 'settled']))
  })

  test('a command of the user waits for the interrupted run, and comes after its calls', async () => {
    const command = 'until test -e go; do sleep 0.02; done; echo over'
    const first = await connected(script().toolCall('1', 'bash', { command: `echo begun; ${command}` }))
    await first.agent.prompt('go')
    await first.channel.next('output')
    await first.agent.executeBash('echo mine', { cause: { cmd: 'one' } })
    const sessionId = await leaveRunning(first, `echo mine, too; ${command}`)
    writeFileSync(join(folder, 'go'), '')

    const next = await connected(script().text('done'), { sessionId })
    await next.channel.next('done')
    expect(next.agent.session.openCommands).toHaveLength(1)
    const ended = nextBash(next.agent)
    const run = await next.agent.resume()
    expect(await run?.done).toMatchObject({ outcome: 'completed' })
    expect((await ended).output).toMatch(/mine, too[^]*over/)
    expect(await results(next.agent)).toEqual([expect.stringMatching(/begun.*over/)])
  })

  test('a command of the user that has ended while a run waits for a person is not stopped, and keeps its result', async () => {
    const command = 'until test -e go; do sleep 0.02; done'
    const first = await connected(script().toolCall('1', 'bash', { command: `echo begun; ${command}` }))
    await first.agent.prompt('go')
    await first.channel.next('output')
    const sessionId = await leaveRunning(first, `echo mine; ${command}`)
    writeFileSync(join(folder, 'go'), '')

    const next = await connected(script().text('done'), { sessionId })
    await vi.waitFor(() => expect(next.agent.runsCommands).toBe(false))
    expect(await next.agent.stopCommands()).toBe(false)
    const ended = nextBash(next.agent)
    const run = await next.agent.resume()
    expect(await ended).toMatchObject({ output: 'mine', exitCode: 0 })
    expect(await run?.done).toMatchObject({ outcome: 'completed' })
  })

  test('a command of the user that is stopped while its host is away is stopped when the host is back', async () => {
    const sessionId = await leaveRunning(await connected(script().text('done')), 'echo begun; sleep 600')
    const clock = new FakeClock()
    const second = await open(script().text('done'), { sessionId, clock })
    const ended = nextBash(second.agent)
    const stopped = second.agent.stopCommands()
    await vi.waitFor(() => expect(clock.waits).not.toEqual([]))
    clock.advance(60_000)
    expect(await stopped).toBe(true)
    expect(await ended).toMatchObject({ output: expect.stringMatching(/^Outcome unknown/), cancelled: true })
    second.channel.connect(host)
    await vi.waitFor(() => expect(host.running).toBe(0))
  })

  test('a command of the user that never reached the host does not start later', async () => {
    const first = await connected(script().text('done'))
    first.channel.isDeaf = true
    const left = first.agent.executeBash('echo x >> ledger', { cause: { cmd: 'one' } })
    const refused = expect(left).rejects.toMatchObject({ name: 'SessionSuspended' })
    await vi.waitFor(() => expect(first.channel.requests).toHaveLength(1))
    const late = JSON.stringify(first.channel.requests[0])
    const { id: sessionId } = first.agent.session
    await first.agent.suspend()
    await refused

    const second = await open(script().text('done'), { sessionId })
    const ended = nextBash(second.agent)
    second.channel.connect(host)
    expect(await ended).toMatchObject({ output: 'Not run: the process that sent it ended before it started.' })
    // The message of the first server was only late.
    const answered = Promise.race([second.channel.next('refused'), second.channel.next('done')])
    second.channel.sendText(late)
    await answered
    expect(existsSync(join(folder, 'ledger'))).toBe(false)
  })

  test('a command of the user is not waited for if it is stopped while the host is away', async () => {
    const clock = new FakeClock()
    const { agent, channel } = await connected(script().text('done'), { clock })
    const running = agent.executeBash('echo begun; sleep 600')
    await channel.next('output')
    channel.cut()
    const stopped = agent.stopCommands()
    await vi.waitFor(() => expect(clock.waits).not.toEqual([]))
    clock.advance(60_000)
    expect(await stopped).toBe(true)
    expect(await running).toMatchObject({ output: expect.stringMatching(/^Outcome unknown/), cancelled: true })
  })

  test('asks about files as the host sees them', async () => {
    writeFileSync(join(folder, '.env'), 'X=1\n')
    const { agent } = await connected(script().toolCall('1', 'read', { path: '.env' }).step().text('done'), {
      mode: 'ask',
      whenUnanswered: 'deny',
    })
    await runIn(agent, 'go')
    expect(await results(agent)).toEqual([expect.stringContaining('may contain a secret')])
  })
})
