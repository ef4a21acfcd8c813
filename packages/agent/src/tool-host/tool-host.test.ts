import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRedactor } from '@tapetree/redact'
import { newId, SessionError, SessionStore } from '@tapetree/session'
import { MemoryLogStore } from '@tapetree/session/log-store'
import { changedPort } from '@tapetree/session/testing'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AgentSession } from '../agent/agent-session.ts'
import { onlyModel } from '../agent/model-choice.ts'
import { canary } from '../testing/canary.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { testContext, type TestContext, type TestContextOptions } from '../testing/tool-context.ts'
import { currentBootId } from '../tools/commands/process-table.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { allowAll, type CheckedCall, type StartDetails, type ToolOutput } from '../tools/tool.ts'
import { CallJournal } from './call-journal.ts'
import {
  hostMessage,
  maxHelloBytes,
  parseMessage,
  type HostedWorkspace,
  type HostHello,
  type HostRequest,
} from './messages.ts'
import { RemoteWorkspace, type ChannelEvent, type HostChannel } from './remote-workspace.ts'
import { MemoryChannel } from './testing/memory-channel.ts'
import { ToolHost, type ToolHostOptions } from './tool-host.ts'

let root: string
let folder: string
let channel: MemoryChannel
const opened: { close(): unknown }[] = []

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'tool-host-')))
  folder = join(root, 'project')
  mkdirSync(folder)
  channel = new MemoryChannel()
})

afterEach(async () => {
  channel.cut()
  for (const each of opened.splice(0).toReversed()) await each.close()
  rmSync(root, { recursive: true, force: true })
})

afterAll(() => dismissSupervisor())

async function openHost(options: Partial<ToolHostOptions> = {}): Promise<ToolHost> {
  const host = await ToolHost.open({
    dataFolder: join(root, 'data'),
    name: 'laptop',
    workspaces: { app: folder },
    mode: 'auto',
    ...options,
  })
  opened.push(host)
  return host
}

async function openWorkspace(options: Partial<ToolHostOptions> = {}): Promise<RemoteWorkspace> {
  channel.connect(await openHost(options))
  return workspace()
}

async function workspace(): Promise<RemoteWorkspace> {
  if (!channel.hello) await new Promise<void>((resolve) => channel.subscribe(({ type }) => type === 'up' && resolve()))
  const { id: hostId = '', name: hostName = '', platform = '' } = channel.hello ?? {}
  const remote = new RemoteWorkspace({ name: 'app', hostId, hostName, folder, platform }, channel)
  opened.push(remote)
  return remote
}

function contextIn(given: Partial<TestContextOptions> = {}): TestContext {
  return testContext({ cwd: folder, sessionId: newId(), ...given })
}

function check(remote: RemoteWorkspace, name: string, input: unknown): CheckedCall {
  const checked = remote
    .tools()
    .find((tool) => tool.name === name)
    ?.check(input, { cwd: folder })
  if (typeof checked !== 'object') throw new Error(checked ?? `No tool ${name}`)
  return checked
}

function call(remote: RemoteWorkspace, name: string, input: unknown, context = contextIn()): Promise<ToolOutput> {
  return check(remote, name, input).run(context)
}

const requestsOf = (type: HostRequest['type']): HostRequest[] => channel.requests.filter((each) => each.type === type)

