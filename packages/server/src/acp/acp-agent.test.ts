import type { ServerFrame } from '@tapetree/client/protocol'
import { memoryStore } from '@tapetree/session'
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LiveSession } from '../live/live-session.ts'
import { call, change, say, shows, steps, think, wait, type AgentStep } from './testing/agent-steps.ts'
import { foreignSessions, logOf, promptsOf, type ForeignSessionsOptions } from './testing/foreign-sessions.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 30_000 }
vi.setConfig({ testTimeout: 60_000 })

const cleanUps: (() => unknown)[] = []
let folder: string
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'acp-agent-')))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function open(options: Partial<ForeignSessionsOptions> = {}): Promise<LiveSession> {
  const sessions = foreignSessions({ store: memoryStore(), folder, ...options })
  cleanUps.push(() => sessions.close())
  return sessions.get(await sessions.create({}))
}

let commands = 0
async function prompt(live: LiveSession, ...all: AgentStep[]): Promise<void> {
  const ack = await live.perform(`c${commands++}`, 'me', { op: 'prompt', args: { text: steps(...all) } })
  expect(ack).toMatchObject({ ok: true })
}

async function idle(live: LiveSession): Promise<string[]> {
  await vi.waitFor(() => expect([live.driver.isBusy, live.session.openRun]).toEqual([false, null]), patiently)
  return (await logOf(live)).filter((line) => !line.startsWith('user:'))
}

const asking = { gate: undefined, hasSubagents: false } as unknown as Partial<ForeignSessionsOptions>
const run = ['run_start']

test('text, thoughts and a plan of the agent become entries and records, in order', async () => {
  const live = await open()
  const plan = { sessionUpdate: 'plan', entries: [{ content: 'Look', status: 'completed', priority: 'high' }] }
  await prompt(live, think('Hm.'), say('Hel'), say('lo.'), { do: 'update', update: plan })
  expect(await idle(live)).toEqual([
    ...run,
    'plan Look completed',
    'thought: Hm.',
    'assistant: Hello.',
    'run_end completed',
  ])
  expect(live.session.plan).toEqual([{ text: 'Look', status: 'completed' }])
})

test('a call is one entry with its whole input, one start and one result', async () => {
  const live = await open()
  await prompt(
    live,
    say('I look.'),
    call('1', { kind: 'read' }),
    change('1', { rawInput: { file: 'a.txt' }, title: 'Read a.txt' }),
    change('1', { status: 'in_progress' }),
    change('1', { status: 'completed', ...shows('the text') }),
    say('Done.'),
  )
  expect(await idle(live)).toEqual([
    ...run,
    'assistant: I look.',
    'call read {"title":"Read a.txt","file":"a.txt"}',
    'tool_start',
    'result: "the text"',
    'assistant: Done.',
    'run_end completed',
  ])
})

test('calls that run side by side, and inside of each other, have a result each', async () => {
  const live = await open()
  await prompt(
    live,
    call('outer', { status: 'in_progress' }),
    say('Inside.'),
    call('inner', { status: 'in_progress' }),
    change('inner', { status: 'completed', ...shows('2') }),
    change('outer', { status: 'failed', ...shows('1') }),
  )
  expect(await idle(live)).toEqual([
    ...run,
    'call other {"title":"Call outer"}',
    'tool_start',
    'assistant: Inside.',
    'call other {"title":"Call inner"}',
    'tool_start',
    'result: "2"',
    'error: "1"',
    'run_end completed',
  ])
})

