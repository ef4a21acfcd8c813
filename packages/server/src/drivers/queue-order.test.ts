import { AgentSession, onlyModel, allowAll, type RunSettings } from '@tapetree/agent'
import { FakeClock, script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { AgentDriver } from './agent-driver.ts'
import type { Sink } from '../live/connection.ts'
import { LiveSession } from '../live/live-session.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Notice {
  message_id?: string | null
  action?: string
  queue_length?: number
}

/** The members of a frame or a line that are checked. */
interface Told {
  type: string
  data?: Notice
  message?: { role?: string; submission_id?: string }
}

interface Watched {
  live: LiveSession
  clock: FakeClock
  /** The queue notices, with `<n>` for the id of a message, and each user message that is a line. */
  told: string[]
  add: (message: string) => Promise<string>
  perform: (op: string, args: object) => Promise<void>
}

async function watch(says: ScriptBuilder, settings: Partial<RunSettings>): Promise<Watched> {
  const clock = new FakeClock()
  const model = scriptedModel(says)
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [],
    gate: () => allowAll,
    hasSubagents: false,
    settings: () => settings,
    cwd: '/',
    clock,
  })
  const live = await LiveSession.open(new AgentDriver({ agent }), { tickMs: 1 })
  cleanUps.push(() => live.close())
  const told: string[] = []
  const names = new Map<unknown, string>([[null, 'all']])
  const nameOf = (id: unknown): string => {
    const name = names.get(id) ?? `<${names.size}>`
    names.set(id, name)
    return name
  }
  const tell = ({ type, data = {}, message }: Told): void => {
    if (message?.role === 'user') {
      told.push(message.submission_id === undefined ? 'prompt' : `prompt ${nameOf(message.submission_id)}`)
    }
    if (!type.startsWith('queue_')) return
    const { message_id: id, action, queue_length: length } = data
    const name = nameOf(id)
    told.push(action === undefined ? `${type} ${name}` : `${type} ${action} ${name}, ${length} left`)
  }
  const sink: Sink = {
    buffered: 0,
    send: (frame) => tell(JSON.parse(frame.toString()) as Told),
    close: () => undefined,
  }
  const request = { client: { id: 'screen' } }
  live.attach(request, sink, await live.prepare(request))
  let count = 0
  const perform = async (op: string, args: object): Promise<void> => {
    expect(await live.perform(`c${++count}`, 'me', { op, args })).toMatchObject({ ok: true })
  }
  const add = async (message: string): Promise<string> => {
    const { result } = await live.perform(`c${++count}`, 'me', { op: 'queue.add', args: { message } })
    return (result as { id: string }).id
  }
  return { live, clock, told, add, perform }
}

const idle = ({ live }: Watched): Promise<void> => vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)