describe('a call on a tool host', () => {
  test('reads and changes files there, and the log gets what it did', async () => {
    writeFileSync(join(folder, 'a.txt'), 'one\n')
    const remote = await openWorkspace()
    const context = contextIn()
    expect(await call(remote, 'read', { path: 'a.txt' }, context)).toMatchObject({ content: '1\tone' })
    await call(remote, 'edit', { path: 'a.txt', oldText: 'one', newText: 'two' }, context)
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('two\n')
    const ids = { runId: 'run-1', callId: 'call-1' }
    expect(context.records).toMatchObject([
      { type: 'file_read', fileRead: { path: join(folder, 'a.txt'), size: 4, ...ids } },
      { type: 'file_write', fileWrite: { path: join(folder, 'a.txt'), size: 4, ...ids } },
    ])
    expect([...context.blobs.values()].map((bytes) => Buffer.from(bytes).toString()).toSorted()).toEqual([
      'one\n',
      'two\n',
    ])
  })

  test('takes one round trip', async () => {
    writeFileSync(join(folder, 'a.txt'), 'one\n')
    const remote = await openWorkspace()
    await call(remote, 'read', { path: 'a.txt' })
    expect(channel.requests.map(({ type }) => type)).toEqual(['call'])
    expect(channel.messages.map(({ type }) => type)).toEqual(['hello', 'done'])
  })

  test('shows an image', async () => {
    const image = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    writeFileSync(join(folder, 'a.png'), image)
    const context = contextIn()
    const { content } = await call(await openWorkspace(), 'read', { path: 'a.png' }, context)
    expect(content).toMatchObject([{ type: 'text' }, { type: 'image', image: { source: { type: 'blob' } } }])
    expect([...context.blobs.values()]).toEqual([Uint8Array.from(image)])
  })

  test('streams the output of a command and returns its exit code', async () => {
    const context = contextIn()
    const output = await call(await openWorkspace(), 'bash', { command: 'echo one; echo two >&2; exit 3' }, context)
    expect(context.observed.join('')).toBe('one\ntwo\n')
    expect(output).toMatchObject({ content: expect.stringContaining('3'), isError: true })
  })

  test('is stopped when its run is', async () => {
    const remote = await openWorkspace()
    const stop = new AbortController()
    const context = contextIn({ signal: stop.signal })
    const output = call(remote, 'bash', { command: 'echo begun; sleep 600' }, context)
    await channel.next('output')
    stop.abort()
    expect(await output).toMatchObject({ content: expect.stringContaining('begun'), isError: true })
  })

  test('that cannot be what the service allowed asks the gate again, with the real path', async () => {
    mkdirSync(join(root, 'other'))
    writeFileSync(join(root, 'other', 'b.txt'), 'elsewhere\n')
    const remote = await openWorkspace()
    const checked = check(remote, 'read', { path: 'link/b.txt' })
    symlinkSync(join(root, 'other'), join(folder, 'link'))
    const asked: unknown[] = []
    const readmit: TestContext['readmit'] = async (access) => {
      asked.push(access)
      return { type: 'allowed' }
    }
    expect(await checked.run(contextIn({ readmit }))).toMatchObject({ content: '1\telsewhere' })
    expect(asked).toEqual([[{ type: 'read', path: join(root, 'other', 'b.txt') }]])
    const denied = await checked.run(contextIn({ readmit: async () => ({ type: 'denied', reason: 'No.' }) }))
    expect(denied).toEqual({ content: 'No.', isError: true })
  })
})

