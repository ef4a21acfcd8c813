import { readStateValue } from '@tapetree/client'
import { limits, stateValueSchemas, type ServerFrame, type StateKey } from '@tapetree/client/protocol'
import { memoryStore, SessionError, SessionStore, type Session } from '@tapetree/session'
import { MemoryLogStore, type AppendResult } from '@tapetree/session/log-store'
import { changedPort } from '@tapetree/session/testing'
import type { LiveText } from '@tapetree/session/view'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Connection } from './connection.ts'
import type { DriverEvent, SessionDriver } from './driver.ts'
import { LiveSession, type LiveSessionOptions } from './live-session.ts'

afterEach(() => void vi.useRealTimers())

/** A session without a driver: only the test changes it. */
async function open(
  session?: Session,
  options?: LiveSessionOptions,
): Promise<{ live: LiveSession; tell: (event: DriverEvent) => void }> {
  const opened = session ?? (await memoryStore().create({ cwd: '/' }))
  const listeners = new Set<(event: DriverEvent) => void>()
  const driver: SessionDriver = {
    session: opened,
    isBusy: true,
    perform: async () => undefined,
    config: () => ({ mode: 'ask' }),
    slashCommands: () => [],
    subscribe: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    canResume: async () => false,
    close: () => opened.close(),
  }
  const live = await LiveSession.open(driver, options)
  onTestFinished(() => live.close())
  return { live, tell: (event) => listeners.forEach((listener) => listener(event)) }
}

class Screen {
  readonly buffered = 0
  readonly frames: ServerFrame[] = []
  readonly bytes: number[] = []
  connection: Connection | undefined

  static async attach(live: LiveSession, id = 'screen'): Promise<Screen> {
    const screen = new Screen()
    const request = { client: { id } }
    const connection = live.attach(request, screen, await live.prepare(request))
    if (connection === 'not-prepared') throw new Error(connection)
    screen.connection = connection
    return screen
  }

  send(frame: Buffer): void {
    this.frames.push(JSON.parse(frame.toString()) as ServerFrame)
    this.bytes.push(frame.length)
  }

  close(): void {}

  /** The latest value received, and the size of its frame. */
  told(key: StateKey): { value: unknown; bytes: number } | undefined {
    const index = this.frames.findLastIndex((frame) => frame.type === 'state' && frame.data.key === key)
    const frame = this.frames[index]
    return frame?.type === 'state' ? { value: frame.data.value, bytes: this.bytes[index] ?? 0 } : undefined
  }
}

describe('the storage', () => {
  /** A session whose storage answers as told from now on. */
  async function openOn(
    answer: (send: () => AppendResult) => AppendResult | Promise<AppendResult>,
    lost?: AbortSignal,
  ) {
    const port = changedPort(new MemoryLogStore(), {
      log: (log) => ({
        append: (lines, options) => answer(() => log.append(lines, options) as AppendResult),
        ...(lost && { lost }),
      }),
    })
    return new SessionStore(port).create({ cwd: '/' })
  }

  test('is what a session waits for while it does not answer', async () => {
    let failures = 2
    const session = await openOn((send) =>
      failures-- > 0
        ? { type: 'failed', cause: new Error('connect ECONNREFUSED 10.0.0.7'), final: false, isPassing: true }
        : send(),
    )
    const { live } = await open(session)
    const screen = await Screen.attach(live)
    await session.appendMessage('user', 'hello')
    await vi.waitFor(() => expect(screen.told('run')?.value).toMatchObject({ waiting_for: null }))
    const waits = screen.frames.flatMap((frame) =>
      frame.type === 'state' && frame.data.key === 'run' ? frame.data.value : [],
    )
    expect(waits).toMatchObject([{ waiting_for: { type: 'storage', run_id: null } }, { waiting_for: null }])
    expect(JSON.stringify(waits)).not.toContain('10.0.0.7')
  })

  test('tells the server when another process has taken the session over', async () => {
    const lost = new AbortController()
    const session = await openOn((send) => send(), lost.signal)
    const onBroken = vi.fn<() => void>()
    await open(session, { onBroken })
    lost.abort(new SessionError('fenced', 'Another writer has taken over this session.'))
    expect(onBroken).toHaveBeenCalledOnce()
  })
})

