import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { FakeClock, script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore, text, type SessionStore } from '@tapetree/session'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { AgentDriver } from '../drivers/agent-driver.ts'
import type { Sink } from './connection.ts'
import { LiveSessions, type LiveSessionsOptions } from './live-sessions.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Records each step of opening and closing a driver. */
interface Place {
  sessions: LiveSessions
  store: SessionStore
  clock: FakeClock
  steps: string[]
  /** Blocks a step until it is resolved. */
  gates: Map<string, Promise<void>>
}

function place(options: Partial<LiveSessionsOptions> & { says?: ScriptBuilder } = {}): Place {
  const { says = script(), ...rest } = options
  const store = memoryStore()
  const clock = new FakeClock()
  const steps: string[] = []
  const gates = new Map<string, Promise<void>>()
  const names: string[] = []
  const step = async (name: string): Promise<void> => {
    await gates.get(name)
    steps.push(name)
  }
  const sessions = new LiveSessions({
    store,
    clock,
    idleMs: 60_000,
    create: async ({ name = '' }) => {
      await using session = await store.create({ name })
      names.push(session.id)
      return session.id
    },
    openDriver: async (sessionId) => {
      const name = names.indexOf(sessionId) + 1
      await step(`open ${name}`)
      const model = scriptedModel(says)
      const agent = await AgentSession.open({
        store,
        sessionId,
        models: onlyModel(model),
        tools: () => [model.tool('act')],
        gate: () => allowAll,
        hasSubagents: false,
        cwd: '/',
      })
      return new AgentDriver({ agent, close: () => step(`close ${name}`) })
    },
    ...rest,
  })
  cleanUps.push(() => sessions.close())
  return { sessions, store, clock, steps, gates }
}

const deaf: Sink = { buffered: 0, send: () => undefined, close: () => undefined }

/** Lets the idle check run once, after this long. */
async function idleFor(clock: FakeClock, ms: number): Promise<void> {
  for (let waited = 0; waited < ms;) waited += await clock.skip()
  await clock.waited()
}