describe('an interrupted call', () => {
  test('is attached to when the connection is back, and its output is whole', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    const context = contextIn()
    const output = call(
      remote,
      'bash',
      { command: 'echo one; until test -e go; do sleep 0.02; done; echo two; exit 4' },
      context,
    )
    await channel.next('output')
    channel.cut()
    writeFileSync(join(folder, 'go'), '')
    await expect.poll(() => host.running).toBe(0)
    channel.connect(host)
    expect(await output).toMatchObject({ content: expect.stringMatching(/one\ntwo[^]*4/), isError: true })
    expect(context.observed.join('')).toBe('one\n')
  })

  test('that was sent twice runs once', async () => {
    const remote = await openWorkspace()
    const checked = check(remote, 'bash', { command: 'echo x >> ledger' })
    const context = contextIn()
    const [first, second] = await Promise.all([checked.run(context), checked.run(context)])
    const start = await checked.start?.(context)
    const third = await checked.reattach?.({ runId: 'run-1', callId: 'call-1', name: 'bash', ...start }, context)
    expect(second).toEqual(first)
    expect(third).toEqual(first)
    expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\n')
  })

  test('is not run again after its result is in the log', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    const checked = check(remote, 'bash', { command: 'echo x >> ledger' })
    const context = contextIn()
    await checked.run(context)
    await checked.settled?.((await checked.start?.(context)) ?? {}, context)
    const again = async (): Promise<ToolOutput> => checked.run(context)
    await expect.poll(again).toEqual({ content: expect.stringContaining('already answered'), isError: true })
    expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\n')
    await host.close()
    channel.connect(await openHost())
    expect(await again()).toEqual({ content: expect.stringContaining('already answered'), isError: true })
    expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\n')
  })

  test('of another process of the host: the command is found again, and its exit code is real', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    const output = call(remote, 'bash', { command: 'echo one; until test -e go; do sleep 0.02; done; exit 5' })
    await channel.next('output')
    channel.cut()
    await host.close()
    const next = await openHost()
    writeFileSync(join(folder, 'go'), '')
    channel.connect(next)
    expect(await output).toMatchObject({ content: expect.stringMatching(/one[^]*5/), isError: true })
  })

  test('continues when its server has lost the session to another one, which attaches to it', async () => {
    const remote = await openWorkspace()
    const lost = new AbortController()
    const store = new SessionStore(changedPort(new MemoryLogStore(), { log: () => ({ lost: lost.signal }) }))
    const command = 'echo begun; until test -e go; do sleep 0.02; done; exit 3'
    await using agent = await AgentSession.open({
      models: onlyModel(scriptedModel(script().toolCall('c', 'bash', { command }))),
      tools: () => [],
      gate: () => allowAll,
      hasSubagents: false,
      remote,
      store,
    })
    const outcome = await agent.prompt('go')
    if (outcome.type !== 'started') throw new Error(outcome.type)
    await channel.next('output')
    lost.abort(new SessionError('fenced', 'Another writer has taken over this session.'))
    await expect(outcome.run.done).rejects.toMatchObject({ code: 'fenced' })
    const [sent] = requestsOf('call')
    expect(channel.requests).toEqual([sent])
    writeFileSync(join(folder, 'go'), '')
    channel.send(sent as HostRequest)
    expect(await channel.next('done')).toMatchObject({ outcome: { exitCode: 3 } })
  })

  test('on another host has an unknown outcome', async () => {
    const remote = await openWorkspace()
    const checked = check(remote, 'bash', { command: 'echo x >> ledger' })
    const start = { runId: 'run-1', callId: 'call-1', name: 'bash', host: 'host-gone', spool: newId() }
    const output = await checked.reattach?.(start, contextIn())
    expect(output).toMatchObject({ content: expect.stringContaining('unknown'), isError: true })
    expect(requestsOf('call')).toEqual([])
  })

  test('waits for a host that is away', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    channel.cut()
    expect(remote.problem).toBe('The tool host laptop cannot be reached.')
    const ready = remote.ready(new AbortController().signal)
    writeFileSync(join(folder, 'a.txt'), 'one\n')
    const output = call(remote, 'read', { path: 'a.txt' })
    channel.connect(host)
    await ready
    expect(remote.problem).toBeUndefined()
    expect(await output).toMatchObject({ content: '1\tone' })
  })
})