describe('the plan', () => {
  const items = [
    { text: 'Look around', status: 'completed' as const },
    { text: 'Plant a tree', status: 'in_progress' as const },
  ]

  test('is state: attached clients receive changes, and late ones have the current value', async () => {
    const { live } = await open()
    const early = await Screen.attach(live, 'early')
    await live.session.append({ type: 'plan', plan: { items } })
    await vi.waitFor(() => expect(early.told('plan')?.value).toEqual(items))
    const late = await Screen.attach(live, 'late')
    expect(late.frames[0]).toMatchObject({ type: 'attached', data: { state: { plan: { value: items } } } })
  })

  test('is there after a restart', async () => {
    const store = memoryStore()
    const before = await store.create({ cwd: '/' })
    await before.append({ type: 'plan', plan: { items } })
    await before.close()
    const { live } = await open(await store.open(before.id))
    expect(live.board.get('plan')).toEqual(items)
  })
})

describe('what waits', () => {
  test('fits into a frame with a thousand long messages: the first ones, shortened, and the total', async () => {
    const session = await memoryStore().create({ cwd: '/' })
    for (let index = 0; index < 1000; index++) {
      await session.submit(`${index} ${'🌳'.repeat(2500)}`, { delivery: index % 10 === 0 ? 'steer' : 'follow-up' })
    }
    const { live } = await open(session)
    const screen = await Screen.attach(live)
    await session.submit('one more', { delivery: 'follow-up' })
    await vi.waitFor(() => expect(screen.told('queue')?.value).toMatchObject({ queue_length: 901, total: 1001 }))
    const { value, bytes } = screen.told('queue') ?? { bytes: Infinity }
    expect(bytes).toBeLessThan(limits.maxFrameBytes)
    const { messages } = stateValueSchemas.queue.parse(value)
    expect(messages.length).toBeGreaterThan(20)
    expect(messages.map(({ id }) => id)).toEqual(session.inbox.messages.slice(0, messages.length).map(({ id }) => id))
    for (const [index, { message, truncated }] of messages.entries()) {
      expect({ truncated, message }).toEqual({
        truncated: true,
        message: session.inbox.messages[index]?.message.slice(0, message.length),
      })
      expect(message.length).toBeGreaterThan(490)
      expect(message.isWellFormed()).toBe(true)
    }
  })

  test('is sent completely if it fits, including long text', async () => {
    const { live } = await open()
    await live.session.submit('long '.repeat(2000), { delivery: 'follow-up' })
    const value = readStateValue('queue', live.board.get('queue'))
    expect(value?.messages).toEqual(live.session.inbox.messages)
    expect(value).toMatchObject({ queueLength: 1, total: 1 })
  })

  test('of requests omits an input that is too long', async () => {
    const { live } = await open()
    const screen = await Screen.attach(live)
    const base = {
      tool: 'write',
      title: 'May I?',
      options: [{ optionId: 'yes', label: 'Yes', kind: 'allow_once' as const }],
    }
    const ask = (requestId: string, content: string): Promise<unknown> =>
      live.session.append({
        type: 'permission_request',
        permissionRequest: { ...base, requestId, runId: 'r', callId: requestId, input: { content } },
      })
    await ask('short', 'a')
    await vi.waitFor(() => expect(screen.told('permissions')?.value).toMatchObject([{ input: { content: 'a' } }]))
    for (const requestId of ['long', 'longer']) await ask(requestId, 'b'.repeat(100_000))
    await vi.waitFor(() => expect(screen.told('permissions')?.value).toHaveLength(3))
    expect(screen.told('permissions')?.bytes).toBeLessThan(limits.maxFrameBytes)
    const questions = readStateValue('permissions', live.board.get('permissions'))
    expect(questions).toEqual(
      live.session.pendingPermissions.map(({ input: _, ...question }) => ({ ...question, truncated: true })),
    )
  })
})

describe('text in flight', () => {
  const text = (off: number): LiveText => ({ type: 'delta', item: 'i', part: 0, kind: 'text', off, text: 'a' })
  const offsets = ({ frames }: Screen): number[] =>
    frames.flatMap((frame) => (frame.type === 'delta' ? [frame.data.off] : []))

  test('is sent every 33 ms, and to hidden clients every 100, completely', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { live, tell } = await open()
    const visible = await Screen.attach(live, 'visible')
    const hidden = await Screen.attach(live, 'hidden')
    live.present(hidden.connection as Connection, { visibility: 'hidden', typing: false })
    // The presence state was sent.
    await Promise.resolve()
    for (let off = 0; off < 9; off++) {
      tell(text(off))
      vi.advanceTimersByTime(33)
    }
    expect(offsets(visible)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
    expect(offsets(hidden)).toEqual([0, 3, 6])
    const said = ({ frames }: Screen): string =>
      frames.map((frame) => (frame.type === 'delta' ? frame.data.text : '')).join('')
    expect(said(hidden)).toBe(said(visible))
    tell(text(9))
    live.present(hidden.connection as Connection, { visibility: 'visible', typing: false })
    expect(offsets(hidden)).toEqual([0, 3, 6, 9])
  })
})