describe('live sessions', () => {
  test('two concurrent requests for a session get the same one', async () => {
    const { sessions, steps } = place()
    const id = await sessions.create({})
    const [first, second] = await Promise.all([sessions.get(id), sessions.get(id)])
    expect(first).toBe(second)
    expect(await sessions.get(id)).toBe(first)
    expect(steps).toEqual(['open 1'])
  })

  test('two concurrent requests for one that needs room get the same one', async () => {
    const { sessions, clock, steps } = place({ maxLive: 1 })
    const [one, two] = [await sessions.create({}), await sessions.create({})]
    await sessions.get(one)
    clock.advance(5000)
    const [first, second] = await Promise.all([sessions.get(two), sessions.get(two)])
    expect(first).toBe(second)
    expect(steps).toEqual(['open 1', 'close 1', 'open 2'])
  })

  test('one that could not be opened is retried the next time', async () => {
    let tries = 0
    const store = memoryStore()
    const { sessions } = place({
      store,
      openDriver: () => {
        tries++
        return Promise.reject(new Error('no driver today'))
      },
    })
    for (const _ of [1, 2]) await expect(sessions.get('s')).rejects.toThrow('no driver today')
    expect(tries).toBe(2)
    expect(sessions.live.size).toBe(0)
  })

  test('one that does not exist is not found, and leaves nothing behind', async () => {
    const { sessions } = place()
    await expect(sessions.get('0190a5b0-0000-7000-8000-000000000000')).rejects.toMatchObject({
      code: 'session-not-found',
    })
    expect(sessions.live.size).toBe(0)
  })

  test('an idle one without observers is closed after a while, and can be reopened', async () => {
    const { sessions, clock, steps } = place()
    const id = await sessions.create({})
    const first = await sessions.get(id)
    await idleFor(clock, 54_000)
    expect(sessions.live.size).toBe(1)
    await idleFor(clock, 6000)
    await vi.waitFor(() => expect(sessions.live.size).toBe(0), patiently)
    expect(await sessions.get(id)).not.toBe(first)
    expect(steps).toEqual(['open 1', 'close 1', 'open 1'])
  })

  test('a request for one that is closing waits, and gets a working one', async () => {
    const { sessions, clock, steps, gates } = place()
    const id = await sessions.create({})
    const first = await sessions.get(id)
    const go = Promise.withResolvers<void>()
    gates.set('close 1', go.promise)
    for (let waited = 0; waited < 60_000;) waited += await clock.skip()
    await vi.waitFor(() => expect(sessions.live.size).toBe(0), patiently)
    const asked = sessions.get(id)
    expect(steps).toEqual(['open 1'])
    go.resolve()
    const second = await asked
    expect(second).not.toBe(first)
    expect(steps).toEqual(['open 1', 'close 1', 'open 1'])
    expect(await second.perform('c', 'me', { op: 'rename', args: { name: 'works' } })).toMatchObject({ ok: true })
  })

  test('one that was just requested is not idle yet', async () => {
    const { sessions, clock } = place()
    const id = await sessions.create({})
    const first = await sessions.get(id)
    await idleFor(clock, 48_000)
    expect(await sessions.get(id)).toBe(first)
    await idleFor(clock, 48_000)
    expect(await sessions.get(id)).toBe(first)
  })

  test('one with observers stays, however long nothing happens', async () => {
    const { sessions, clock } = place()
    const id = await sessions.create({})
    const live = await sessions.get(id)
    const request = { client: { id: 'screen' } }
    const connection = live.attach(request, deaf, await live.prepare(request))
    await idleFor(clock, 600_000)
    expect(sessions.live.size).toBe(1)
    if (connection !== 'not-prepared') live.detach(connection)
    await idleFor(clock, 66_000)
    await vi.waitFor(() => expect(sessions.live.size).toBe(0), patiently)
  })

  test('work continues without observers, and the session stays until it is done', async () => {
    const go = Promise.withResolvers<void>()
    const says = script()
      .do(() => go.promise)
      .toolCall('1', 'act')
      .step()
      .text('done')
    const { sessions, store, clock } = place({ says })
    const id = await sessions.create({})
    const live = await sessions.get(id)
    await live.perform('c', 'me', { op: 'prompt', args: { text: 'work' } })
    await idleFor(clock, 600_000)
    expect(sessions.live.size).toBe(1)
    go.resolve()
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
    await idleFor(clock, 66_000)
    await vi.waitFor(() => expect(sessions.live.size).toBe(0), patiently)
    expect((await store.list()).sessions).toMatchObject([{ id, status: 'idle', messageCount: 4 }])
  })

  test('draining rejects commands that begin work, permits all others, and ends with the last run', async () => {
    const go = Promise.withResolvers<void>()
    const { sessions, clock } = place({
      says: script()
        .do(() => go.promise)
        .text('done'),
    })
    const [running, idle] = [
      await sessions.get(await sessions.create({})),
      await sessions.get(await sessions.create({})),
    ]
    await running.perform('begun', 'me', { op: 'prompt', args: { text: 'work' } })
    const drained = sessions.drain(new AbortController().signal)
    await clock.waited()
    const begins: [string, object][] = [
      ['prompt', { text: 'a' }],
      ['steer', { text: 'a' }],
      ['follow_up', { text: 'a' }],
      ['retry', {}],
      ['resume', {}],
      ['compact', {}],
      ['bash', { command: 'true' }],
      ['queue.add', { message: 'a' }],
      ['queue.release', {}],
    ]
    for (const live of [running, idle]) {
      for (const [op, args] of begins) {
        const { error } = await live.perform(`c-${op}`, 'me', { op, args })
        expect([op, error?.status, error?.type]).toEqual([op, 503, 'draining'])
      }
      expect(await live.perform('c-rename', 'me', { op: 'rename', args: { name: 'new' } })).toMatchObject({ ok: true })
    }
    await expect(sessions.reserve()).rejects.toMatchObject({ problem: { type: 'draining' } })
    // A command that took effect before is answered as before.
    const again = await running.perform('begun', 'me', { op: 'prompt', args: { text: 'work' } })
    expect(again).toMatchObject({ ok: true, dup: true })
    go.resolve()
    await vi.waitFor(() => expect(running.driver.isBusy).toBe(false), patiently)
    await clock.skip()
    await drained
  })

  test('draining ends when its time is over, although a run is at work', async () => {
    const { sessions } = place({ says: script().do(() => new Promise(() => undefined)) })
    const live = await sessions.get(await sessions.create({}))
    await live.perform('c', 'me', { op: 'prompt', args: { text: 'work' } })
    const late = new AbortController()
    const drained = sessions.drain(late.signal)
    late.abort()
    await drained
    expect(live.driver.isBusy).toBe(true)
  })

  test('a long command without a run is work too', async () => {
    const go = Promise.withResolvers<void>()
    const { sessions, clock } = place({
      says: script()
        .text('hello')
        .step()
        .do(() => go.promise)
        .text('a summary'),
    })
    const live = await sessions.get(await sessions.create({}))
    await live.perform('a', 'me', { op: 'prompt', args: { text: 'hi' } })
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
    const branched = live.perform('b', 'me', { op: 'branch', args: { entry_id: null, summarise: true } })
    await idleFor(clock, 600_000)
    expect(sessions.live.size).toBe(1)
    go.resolve()
    expect(await branched).toMatchObject({ ok: true })
    await idleFor(clock, 66_000)
    await vi.waitFor(() => expect(sessions.live.size).toBe(0), patiently)
  })

  test('the number of live ones is limited: the longest idle one is closed, and if none is idle the request is rejected', async () => {
    const { sessions, clock, steps } = place({ maxLive: 2 })
    const ids = [await sessions.create({}), await sessions.create({}), await sessions.create({})]
    const [one = '', two = '', three = ''] = ids
    await sessions.get(one)
    await sessions.get(two)
    clock.advance(5000)
    await sessions.get(one)
    await expect(sessions.get(three)).resolves.toBeDefined()
    expect(steps).toEqual(['open 1', 'open 2', 'close 2', 'open 3'])
    const refused = sessions.get(two)
    await expect(refused).rejects.toMatchObject({ problem: { status: 503, type: 'too-many-sessions' } })
    expect(sessions.live.size).toBe(2)
  })

  test('closing during an open closes that one too', async () => {
    const { sessions, steps, gates } = place()
    const id = await sessions.create({})
    const go = Promise.withResolvers<void>()
    gates.set('open 1', go.promise)
    const opening = sessions.get(id)
    const closed = sessions.close()
    await expect(sessions.get(id)).rejects.toMatchObject({ problem: { status: 503, type: 'shutting-down' } })
    go.resolve()
    await opening
    await closed
    expect(steps).toEqual(['open 1', 'close 1'])
  })

  test('closing waits for what is under way in the store, and not for long if the store does not answer', async () => {
    const { sessions, clock } = place()
    const answers = Promise.withResolvers<void>()
    const ended: string[] = []
    void sessions.during(() => answers.promise)
    void sessions.close().then(() => ended.push('closed'))
    await vi.waitFor(() => expect(clock.waits).toContain(5000), patiently)
    expect(ended).toEqual([])
    clock.advance(5000)
    await vi.waitFor(() => expect(ended).toEqual(['closed']), patiently)
    void sessions.during(() => answers.promise.then(() => ended.push('answered')))
    answers.resolve()
    await sessions.close()
    expect(ended).toEqual(['closed', 'answered'])
  })

  test('releasing one that is being opened leaves nothing open', async () => {
    const { sessions, steps, gates } = place()
    const id = await sessions.create({})
    const go = Promise.withResolvers<void>()
    gates.set('open 1', go.promise)
    void sessions.get(id)
    const released = sessions.release(id)
    go.resolve()
    await released
    expect(steps).toEqual(['open 1', 'close 1'])
    expect(sessions.live.size).toBe(0)
  })

  test('one that cannot be closed cleanly is reported, and the others are closed', async () => {
    const problems: unknown[] = []
    const { sessions, clock, gates } = place({ onProblem: ({ error }) => problems.push(error) })
    const [one, two] = [await sessions.create({}), await sessions.create({})]
    await sessions.get(one)
    await sessions.get(two)
    const broken = Promise.reject(new Error('the driver hangs on'))
    broken.catch(() => undefined)
    gates.set('close 1', broken)
    await idleFor(clock, 66_000)
    await vi.waitFor(() => expect(sessions.live.size).toBe(0), patiently)
    expect(problems).toEqual([new Error('the driver hangs on')])
  })

  test('notify listeners of changes in the list, and observers of each session that becomes live', async () => {
    const seen: string[] = []
    const { sessions } = place({
      observers: [
        (live) => {
          seen.push(`live ${live.session.name}`)
          return () => seen.push('closed')
        },
      ],
    })
    sessions.onChange(() => seen.push('changed'))
    const id = await sessions.create({ name: 'one' })
    const live = await sessions.get(id)
    await live.perform('c', 'me', { op: 'rename', args: { name: 'other' } })
    await sessions.release(id)
    expect(seen).toEqual(['changed', 'live one', 'changed', 'closed'])
  })
})