describe('a host', () => {
  test('that cannot keep the result of a call still sends it', async () => {
    const remote = await openWorkspace()
    const checked = check(remote, 'bash', { command: 'echo begun; until test -e go; do sleep 0.02; done; exit 3' })
    const context = contextIn()
    const { spool = '' } = (await checked.start?.(context)) ?? {}
    const output = checked.run(context)
    await channel.next('output')
    // A file cannot replace a folder.
    mkdirSync(join(root, 'data', 'calls', context.sessionId, spool, 'done', 'x'), { recursive: true })
    writeFileSync(join(folder, 'go'), '')
    expect(await output).toMatchObject({ content: expect.stringMatching(/begun[^]*3/), exitCode: 3 })
  })

  test('that cannot read its journal does not say that nothing was done', async () => {
    const remote = await openWorkspace()
    const checked = check(remote, 'write', { path: 'a.txt', content: 'made\n' })
    const context = contextIn()
    const { spool = '' } = (await checked.start?.(context)) ?? {}
    mkdirSync(join(root, 'data', 'calls', context.sessionId, spool, 'started'), { recursive: true })
    expect(await checked.run(context)).toMatchObject({ content: expect.stringContaining('unknown'), isError: true })
  })

  test('with a name that is too long or empty is known by a part of it, or by its machine', async () => {
    for (const [name, known] of [
      ['x'.repeat(300), 'x'.repeat(200)],
      ['', hostname()],
    ] as const) {
      const host = await openHost({ name })
      channel.connect(host)
      await workspace()
      expect(channel.hello?.name).toBe(known)
      channel.cut()
      await host.close()
    }
  })

  test('with long instructions leaves out the longest, so that it can introduce itself', async () => {
    const folders = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => [name, join(root, name)] as const)
    for (const [name, path] of folders) {
      mkdirSync(path)
      writeFileSync(join(path, 'AGENTS.md'), 'word '.repeat(name === 'a' ? 10 : 9000))
    }
    const host = await openHost({ workspaces: Object.fromEntries(folders) })
    expect(Buffer.byteLength(JSON.stringify(host.hello))).toBeLessThan(maxHelloBytes)
    const texts = host.hello.workspaces.map(({ instructions: [first] }) => first?.text ?? '')
    expect(texts[0]).toContain('word word')
    expect(texts.filter((text) => text.includes('too long to be sent')).length).toBeGreaterThan(0)
  })

  test('has its folder for itself', async () => {
    const host = await openHost()
    await expect(openHost()).rejects.toThrow('Another tool host uses the folder')
    await host.close()
    expect((await openHost()).hello.id).toBe(host.hello.id)
  })

  test('is known by an id that only the owner of its folder can use', async () => {
    const host = await openHost()
    const other = await openHost({ dataFolder: join(root, 'other') })
    channel.connect(host)
    await workspace()
    expect(channel.hello?.id).toBe(host.hello.id)
    expect(other.hello.id).not.toBe(host.hello.id)
    expect(JSON.stringify(channel.hello)).not.toContain('key')
  })

  test('removes results that nobody has collected for a month, and does not run those calls again', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    const checked = check(remote, 'bash', { command: 'echo x >> ledger' })
    const context = contextIn()
    await checked.run(context)
    channel.cut()
    await host.close()
    const { spool = '' } = (await checked.start?.(context)) ?? {}
    const result = join(root, 'data', 'calls', context.sessionId, spool)
    const longAgo = new Date(Date.now() - 31 * 24 * 60 * 60 * 1000)
    utimesSync(join(result, 'done'), longAgo, longAgo)
    channel.connect(await openHost())
    await expect.poll(() => existsSync(result)).toBe(false)
    expect(await checked.run(context)).toMatchObject({ content: expect.stringContaining('not run again') })
    expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\n')
  })

  test('finishes what must not be interrupted before it ends', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    void call(remote, 'write', { path: 'a.txt', content: 'made\n' })
    await expect.poll(() => host.running).toBe(1)
    await host.close()
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('made\n')
  })
})

describe('a call that is over before it starts', () => {
  const over = AbortSignal.abort()

  test('does not start: its run was stopped while the host was away', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    channel.cut()
    const stop = new AbortController()
    const output = call(remote, 'write', { path: 'a.txt', content: 'made\n' }, contextIn({ signal: stop.signal }))
    stop.abort()
    channel.connect(host)
    expect(await output).toMatchObject({ content: expect.stringContaining('did not start'), isError: true })
    expect(existsSync(join(folder, 'a.txt'))).toBe(false)
  })

  test('is still attached to if it had started', async () => {
    const remote = await openWorkspace()
    const checked = check(remote, 'write', { path: 'a.txt', content: 'made\n' })
    const context = contextIn()
    const output = await checked.run(context)
    expect(await checked.run({ ...context, signal: over })).toEqual(output)
  })

  test('can start later if only the process of the host ends', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    const output = call(remote, 'bash', { command: 'echo x >> ledger; exit 3' })
    await expect.poll(() => host.running).toBe(1)
    channel.cut()
    await host.close()
    channel.connect(await openHost())
    expect(await output).toMatchObject({ exitCode: 3 })
    expect(readFileSync(join(folder, 'ledger'), 'utf8')).toBe('x\n')
  })
})