test('the permission that an agent asks for is a request of the session, and any client may answer it', async () => {
  const live = await open(asking)
  const execute = { kind: 'execute', rawInput: { command: 'rm -rf build' } }
  await prompt(live, call('1', execute), { do: 'ask', call: { toolCallId: '1' } }, change('1', { status: 'completed' }))
  await vi.waitFor(() => expect(live.session.pendingPermissions).toHaveLength(1), patiently)
  const [request] = live.session.pendingPermissions
  expect(request).toMatchObject({ tool: 'execute', title: expect.stringContaining('rm -rf build') })
  const answer = { request_id: request?.requestId, option_id: 'allow_once' }
  expect(await live.perform('a', 'other', { op: 'permission.answer', args: answer })).toMatchObject({ ok: true })
  expect(await idle(live)).toEqual([
    ...run,
    'call execute {"title":"Call 1","command":"rm -rf build"}',
    'permission_request',
    'permission_result allowed',
    'tool_start',
    'assistant: [yes]',
    'result: "(no output)"',
    'run_end completed',
  ])
})

test('a call that the user does not allow is refused to the agent, and never starts', async () => {
  const live = await open(asking)
  await prompt(live, call('1', { kind: 'other' }), { do: 'ask', call: { toolCallId: '1' } })
  await vi.waitFor(() => expect(live.session.pendingPermissions).toHaveLength(1), patiently)
  const [request] = live.session.pendingPermissions
  await live.perform('a', 'me', {
    op: 'permission.answer',
    args: { request_id: request?.requestId, option_id: 'reject_once' },
  })
  const log = await idle(live)
  expect(log).toEqual([
    ...run,
    'call other {"title":"Call 1"}',
    'permission_request',
    'permission_result rejected',
    'assistant: [no]',
    'error: "(no output)"',
    'run_end completed',
  ])
})

test('a call that is announced is recorded, also if the agent asks about another one first', async () => {
  const live = await open()
  await prompt(live, call('1'), { do: 'ask', call: { toolCallId: '2' } }, change('2', { status: 'completed' }))
  const log = await idle(live)
  expect(log.filter((line) => line.startsWith('call'))).toHaveLength(2)
  expect(log.filter((line) => /^(result|error)/.test(line))).toEqual([
    'result: "(no output)"',
    'error: "Outcome unknown: the agent ended its turn without a result of this call."',
  ])
})

test('files and commands that the agent asks for go through our tools and the gate', async () => {
  const live = await open()
  const path = join(folder, 'made.txt')
  await prompt(
    live,
    { do: 'file', path, content: 'hello\n' },
    { do: 'file', path },
    { do: 'run', command: 'wc -c made.txt' },
  )
  const log = await idle(live)
  expect(await readFile(path, 'utf8')).toBe('hello\n')
  expect(log).toEqual([
    ...run,
    'file_write',
    'file_read',
    'assistant: [written][hello\n][0: 6 made.txt]',
    'run_end completed',
  ])
})

test('a turn may have any number of terminals one after the other', async () => {
  const live = await open()
  await prompt(live, ...Array.from({ length: 34 }, (): AgentStep => ({ do: 'run', command: 'true' })))
  expect(await idle(live)).toEqual([...run, `assistant: ${'[0: ]'.repeat(34)}`, 'run_end completed'])
})

test.each([
  { outputByteLimit: 0, output: '' },
  { outputByteLimit: 6, output: '€b' },
])('a terminal keeps the last $outputByteLimit bytes, in whole characters', async ({ outputByteLimit, output }) => {
  const live = await open()
  await prompt(live, { do: 'run', command: "printf 'a€€b'", outputByteLimit })
  expect((await idle(live))[1]).toBe(`assistant: [0: ${output}]`)
})

test('a steer withdraws the question whether a terminal may run its command', async () => {
  const live = await open(asking)
  await prompt(live, { do: 'run', command: 'touch made.txt' })
  await vi.waitFor(() => expect(live.session.pendingPermissions).toHaveLength(1), patiently)
  await live.perform('s', 'me', { op: 'steer', args: { text: steps(say('Otherwise.')) } })
  const log = await idle(live)
  expect(log).toContain('permission_result cancelled')
  expect(log.slice(-2)).toEqual(['assistant: Otherwise.', 'run_end completed'])
})