describe('a session that the embedding program runs itself', () => {
  test('is busy for its screens, which wait for its run, cancel it, and never take it for an interrupted one', async () => {
    const { sessions, store } = place({ says: script().text('from the server') })
    const id = await sessions.create({})
    const asked = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const says = script().do(() => {
      asked.resolve()
      return go.promise
    })
    const model = scriptedModel(says.text('from the program').step().text('and again'))
    const agent = await AgentSession.open({
      store,
      sessionId: id,
      models: onlyModel(model),
      gate: () => allowAll,
      hasSubagents: false,
    })
    cleanUps.push(() => agent.close())
    const outcome = await agent.prompt('hello')
    await asked.promise
    const live = await sessions.get(id)
    const perform = (op: string, args: object): Promise<unknown> =>
      live.perform(`c-${op}`, 'screen', { op, args }).then(({ ok, result, error }) => (ok ? result : error?.type))
    expect({ isBusy: live.driver.isBusy, canResume: await live.driver.canResume() }).toEqual({
      isBusy: true,
      canResume: false,
    })
    expect(await perform('resume', {})).toEqual({ run_id: outcome.runId })
    expect(await perform('retry', {})).toBe('session-busy')
    expect(await perform('prompt', { text: 'me too' })).toMatchObject({ outcome: 'queued', run_id: outcome.runId })
    await sessions.release(id)
    expect(agent.state().isBusy).toBe(true)
    go.resolve()
    if (outcome.type === 'started') expect(await outcome.run.done).toMatchObject({ outcome: 'completed' })
    const { messages } = await agent.session.getContext()
    expect(messages.map(({ message }) => message.role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  })
})

test('a cancelled compaction is rejected as such, and a prompt that arrived meanwhile is delivered', async () => {
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const says = script().do(() => {
    asked.resolve()
    return go.promise
  })
  const { sessions, store } = place({ says: says.text('a summary').step().text('hello') })
  const id = await sessions.create({})
  await using session = await store.open(id)
  for (let turn = 0; turn < 4; turn++) {
    await session.appendMessage('user', [text('Many words. '.repeat(5000))])
    await session.appendMessage('assistant', [text('Many words. '.repeat(5000))])
  }
  const live = await sessions.get(id)
  const compacting = live.perform('c-1', 'screen', { op: 'compact', args: {} })
  await asked.promise
  const prompted = await live.perform('c-2', 'screen', { op: 'prompt', args: { text: 'hi' } })
  expect(prompted).toMatchObject({ ok: true, result: { outcome: 'queued', run_id: null } })
  const cancelling = live.perform('c-3', 'other screen', { op: 'cancel', args: {} })
  go.resolve()
  expect(await compacting).toMatchObject({ ok: false, error: { type: 'cancelled', status: 409 } })
  expect(await cancelling).toMatchObject({ ok: true })
  await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
  const { messages } = await session.getContext()
  expect(messages.slice(-2).map(({ message }) => message.role)).toEqual(['user', 'assistant'])
})
