// Agents that misbehave or die, and servers that end in the middle of a turn.
import { FakeClock } from '@tapetree/agent/testing'
import { memoryStore, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LiveSession } from '../live/live-session.ts'
import { call, change, die, hang, say, shows, steps, think, wait, type AgentStep } from './testing/agent-steps.ts'
import { foreignSessions, logOf, promptsOf, type ForeignSessionsOptions } from './testing/foreign-sessions.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 30_000 }
vi.setConfig({ testTimeout: 60_000 })

const cleanUps: (() => unknown)[] = []
let folder: string
let store: SessionStore
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'acp-faults-')))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  store = memoryStore()
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Server {
  live: LiveSession
  close: () => Promise<void>
}

async function serve(options: Partial<ForeignSessionsOptions> = {}, sessionId?: string): Promise<Server> {
  const sessions = foreignSessions({ store, folder, ...options })
  cleanUps.push(() => sessions.close())
  const live = await sessions.get(sessionId ?? (await sessions.create({})))
  return { live, close: () => sessions.close() }
}

let commands = 0
async function prompt(live: LiveSession, ...all: AgentStep[]): Promise<void> {
  const ack = await live.perform(`c${commands++}`, 'me', { op: 'prompt', args: { text: steps(...all) } })
  expect(ack).toMatchObject({ ok: true })
}

async function logged(live: LiveSession): Promise<string[]> {
  return (await logOf(live)).filter((line) => !line.startsWith('user:'))
}

async function idle(live: LiveSession): Promise<string[]> {
  await vi.waitFor(() => expect([live.driver.isBusy, live.session.openRun]).toEqual([false, null]), patiently)
  return logged(live)
}

const asking = { gate: undefined } as unknown as Partial<ForeignSessionsOptions>
const unknown =
  'error: "Outcome unknown: the agent ended while this was running. It may have taken effect; it was not run again."'
const continued = /^assistant: You said: Your process ended in the middle of this turn/

test.each(['load', 'resume'] as const)(
  'an agent that dies in mid-turn is started again and continues its session (%s); nothing is written twice',
  async (features) => {
    const { live } = await serve({ features })
    await prompt(live, say('First.'))
    await idle(live)
    await prompt(live, say('half '), call('1', { status: 'in_progress' }), say('more '), die)
    expect((await idle(live)).slice(3)).toEqual([
      'run_start',
      'assistant: half ',
      'call other {"title":"Call 1"}',
      'tool_start',
      'attempt more ',
      unknown,
      expect.stringMatching(continued),
      'run_end completed',
    ])
    const prompts = await promptsOf(folder)
    expect(prompts).toHaveLength(1)
    expect(prompts[0]).toHaveLength(3)
  },
)

test('what an agent says after it has closed its stdin is kept', async () => {
  const script = `
    const write = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }))
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'last words' } }
    process.on('SIGTERM', () => {
      write({ method: 'session/update', params: { sessionId: 's', update } })
      process.exit()
    })
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (method === 'initialize') return write({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
      if (method === 'session/new') return write({ id, result: { sessionId: 's' } })
      process.stdin.destroy() // which leaves it open
      require('node:fs').closeSync(0)
      setInterval(() => console.log('no message, so it is answered'), 5)
    })`
  const { live } = await serve({ script })
  await prompt(live, say('Anything.'))
  const log = await idle(live)
  expect(log.filter((line) => line.startsWith('attempt'))).toEqual(Array(4).fill('attempt last words'))
  expect(log.at(-1)).toBe('run_end failed')
  expect(JSON.stringify(await live.session.snapshot({ entries: 50, bytes: 1e6 }))).toContain('It closed its stdin.')
})

test('an agent that cannot continue a session is told the conversation in a new one', async () => {
  const { live } = await serve({ features: 'none' })
  await prompt(live, say('First.'))
  await idle(live)
  await prompt(live, call('1', { status: 'in_progress' }), die)
  expect((await idle(live)).at(-1)).toBe('run_end completed')
  const told = (await promptsOf(folder)).flat().at(-1) ?? ''
  const all = (await promptsOf(folder)).flat().join('\n')
  expect(await promptsOf(folder)).toHaveLength(2)
  expect(all).toContain('assistant: First.')
  expect(told).not.toBe('')
})

test('a run whose agent dies whenever it is started fails after some tries, and says why', async () => {
  const { live } = await serve({ script: 'console.error("no licence"); process.exit(3)' })
  await prompt(live, say('Never.'))
  expect(await idle(live)).toEqual(['run_start', 'error network', 'run_end failed'])
  const lines = await live.session.snapshot({ entries: 50, bytes: 1e6 })
  expect(JSON.stringify(lines)).toContain('no licence')
})