describe('the queue reports', () => {
  test('that a message is about to be sent, waits, has left the queue, and is sent', async () => {
    const watched = await watch(script().text('one').step().text('two'), { followUpDelayMs: 2000 })
    const { told, clock, add } = watched
    await add('first')
    await add('second')
    expect(await clock.waited()).toBe(2000)
    await vi.waitFor(() => expect(told).toHaveLength(3), patiently)
    expect(told).toEqual([
      'queue_updated added <1>, 1 left',
      'queue_message_sending <1>',
      'queue_updated added <2>, 2 left',
    ])
    clock.advance(2000)
    await vi.waitFor(() => expect(told.at(-1)).toBe('queue_message_sending <2>'), patiently)
    expect(told.slice(3, -1)).toEqual(['queue_updated removed <1>, 1 left', 'prompt <1>', 'queue_message_sent <1>'])
    await clock.waited()
    clock.advance(2000)
    await idle(watched)
    await vi.waitFor(() => expect(told).toHaveLength(10), patiently)
    expect(told.slice(-3)).toEqual(['queue_updated removed <2>, 0 left', 'prompt <2>', 'queue_message_sent <2>'])
  })

  test('no delay if none is configured', async () => {
    const watched = await watch(script().text('one'), { followUpDelayMs: 0 })
    await watched.add('first')
    await idle(watched)
    await vi.waitFor(() => expect(watched.told).toHaveLength(5), patiently)
    expect(watched.told).toEqual([
      'queue_updated added <1>, 1 left',
      'queue_message_sending <1>',
      'queue_updated removed <1>, 0 left',
      'prompt <1>',
      'queue_message_sent <1>',
    ])
    expect(watched.clock.waits).toEqual([])
  })

  test('that a message was removed while it was announced, and it is not sent', async () => {
    const watched = await watch(script().text('one'), { followUpDelayMs: 2000 })
    const { told, clock, add, perform } = watched
    const id = await add('first')
    await clock.waited()
    await perform('queue.remove', { id })
    clock.advance(2000)
    await idle(watched)
    expect(told).toEqual([
      'queue_updated added <1>, 1 left',
      'queue_message_sending <1>',
      'queue_updated removed <1>, 0 left',
    ])
  })

  test('only the queued message until it is released, if automatic delivery is off', async () => {
    const watched = await watch(script().text('one').step().text('two').step().text('three'), { sendsFollowUps: false })
    const { told, add, perform, live } = watched
    await add('first')
    await add('second')
    expect(live.driver.isBusy).toBe(false)
    expect(told).toEqual(['queue_updated added <1>, 1 left', 'queue_updated added <2>, 2 left'])
    expect(live.board.get('queue')).toMatchObject({ queue_length: 2, hold: null })
    await perform('prompt', { text: 'a person speaks' })
    await idle(watched)
    await vi.waitFor(() => expect(told).toHaveLength(11), patiently)
    expect(live.session.inbox.messages).toEqual([])
    expect(live.session.totals.turns).toBe(3)
  })

  test('that one message was removed, and that all were cleared, without an id', async () => {
    const { told, add, perform } = await watch(script().text('one'), { sendsFollowUps: false })
    const id = await add('first')
    await add('second')
    await add('third')
    await perform('queue.remove', { id })
    await perform('queue.clear', {})
    await vi.waitFor(() => expect(told).toHaveLength(5), patiently)
    expect(told.slice(3)).toEqual(['queue_updated removed <1>, 2 left', 'queue_updated cleared all, 0 left'])
  })

  test('nothing about steers, queued or delivered', async () => {
    const reached = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const says = script()
      .text('one')
      .do(async () => {
        reached.resolve()
        await goOn.promise
      })
      .step()
      .text('two')
    const watched = await watch(says, { followUpDelayMs: 2000 })
    const { told, perform, live } = watched
    await perform('prompt', { text: 'go' })
    await reached.promise
    await perform('queue.add', { message: 'look left', delivery: 'steer' })
    expect(live.board.get('queue')).toMatchObject({ queue_length: 0, total: 1 })
    goOn.resolve()
    await idle(watched)
    await vi.waitFor(() => expect(told).toHaveLength(2), patiently)
    expect(told).toEqual(['prompt', 'prompt <1>'])
    expect(watched.clock.waits).toEqual([])
  })

  test('that a message has left the queue when it becomes a steer, and nothing more when it is delivered', async () => {
    const reached = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const says = script()
      .text('one')
      .do(async () => {
        reached.resolve()
        await goOn.promise
      })
      .step()
      .text('two')
    const watched = await watch(says, {})
    const { told, perform, add } = watched
    await perform('prompt', { text: 'go' })
    await reached.promise
    const id = await add('look left')
    await perform('queue.edit', { id, delivery: 'steer' })
    goOn.resolve()
    await idle(watched)
    await vi.waitFor(() => expect(told).toHaveLength(4), patiently)
    expect(told).toEqual([
      'prompt',
      'queue_updated added <1>, 1 left',
      'queue_updated removed <1>, 0 left',
      'prompt <1>',
    ])
  })
})