describe('the deadline of a call', () => {
  test('does not count the time while the host is away', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    writeFileSync(join(folder, 'a.txt'), 'one\n')
    channel.cut()
    const clock = new FakeClock()
    const { deadlineMs } = remote.tools().find(({ name }) => name === 'read') ?? {}
    expect(deadlineMs).toBe(Infinity)
    const output = call(remote, 'read', { path: 'a.txt' }, contextIn({ clock }))
    clock.advance(24 * 60 * 60 * 1000)
    channel.connect(host)
    expect(await output).toMatchObject({ content: '1\tone' })
  })

  test('ends the wait for a host that is there and does not answer', async () => {
    const host = await openHost()
    channel.connect(host)
    const remote = await workspace()
    const clock = new FakeClock()
    channel.isDeaf = true
    const output = call(remote, 'read', { path: 'a.txt' }, contextIn({ clock }))
    clock.advance(24 * 60 * 60 * 1000)
    await expect.poll(() => requestsOf('cancel').length).toBe(1)
    expect(await clock.waited()).toBe(5000)
    clock.advance(5000)
    expect(await output).toMatchObject({ content: expect.stringContaining('did not answer'), isError: true })
  })
})

describe('the ceiling of a host', () => {
  test('keeps commands without a sandbox from showing files outside of the folder', async () => {
    writeFileSync(join(root, 'outside.txt'), 'x')
    writeFileSync(join(folder, 'inside.txt'), 'y')
    symlinkSync(join(root, 'outside.txt'), join(folder, 'link.txt'))
    const remote = await openWorkspace({ mode: 'accept-edits' })
    const refused = { content: expect.stringContaining('It offers only what is in'), isError: true }
    for (const command of ['cat ../outside.txt', 'cat link.txt', 'cat *.txt', 'head -1 /etc/passwd', 'grep x ../*']) {
      expect(await call(remote, 'bash', { command })).toEqual(refused)
    }
    for (const command of ['cat inside.txt', 'grep -r y .', 'cat i*.txt']) {
      expect(await call(remote, 'bash', { command })).toMatchObject({ content: expect.stringContaining('y') })
    }
  })

  test('holds for a call that starts again because the first process of the host was interrupted', async () => {
    writeFileSync(join(root, 'outside.txt'), 'x')
    writeFileSync(join(folder, 'a.txt'), 'y')
    const remote = await openWorkspace({ mode: 'accept-edits' })
    const checked = check(remote, 'read', { path: 'a.txt' })
    const context = contextIn()
    const { spool = '' } = (await checked.start?.(context)) ?? {}
    expect(await checked.run(context)).toMatchObject({ content: '1\ty' })
    // The result was not kept, as on a full disk.
    rmSync(join(root, 'data', 'calls', context.sessionId, spool, 'done'))
    rmSync(join(folder, 'a.txt'))
    symlinkSync(join(root, 'outside.txt'), join(folder, 'a.txt'))
    expect(await checked.run(context)).toMatchObject({ content: expect.stringContaining('does not allow') })
  })

  test.each([
    { mode: 'accept-edits', content: 'does not allow', ran: '' },
    { mode: 'auto', content: '', ran: 'x\n' },
  ] as const)(
    'in mode $mode is that of the process which starts a recorded command',
    async ({ mode, content, ran }) => {
      const [id, session, command, spool] = [newId(), newId(), "sh -c 'echo x >> ledger'", 'job-0123456789ab']
      const judged = [{ type: 'command', command, cwd: folder } as const]
      const call = { run: 'run-1', call: 'call-1', workspace: 'app', tool: 'bash', input: { command }, judged, from: 0 }
      const request = { type: 'call', id, session, ...call } as const
      // An earlier process, which allowed it, died before the command had begun.
      mkdirSync(join(root, 'data', 'calls'), { recursive: true })
      mkdirSync(join(root, 'data', 'sessions', session, 'spool', spool), { recursive: true })
      const start = { host: hostname(), bootId: currentBootId(), spool }
      await new CallJournal(join(root, 'data', 'calls')).begin({ request, start })
      const host = await openHost({ mode })
      await expect.poll(() => host.running).toBe(0)
      expect(existsSync(join(folder, 'ledger')) ? readFileSync(join(folder, 'ledger'), 'utf8') : '').toBe(ran)
      channel.connect(host)
      await workspace()
      channel.send(request)
      await expect
        .poll(() => channel.messages.find((message) => message.type === 'done' && message.id === id))
        .toMatchObject({ outcome: { output: { content: expect.stringContaining(content) } } })
      // The refusal is final, whatever a later process allows: the log has it.
      channel.cut()
      await host.close()
      const last = await openHost({ mode: 'auto' })
      await expect.poll(() => last.running).toBe(0)
      expect(existsSync(join(folder, 'ledger')) ? readFileSync(join(folder, 'ledger'), 'utf8') : '').toBe(ran)
    },
  )

  test('decides which hosts a command in the sandbox reaches, whatever the service says', async () => {
    const sandbox = { folder: join(root, 'sandbox'), own: [join(root, 'own')] }
    const remote = await openWorkspace({ mode: 'sandboxed', sandbox })
    const reach: TestContext['reach'] = async () => ({ type: 'allowed' })
    const command = 'curl -sS --max-time 20 http://tapetree-unknown.example/ 2>&1'
    const { content } = await call(remote, 'bash', { command }, contextIn({ reach }))
    expect(channel.messages.map(({ type }) => type)).not.toContain('reach')
    expect(content).toContain('does not allow')
  }, 60_000)

  test('asks the service about a host for the only command that runs, also after other commands', async () => {
    const sandbox = { folder: join(root, 'sandbox'), own: [join(root, 'own')] }
    const remote = await openWorkspace({ mode: 'auto', sandbox })
    const asked: string[] = []
    const reach: TestContext['reach'] = async ({ host }) => {
      asked.push(host)
      return { type: 'denied', reason: 'No.' }
    }
    const sessionId = newId()
    const run = (callId: string, input: object): Promise<ToolOutput> =>
      call(remote, 'bash', input, contextIn({ box: 'writable', sessionId, callId, reach }))
    await run('call-1', { command: 'true' })
    await run('call-2', { command: 'true', background: true })
    // It does not tell the proxy which call it is.
    await run('call-3', {
      command: 'http_proxy=http://127.0.0.1:${http_proxy##*:} curl -sS --max-time 20 http://tapetree-unknown.example/',
    })
    expect(asked).toEqual(['tapetree-unknown.example'])
  }, 60_000)

  test('and the sandbox that the service wants hold for a call that is sent only by the next server', async () => {
    const sandbox = { folder: join(root, 'sandbox'), own: [join(root, 'own')] }
    const remote = await openWorkspace({ mode: 'auto', sandbox })
    const checked = check(remote, 'bash', { command: 'touch made' })
    const context = contextIn({ box: 'read-only' })
    const start = JSON.parse(JSON.stringify(await checked.start?.(context))) as StartDetails
    // The first server died before it sent the call. The next one knows only what is in the log.
    const { box: _, ...next } = context
    await checked.reattach?.({ runId: 'run-1', callId: 'call-1', name: 'bash', ...start }, next)
    expect(requestsOf('call')).toMatchObject([{ box: 'read-only' }])
    expect(existsSync(join(folder, 'made'))).toBe(false)
  })

  test('holds whatever the service allows', async () => {
    writeFileSync(join(root, 'outside.txt'), 'x')
    const remote = await openWorkspace({ mode: 'accept-edits' })
    const refused = { content: expect.stringMatching(/^The tool host does not allow this/), isError: true }
    expect(await call(remote, 'write', { path: '../outside.txt', content: 'y' })).toEqual(refused)
    expect(await call(remote, 'bash', { command: 'touch made' })).toEqual(refused)
    expect(await call(remote, 'write', { path: '.git/hooks/post-checkout', content: 'y' })).toEqual(refused)
    expect(await call(remote, 'read', { path: '~/.ssh/id_ed25519' })).toEqual(refused)
    expect(await call(remote, 'read', { path: '../outside.txt' })).toEqual(refused)
    expect(await call(remote, 'ls', { path: '..' })).toEqual(refused)
    expect(await call(remote, 'write', { path: 'inside.txt', content: 'y' })).not.toHaveProperty('isError')
    expect(readFileSync(join(root, 'outside.txt'), 'utf8')).toBe('x')
  })

  test('puts commands into its sandbox, whatever the service says', async () => {
    const sandbox = { folder: join(root, 'sandbox'), own: [join(root, 'own')] }
    const remote = await openWorkspace({ mode: 'sandboxed', sandbox })
    const output = await call(remote, 'bash', { command: 'pwd; touch inside; touch ../outside; ls ..' })
    expect(output.content).toMatch(folder)
    expect(existsSync(join(folder, 'inside'))).toBe(true)
    expect(existsSync(join(root, 'outside'))).toBe(false)
    expect(output.content).not.toContain('data')
  })

  test('is what its owner forbids, too', async () => {
    const remote = await openWorkspace({ rules: [{ effect: 'deny', type: 'read', match: './private/**' }] })
    mkdirSync(join(folder, 'private'))
    writeFileSync(join(folder, 'private', 'a.txt'), 'x')
    expect(await call(remote, 'read', { path: 'private/a.txt' })).toMatchObject({ isError: true })
    expect(await call(remote, 'bash', { command: 'cat private/a.txt' })).toMatchObject({ isError: true })
  })

  test('judges links by where they lead on the host', async () => {
    writeFileSync(join(root, 'outside.txt'), 'x')
    symlinkSync(join(root, 'outside.txt'), join(folder, 'inside.txt'))
    const remote = await openWorkspace({ mode: 'accept-edits' })
    const output = await call(remote, 'write', { path: 'inside.txt', content: 'y' })
    expect(output).toMatchObject({ content: expect.stringMatching(/does not allow/), isError: true })
  })
})