test('a server that shuts down leaves the run open, and the next one resumes it', async () => {
  const first = await serve(asking)
  const started = call('1', { status: 'in_progress' })
  await prompt(first.live, started, call('2'), { do: 'ask', call: { toolCallId: '2' } }, wait)
  await vi.waitFor(() => expect(first.live.session.pendingPermissions).toHaveLength(1), patiently)
  const { id } = first.live.session
  await first.close()
  const { live } = await serve(asking, id)
  expect(live.session.openRun).not.toBeNull()
  expect(await live.perform('r', 'server', { op: 'resume', args: { by_person: false } })).toMatchObject({ ok: true })
  expect(await idle(live)).toEqual([
    'run_start',
    'call other {"title":"Call 1"}',
    'tool_start',
    'call other {"title":"Call 2"}',
    'permission_request',
    'run_start',
    unknown,
    'permission_result cancelled',
    unknown,
    expect.stringMatching(continued),
    'run_end completed',
  ])
  expect(live.session.pendingPermissions).toEqual([])
  expect(await promptsOf(folder)).toHaveLength(1)
})

test('the slash commands that an agent announces while its session is loaded are known', async () => {
  const first = await serve()
  await prompt(first.live, say('One.'))
  await idle(first.live)
  await first.close()
  const { live } = await serve({}, first.live.session.id)
  await prompt(live, say('Two.'))
  await idle(live)
  expect(await promptsOf(folder)).toHaveLength(1)
  expect(live.driver.slashCommands()).toMatchObject([{ name: 'review' }])
})

test('a copy of a session has a session of the agent of its own', async () => {
  const { live } = await serve()
  await prompt(live, say('One.'))
  await idle(live)
  const copy = await live.session.copyAll()
  await prompt(live, say('Two.'))
  await idle(live)
  const { live: other } = await serve({}, copy)
  await prompt(other, say('Three.'))
  await idle(other)
  const told = (await promptsOf(folder)).flat().find((each) => each.includes('Three.')) ?? ''
  expect(await promptsOf(folder)).toHaveLength(2)
  expect(told).toContain('assistant: One.')
  expect(told).not.toContain('Two.')
})

test('a run that a dead server left open is resumed by the next one, with the session of the agent', async () => {
  const owner = fileURLToPath(new URL('testing/doomed-owner.ts', import.meta.url))
  const child = fork(owner, [folder], { execArgv: ['-C', '@tapetree/source'], stdio: 'inherit' })
  const [id] = (await once(child, 'message')) as [string]
  child.kill('SIGKILL')
  await once(child, 'exit')
  store = openFileStore({ folder: join(folder, 'sessions') })
  cleanUps.push(() => store.close())
  const { live } = await serve({}, id)
  await live.perform('r', 'server', { op: 'resume', args: { by_person: false } })
  expect(await idle(live)).toEqual([
    'run_start',
    'assistant: I begin, and ',
    'call other {"title":"Call 1"}',
    'tool_start',
    'run_start',
    unknown,
    expect.stringMatching(continued),
    'run_end completed',
  ])
  expect(await promptsOf(folder)).toHaveLength(1)
})

test('a cancel of a run that a dead server left open ends its calls without starting the agent', async () => {
  const first = await serve()
  await prompt(first.live, call('1', { status: 'in_progress' }), wait)
  await vi.waitFor(async () => expect(await logged(first.live)).toContain('tool_start'), patiently)
  const { id } = first.live.session
  await first.close()
  const { live } = await serve({}, id)
  await live.perform('x', 'me', { op: 'cancel', args: {} })
  expect((await idle(live)).slice(-2)).toEqual([unknown, 'run_end abandoned'])
  expect((await promptsOf(folder)).flat()).toHaveLength(1)
})