test('a write that the gate does not allow is an error for the agent', async () => {
  const gate = { admit: () => Promise.resolve({ type: 'denied' as const, reason: 'Not here.' }) }
  const live = await open({ gate })
  const path = join(folder, 'made.txt')
  await prompt(live, { do: 'file', path, content: 'hello\n' })
  expect((await idle(live))[1]).toBe('assistant: [Not here.]')
  await expect(readFile(path)).rejects.toThrow('ENOENT')
})

test('a cancel ends the turn of the agent, and its open calls say so', async () => {
  const live = await open()
  await prompt(live, say('I wo'), call('1', { status: 'in_progress' }), wait)
  await vi.waitFor(async () => expect(await logOf(live)).toContain('tool_start'), patiently)
  await live.perform('x', 'me', { op: 'cancel', args: {} })
  expect(await idle(live)).toEqual([
    ...run,
    'assistant: I wo',
    'call other {"title":"Call 1"}',
    'tool_start',
    'error: "Stopped by the user. It may have taken effect in part."',
    'run_end aborted',
  ])
  await prompt(live, say('Again.'))
  expect((await idle(live)).slice(-2)).toEqual(['assistant: Again.', 'run_end completed'])
  expect(await promptsOf(folder)).toHaveLength(1)
})

test('a steer cancels the turn of the agent and is its next prompt; a queued message is the next run', async () => {
  const live = await open()
  await prompt(live, say('I work, and '), wait)
  await vi.waitFor(
    () => expect([...live.inFlight.parts()].map(({ text }) => text).join('')).toContain('I work'),
    patiently,
  )
  await live.perform('q', 'me', { op: 'follow_up', args: { text: steps(say('Last.')) } })
  await live.perform('s', 'me', { op: 'steer', args: { text: steps(say('Otherwise.')) } })
  await vi.waitFor(async () => expect(await logOf(live)).toContain('assistant: Last.'), patiently)
  expect(await idle(live)).toEqual([
    ...run,
    'assistant: I work, and ',
    'assistant: Otherwise.',
    'run_end completed',
    ...run,
    'assistant: Last.',
    'run_end completed',
  ])
})

async function steered(live: LiveSession, ...first: AgentStep[]): Promise<string[]> {
  await prompt(live, ...first)
  await vi.waitFor(async () => {
    const said = [...live.inFlight.parts()].map(({ text }) => text).join('')
    expect(said + (await logOf(live)).join()).toMatch(/I work|tool_start/)
  }, patiently)
  await live.perform('s', 'me', { op: 'steer', args: { text: steps(say('Otherwise.')) } })
  await idle(live)
  expect(live.session.nextWaiting('steer')).toBeUndefined()
  return (await logOf(live)).map((line) => (line.startsWith('user:') ? 'user' : line))
}

test('a steer reaches an agent that announces steering in its turn, and is a message of the log', async () => {
  const live = await open({ features: 'steer' })
  expect(await steered(live, say('I work, and '), { do: 'await-steer' }, say('I heard.'))).toEqual([
    'user',
    ...run,
    'assistant: I work, and ',
    'user',
    'assistant: I heard.Otherwise.',
    'run_end completed',
  ])
  const [heard] = await promptsOf(folder)
  expect(heard).toEqual([expect.stringContaining('I work'), `steer: ${steps(say('Otherwise.'))}`])
})

test('a steer that the agent refuses cancels its turn and is its next prompt', async () => {
  const live = await open({ features: 'refuse-steer' })
  expect(await steered(live, say('I work, and '), { do: 'await-steer' })).toEqual([
    'user',
    ...run,
    'assistant: I work, and ',
    'user',
    'assistant: Otherwise.',
    'run_end completed',
  ])
  const [heard] = await promptsOf(folder)
  expect(heard).toEqual([expect.stringContaining('I work'), steps(say('Otherwise.'))])
})