describe('what leaves the host', () => {
  test('has no secrets of the host', async () => {
    const secret = canary()
    const redactor = createRedactor({ secrets: { TOKEN: secret } })
    const remote = await openWorkspace({ redactor })
    writeFileSync(join(folder, 'a.txt'), `the key is ${secret}\n`)
    const context = contextIn()
    await call(remote, 'read', { path: 'a.txt' }, context)
    await call(remote, 'bash', { command: 'cat a.txt' }, context)
    await call(remote, 'edit', { path: 'a.txt', oldText: 'the', newText: 'a' }, context)
    expect(JSON.stringify(channel.messages)).not.toContain(secret)
    expect(JSON.stringify(channel.messages)).not.toContain(Buffer.from(secret).toString('base64').slice(4, 24))
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toContain(secret)
    rmSync(folder, { recursive: true })
  })

  test('has no secrets of instructions and refusals either', async () => {
    const secret = canary()
    const redactor = createRedactor({ secrets: { TOKEN: secret } })
    writeFileSync(join(folder, 'AGENTS.md'), `Use the key ${secret} for tests.`)
    const remote = await openWorkspace({ redactor, mode: 'accept-edits' })
    expect(remote.instructions).toMatchObject([{ text: expect.stringMatching(/^Use the key .* for tests\.$/) }])
    await call(remote, 'bash', { command: `deploy --token=${secret}` })
    expect(JSON.stringify(channel.messages)).not.toContain(secret)
    rmSync(folder, { recursive: true })
  })
})