test('updates that come late, or have the wrong ids, are dropped', async () => {
  const { live } = await serve()
  const said = (text: string): object => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
  const last = { name: 'last', description: 'Arrives after all others' }
  await prompt(
    live,
    { do: 'update', update: said('of another session'), sessionId: 'other' },
    { do: 'update', update: { sessionUpdate: 'tool_call', title: 'without an id' } },
    { do: 'update', update: { sessionUpdate: 'unheard of' } },
    change('nobody', { status: 'completed', ...shows('of nobody') }),
    call('1', { status: 'completed', ...shows('first') }),
    change('1', { status: 'failed', ...shows('changed afterwards') }),
    call('1', { status: 'completed', ...shows('the same id again') }),
    say('Now.'),
    { do: 'late', update: said('late') },
    { do: 'late', update: { sessionUpdate: 'tool_call', toolCallId: '9', title: 'late' } },
    { do: 'late', update: { sessionUpdate: 'available_commands_update', availableCommands: [last] } },
  )
  const expected = [
    'run_start',
    'call other {"title":"Call 1"}',
    'tool_start',
    'result: "first"',
    'call other {"title":"Call 1"}',
    'tool_start',
    'result: "the same id again"',
    'assistant: Now.',
    'run_end completed',
  ]
  expect(await idle(live)).toEqual(expected)
  await vi.waitFor(() => expect(live.driver.slashCommands()).toEqual([last]), patiently)
  await prompt(live, change('1', { status: 'completed' }), say('Then.'))
  expect(await idle(live)).toEqual([...expected, 'run_start', 'assistant: Then.', 'run_end completed'])
})

test('an agent that ignores a cancel is ended, and the next prompt starts it again', async () => {
  const clock = new FakeClock()
  const { live } = await serve({ clock })
  await prompt(live, say('I never stop, and '), call('1', { status: 'in_progress' }), hang)
  await vi.waitFor(async () => expect(await logged(live)).toContain('tool_start'), patiently)
  const cancelled = live.perform('x', 'me', { op: 'cancel', args: {} })
  await vi.waitFor(() => {
    clock.advance(5000)
    expect(live.driver.isBusy).toBe(false)
  }, patiently)
  await cancelled
  expect((await idle(live)).slice(-2)).toEqual([
    'error: "Stopped by the user. It may have taken effect in part."',
    'run_end aborted',
  ])
  await prompt(live, say('Again.'))
  await vi.waitFor(async () => expect(await logged(live)).toContain('assistant: Again.'), patiently)
})

test('an agent that floods a turn is stopped, and the run says so', async () => {
  const { live } = await serve()
  await prompt(live, { do: 'flood', count: 40, size: 1024 * 1024 })
  const log = await idle(live)
  expect(log.slice(-2)).toEqual(['error flood', 'run_end failed'])
  expect(log.join('').length).toBeLessThan(20 * 1024 * 1024)
})

test('calls that are open when an agent floods a turn have a stated outcome, and what it said before is kept', async () => {
  const { live } = await serve()
  const flood: AgentStep = { do: 'flood', count: 40, size: 1024 * 1024 }
  await prompt(live, call('1', { status: 'in_progress' }), call('2'), say('almost '), flood)
  const outcome =
    'error: "Outcome unknown: the run reached a limit while this was open. It may have taken effect; it was not run again."'
  const log = await idle(live)
  expect(log.filter((line) => !line.includes('xxx')).slice(-7)).toEqual([
    'call other {"title":"Call 1"}',
    'tool_start',
    'call other {"title":"Call 2"}',
    outcome,
    outcome,
    'error flood',
    'run_end failed',
  ])
  expect(log.filter((line) => line.includes('almost xxx'))).toHaveLength(1)
  expect(log.filter((line) => line.startsWith('assistant: '))).toHaveLength(15)
})

test('what an agent says after its turn was stopped by a limit is not taken for the next turn', async () => {
  const { live } = await serve()
  await prompt(live, { do: 'flood', count: 40, size: 1024 * 1024 })
  await idle(live)
  await prompt(live, say('Then.'))
  expect((await idle(live)).slice(-3)).toEqual(['run_start', 'assistant: Then.', 'run_end completed'])
})

test('an agent that goes on after its turn was stopped by a limit is ended', async () => {
  const clock = new FakeClock()
  const { live } = await serve({ clock })
  await prompt(live, { do: 'flood', count: 20, size: 1024 * 1024 }, hang)
  await idle(live)
  await prompt(live, say('Again.'))
  await vi.waitFor(async () => {
    clock.advance(5000)
    expect((await logged(live)).at(-2)).toBe('assistant: Again.')
  }, patiently)
})

test('a session is closed at once while its agent does not answer to initialize', async () => {
  const { live, close } = await serve({ script: 'setInterval(() => 0, 1000)' })
  await prompt(live, say('Never.'))
  const begun = performance.now()
  await close()
  expect(performance.now() - begun).toBeLessThan(10_000)
})

test('answers to questions that nobody asked are dropped, and nothing is written about them', async () => {
  const written = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  cleanUps.push(() => written.mockRestore())
  const { live } = await serve()
  const answer = (id: unknown): string => `${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n`
  await prompt(live, { do: 'garbage', text: answer(999) + answer('word') + answer(null) }, say('Fine.'))
  expect((await idle(live)).slice(-2)).toEqual(['assistant: Fine.', 'run_end completed'])
  expect(written).not.toHaveBeenCalled()
})