test('a call that runs may finish before the agent gets a steer', async () => {
  const live = await open({ features: 'steer' })
  const calling = call('1', { status: 'in_progress' })
  const ended = change('1', { status: 'completed', ...shows('done') })
  const log = await steered(live, calling, { do: 'run', command: 'sleep 0.5' }, ended, { do: 'await-steer' })
  expect(log.indexOf('user', 1)).toBeGreaterThan(log.indexOf('result: "done"'))
  expect(log.slice(-2)).toEqual(['assistant: Otherwise.', 'run_end completed'])
})

test.each(['none', 'steer'] as const)(
  'a steer that is removed before it is given does not end the turn (%s)',
  async (features) => {
    const live = await open({ features })
    const calling = call('1', { status: 'in_progress' })
    const ended = change('1', { status: 'completed', ...shows('done') })
    const until: AgentStep = { do: 'run', command: 'while [ ! -e go ]; do sleep 0.1; done' }
    await prompt(live, calling, until, ended, { do: 'run', command: 'sleep 0.3' }, say('Whole.'))
    await vi.waitFor(async () => expect(await logOf(live)).toContain('tool_start'), patiently)
    await live.perform('s', 'me', { op: 'steer', args: { text: 'Never mind.' } })
    const id = live.session.nextWaiting('steer')?.id
    expect(await live.perform('r', 'me', { op: 'queue.remove', args: { id } })).toMatchObject({ ok: true })
    await writeFile(join(folder, 'go'), '')
    expect((await idle(live)).slice(-3)).toEqual(['result: "done"', 'assistant: [0: ]Whole.', 'run_end completed'])
  },
)

test('a second client sees the same lines and the text in flight, and the slash commands of the agent', async () => {
  const live = await open()
  const lines: number[] = []
  const texts: string[] = []
  const sink = {
    buffered: 0,
    send: (bytes: Buffer) => {
      const frame = JSON.parse(bytes.toString()) as (ServerFrame & { seq?: number }) | { seq: number }
      if (!('type' in frame) || frame.seq !== undefined) lines.push(frame.seq as number)
      else texts.push(JSON.stringify(frame))
    },
    close: () => undefined,
  }
  const request = { client: { id: 'screen' } }
  live.attach(request, sink, await live.prepare(request))
  await prompt(live, say('Word by word'), call('1', { status: 'completed' }), say('.'))
  await idle(live)
  await vi.waitFor(() => expect(lines.at(-1)).toBe(live.session.head.seq), patiently)
  expect(lines).toEqual(lines.map((_, index) => (lines[0] as number) + index))
  expect(texts.some((text) => text.includes('review'))).toBe(true)
  expect(live.driver.config()).toMatchObject({ model: { provider: 'acp', model_id: 'scripted' } })
  expect(live.session.info.messageCount).toBeGreaterThan(2)
})

test('after a branch the agent gets a new session, which is told the conversation up to there', async () => {
  const live = await open()
  await prompt(live, say('One.'))
  await idle(live)
  const { leafId } = live.session
  await prompt(live, say('Two.'))
  await idle(live)
  await live.perform('b', 'me', { op: 'branch', args: { entry_id: leafId } })
  await prompt(live, say('Three.'))
  await idle(live)
  const prompts = await promptsOf(folder)
  expect(prompts).toHaveLength(2)
  const told = prompts.flat().find((text) => text.includes('Three.')) as string
  expect(told).toContain('assistant: One.')
  expect(told).not.toContain('Two.')
})

test('a branch that begins at a call says that its result is not on this branch', async () => {
  const live = await open()
  await prompt(live, call('1', { kind: 'read' }), change('1', { status: 'completed', ...shows('the text') }))
  await idle(live)
  const path = await live.session.getContextPath()
  const called = path.find((entry) => entry.type === 'message' && entry.message.role === 'assistant')
  await live.perform('b', 'me', { op: 'branch', args: { entry_id: called?.id ?? '' } })
  await prompt(live, say('Again.'))
  expect(await idle(live)).toContain(
    'error: "The conversation went back to before the result of this call. It may have taken effect; it was not run again."',
  )
})