describe('a hostile service', () => {
  test('does not learn where links lead that leave the folder', async () => {
    const home = join(root, 'home')
    mkdirSync(join(home, 'release-42'), { recursive: true })
    symlinkSync(join(home, 'release-42'), join(home, 'current'))
    symlinkSync(join(home, 'current'), join(folder, 'link'))
    await openWorkspace({ mode: 'accept-edits', home })
    const base = { session: newId(), run: 'r', call: 'c', workspace: 'app', tool: 'read', judged: [], from: 0 }
    for (const path of ['link/a.txt', join(home, 'current', 'a.txt'), '../home/current']) {
      channel.send({ type: 'call', ...base, id: newId(), input: { path } })
      expect(await channel.next('refused')).toMatchObject({ reason: expect.stringContaining('offers only what is in') })
    }
    expect(JSON.stringify(channel.messages)).not.toContain('release-42')
  })

  test('gets no answer to malformed messages, and refusals for what the host does not offer', async () => {
    const host = await openHost()
    channel.connect(host)
    await workspace()
    for (const text of ['', '{', '[]', '{"type":"call"}', '{"type":"call","id":"../../../x"}', 'x'.repeat(100)]) {
      channel.sendText(text)
    }
    const base = {
      type: 'call' as const,
      session: newId(),
      run: 'r',
      call: 'c',
      input: { path: 'a' },
      judged: [],
      from: 0,
    }
    channel.send({ ...base, id: newId(), workspace: 'other', tool: 'read' })
    expect(await channel.next('refused')).toMatchObject({ reason: expect.stringContaining('workspace') })
    channel.send({ ...base, id: newId(), workspace: 'app', tool: 'rm' })
    expect(await channel.next('refused')).toMatchObject({ reason: expect.stringContaining('no tool') })
    channel.send({ ...base, id: newId(), workspace: 'app', tool: 'read' })
    expect(await channel.next('elsewhere')).toMatchObject({ access: [{ type: 'read', path: join(folder, 'a') }] })
    expect(channel.messages.map(({ type }) => type)).toEqual(['hello', 'refused', 'refused', 'elsewhere'])
  })
})