test('output that is no message does not end a turn; a message without an end does, and the agent is started again', async () => {
  const { live } = await serve()
  await prompt(live, { do: 'garbage', text: 'debug: hello\n[1, 2]\n' }, say('Fine.'))
  expect((await idle(live)).slice(-2)).toEqual(['assistant: Fine.', 'run_end completed'])
  await prompt(live, call('1', { status: 'completed' }), { do: 'garbage', text: 'x', times: 17 * 1024 * 1024 }, wait)
  expect((await idle(live)).slice(-2)).toEqual([expect.stringMatching(continued), 'run_end completed'])
})

const nested = (levels: number): object => (levels === 0 ? {} : { inner: nested(levels - 1) })

test.each([
  ['nested deeply', nested(100)],
  ['many numbers', { numbers: Array.from({ length: 60_000 }, (_, index) => index) }],
  ['many short texts', { texts: Array.from({ length: 400 }, () => 'x'.repeat(900)) }],
  ['a long key', { ['x'.repeat(300_000)]: 1 }],
])('an input that does not fit into a line of the log is recorded as its JSON: %s', async (_, rawInput) => {
  const { live } = await serve()
  await prompt(live, say('I call.'), call('1', { rawInput, status: 'completed' }), say('Done.'))
  const expected = { title: 'Call 1', json: JSON.stringify(rawInput) }
  expect((await idle(live)).slice(-4)).toEqual([
    'tool_start',
    'result: "(no output)"',
    'assistant: Done.',
    'run_end completed',
  ])
  expect(await inputsOf(live)).toEqual([expected])
})

async function inputsOf({ session }: LiveSession): Promise<unknown[]> {
  const { messages } = await session.getContext()
  const blocks = messages.flatMap(({ message }) => message.content)
  return blocks.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.input] : []))
}

test('an input with one large text stays as it is', async () => {
  const { live } = await serve()
  const rawInput = { path: 'a.txt', content: 'x'.repeat(500_000), lines: { first: 1 } }
  await prompt(live, call('1', { rawInput, status: 'completed' }))
  await idle(live)
  expect(await inputsOf(live)).toEqual([{ title: 'Call 1', ...rawInput }])
})

test('a call and the long answer before it fit into lines of the log', async () => {
  const { live } = await serve()
  const parts = Array.from({ length: 140 }, (_, index) => (index % 2 ? say : think)('x'.repeat(900)))
  const rawInput = { texts: Array.from({ length: 68 }, () => 'x'.repeat(900)) }
  await prompt(live, ...parts, call('1', { rawInput, status: 'completed' }))
  expect((await idle(live)).at(-1)).toBe('run_end completed')
  expect(await inputsOf(live)).toEqual([{ title: 'Call 1', ...rawInput }])
})

test.each([
  ['many', 6000, 'x'],
  ['escaped', 600, '\u0001'.repeat(160)],
])('an answer in alternating parts becomes several entries: %s', async (_, count, text) => {
  const { live } = await serve()
  await prompt(live, ...Array.from({ length: count }, (__, index) => (index % 2 ? say : think)(text)))
  const log = await idle(live)
  expect(log.filter((line) => /^(assistant|thought): /.test(line))).toHaveLength(count)
  expect(log.at(-1)).toBe('run_end completed')
})

test.each([
  ['x', 1000],
  ['\u0001', 400],
])('a plan that is too long is cut (%j)', async (character, length) => {
  const { live } = await serve()
  const entries = Array.from({ length: 200 }, () => ({ content: character.repeat(length), status: 'pending' }))
  await prompt(live, { do: 'update', update: { sessionUpdate: 'plan', entries } })
  expect((await idle(live)).at(-1)).toBe('run_end completed')
  expect(live.session.plan).toHaveLength(100)
  expect(live.session.plan?.[0]?.text).toBe(`${character.repeat(299)}…`)
})

test('a command in a terminal ends with the server', async () => {
  // Commands of a session in memory end with it anyway.
  store = openFileStore({ folder: join(folder, 'sessions') })
  cleanUps.push(() => store.close())
  const { live, close } = await serve()
  const pidFile = join(folder, 'pid')
  await prompt(live, { do: 'run', command: `echo $$ > ${pidFile}; exec sleep 600` })
  const pid = await vi.waitFor(async () => Number((await readFile(pidFile, 'utf8')) || expect.fail()), patiently)
  cleanUps.push(() => isRunning(pid) && process.kill(pid, 'SIGKILL'))
  await close()
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 5000 })
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