describe('a hostile host', () => {
  const connectLiar = (hello: Partial<HostHello>): { say: (message: unknown) => void; remote: RemoteWorkspace } => {
    const listeners = new Set<(event: ChannelEvent) => void>()
    const described = { name: 'app', folder, mode: 'auto', instructions: [], tools: [tool('bash')] }
    const liar: HostChannel = {
      hello: { id: 'host-1', name: 'liar', platform: 'linux', workspaces: [described], ...hello },
      send: (request) => channel.requests.push(request),
      subscribe: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    const reference = { name: 'app', hostId: 'host-1', hostName: 'liar', folder, platform: 'linux' }
    const say = (message: unknown): void => {
      const parsed = parseMessage(hostMessage, JSON.stringify(message))
      if (parsed) for (const listener of listeners) listener({ type: 'message', message: parsed })
    }
    return { say, remote: new RemoteWorkspace(reference, liar) }
  }
  const tool = (name: string): HostedWorkspace['tools'][number] => ({
    ...{ name, description: '', inputSchema: {}, readOnly: true, deadlineMs: null },
  })

  test('cannot offer tools in place of those of the server', async () => {
    const tools = [tool('bash'), tool('bash'), tool('fetch'), tool('task'), tool('mcp__mail__send'), tool('read')]
    const { remote } = connectLiar({
      workspaces: [{ name: 'app', folder, mode: 'auto', instructions: [], tools }],
    })
    expect(remote.tools().map(({ name }) => name)).toEqual(['read', 'bash'])
  })

  test('cannot flood the user with questions about hosts', async () => {
    const { remote, say } = connectLiar({})
    let open = 0
    const reach: TestContext['reach'] = () => {
      open++
      return new Promise(() => undefined)
    }
    const output = call(remote, 'bash', { command: 'true' }, contextIn({ reach }))
    const [{ id } = { id: '' }] = requestsOf('call') as { id: string }[]
    for (let question = 0; question < 1000; question++) {
      say({ type: 'reach', id, question, host: `${question}.example`, port: 443 })
      say({ type: 'reach', id, question: 1, host: `${question}.example`, port: 443 })
    }
    say({ type: 'done', id, outcome: { output: 'done', records: [], blobs: [] } })
    await output
    expect(open).toBeLessThanOrEqual(32)
  })
})
