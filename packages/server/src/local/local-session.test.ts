import { AgentSession, onlyModel, allowAll, type Gate } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import type { Requests } from '@tapetree/agent/permissions'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { ProblemError, RemoteSession, type SessionChange, type SessionHandle } from '@tapetree/client'
import { readFrame } from '@tapetree/client/protocol'
import { memoryStore } from '@tapetree/session'
import type { Transcript } from '@tapetree/session/view'
import { afterEach, describe, expect, expectTypeOf, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { askingGate } from '../http/testing/asking-gate.ts'
import { TestServer } from '../testing/running-server.ts'
import { AgentDriver } from '../drivers/agent-driver.ts'
import type { Sink } from '../live/connection.ts'
import { LiveSessions } from '../live/live-sessions.ts'
import { LocalSession } from './local-session.ts'
import { ReadOnlySession } from './local-session-read-only.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface House {
  sessions: LiveSessions
  sessionId: string
  open: (options?: { window?: number; id?: string }) => Promise<SessionHandle>
}

async function build(
  kind: 'local' | 'remote',
  says: ScriptBuilder,
  gate: (requests: Requests) => Gate = () => allowAll,
): Promise<House> {
  const sessions = sessionsOf(says, gate)
  const sessionId = await sessions.create({})
  if (kind === 'local') {
    cleanUps.push(() => sessions.close())
    const open: House['open'] = async ({ id, window } = {}) => {
      const client = id === undefined ? {} : { client: { id } }
      return LocalSession.open({ sessions, sessionId, ...client, ...(window !== undefined && { window }) })
    }
    return { sessions, sessionId, open }
  }
  const server = await TestServer.start(() => ({ sessions }))
  cleanUps.push(() => server.close())
  const token = await server.token('drive')
  const open: House['open'] = async ({ id, window } = {}) => {
    const handle = await RemoteSession.open({
      baseUrl: server.server.url,
      token,
      sessionId,
      connect: (url, protocols) => new WebSocket(url, protocols),
      ...(id !== undefined && { client: { id } }),
      ...(window !== undefined && { window }),
    })
    cleanUps.push(() => handle.close())
    await handle.ready
    return handle
  }
  return { sessions, sessionId, open }
}

function sessionsOf(says: ScriptBuilder, gate: (requests: Requests) => Gate): LiveSessions {
  const store = memoryStore()
  return new LiveSessions({
    store,
    tickMs: 1,
    openDriver: async (sessionId) => {
      const model = scriptedModel(says, { clock: systemClock })
      const tools = () => [model.tool('act')]
      const agent = await AgentSession.open({
        store,
        sessionId,
        models: onlyModel(model),
        tools,
        gate,
        hasSubagents: false,
        cwd: '/',
      })
      return new AgentDriver({ agent })
    },
    create: async () => {
      await using session = await store.create({ cwd: '/' })
      return session.id
    },
  })
}

/** Resolves at the first change after which the condition holds. */
async function until(handle: SessionHandle, holds: () => boolean): Promise<void> {
  if (holds()) return
  await new Promise<void>((resolve) => {
    const stop = handle.subscribe(() => {
      if (!holds()) return
      stop()
      resolve()
    })
  })
}

async function idle(handle: SessionHandle): Promise<void> {
  await until(handle, () => handle.transcript.run === null && handle.state('run')?.isBusy === false)
}

function wordsIn({ path }: Transcript): string[] {
  return [...path.items].flatMap((item) => {
    if (item.type === 'user')
      return item.content.flatMap((block) => (block.type === 'text' ? [block.text.content] : []))
    return item.type === 'assistant' ? item.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : []
  })
}

const flying = ({ inFlight }: Transcript): string =>
  [...inFlight.values()].flatMap(({ parts }) => [...parts.values()].map(({ text }) => text)).join('')

describe.each(['local', 'remote'] as const)('a %s session', (kind) => {
  test('shows text in flight to a late client, and the same transcript in the end', async () => {
    const rest = Promise.withResolvers<void>()
    const says = script()
      .text('A long ', 'answer ')
      .do(() => rest.promise)
      .text('ends.')
    const { open } = await build(kind, says)
    const early = await open()
    await early.prompt('go')
    await until(early, () => flying(early.transcript) === 'A long answer ')
    const late = await open()
    await until(late, () => flying(late.transcript) === 'A long answer ')
    rest.resolve()
    await Promise.all([idle(early), idle(late)])
    expect(wordsIn(late.transcript)).toEqual(['go', 'A long answer ends.'])
    expect(wordsIn(early.transcript)).toEqual(wordsIn(late.transcript))
    expect(late.status).toEqual({ type: 'attached' })
  })

  test('runs a command once, and returns its result or the reason for its rejection', async () => {
    const { open } = await build(kind, script().text('Hello.'))
    const handle = await open()
    const seen: string[] = []
    handle.subscribe((change) => seen.push(change.type === 'state' ? change.key : change.type))
    expect(await handle.prompt('hi')).toMatchObject({ outcome: 'started' })
    await idle(handle)
    expect(wordsIn(handle.transcript)).toEqual(['hi', 'Hello.'])
    expect(seen).toEqual(expect.arrayContaining(['transcript', 'run', 'usage']))
    expect(handle.state('usage')).toMatchObject({ turns: 1 })
    expect(handle.state('presence')).toHaveLength(1)
    await expect(handle.run('cancel', { run_id: 'another' })).rejects.toMatchObject({ type: 'run-not-current' })
    await expect(handle.run('rename', {} as never)).rejects.toBeInstanceOf(ProblemError)
    await expect(handle.run('rename', { name: 'x' }, { ifHead: 1 })).rejects.toMatchObject({ type: 'head-moved' })
  })

  test('shows the queue and its notices to every screen', async () => {
    const rest = Promise.withResolvers<void>()
    const says = script()
      .do(() => rest.promise)
      .text('One.')
      .step()
      .text('Two.')
    const { open } = await build(kind, says)
    const [first, second] = [await open(), await open()]
    const notices: string[] = []
    second.subscribe((change: SessionChange) => {
      if (change.type === 'notice') notices.push(change.notice.type)
    })
    await first.prompt('one')
    await first.followUp('two')
    await until(second, () => second.state('queue')?.messages[0]?.message === 'two')
    const [waiting] = second.state('queue')?.messages ?? []
    await second.changeQueue('queue.edit', { id: waiting?.id ?? '', message: 'two, please' })
    await until(first, () => first.state('queue')?.messages[0]?.message === 'two, please')
    rest.resolve()
    await until(second, () => wordsIn(second.transcript).at(-1) === 'Two.')
    expect(wordsIn(second.transcript)).toEqual(['one', 'One.', 'two, please', 'Two.'])
    expect(notices).toContain('queue_updated')
  })

  test('sends requests to all screens, and the first answer wins', async () => {
    const says = script().toolCall('a', 'act').step().text('Done.')
    const { open } = await build(kind, says, askingGate)
    const [first, second] = [await open(), await open({ id: 'second' })]
    await first.prompt('act')
    await until(first, () => first.transcript.permissions.length === 1)
    const requestId = first.transcript.permissions[0]?.requestId ?? ''
    await second.answer(requestId, { optionId: 'yes' })
    await expect(first.answer(requestId, { optionId: 'no' })).rejects.toMatchObject({
      type: 'already-resolved',
      problem: { client: 'second' },
    })
    await idle(first)
    expect(wordsIn(first.transcript)).toEqual(['act', 'Done.'])
  })

  test('loads older entries, and returns to one that was not loaded', async () => {
    const says = script()
    for (let turn = 1; turn <= 6; turn++) says.text(`answer ${turn}`).step()
    const { open } = await build(kind, says)
    const writer = await open()
    for (let turn = 1; turn <= 6; turn++) {
      await writer.prompt(`prompt ${turn}`)
      await idle(writer)
    }
    const firstEntry = [...writer.transcript.path.items].find(({ type }) => type === 'user')
    const handle = await open({ window: 2 })
    expect(wordsIn(handle.transcript)).toEqual(['prompt 6', 'answer 6'])
    expect(await handle.loadOlder(4)).toBe(true)
    expect(wordsIn(handle.transcript)).toHaveLength(6)
    while (await handle.loadOlder(4));
    expect(wordsIn(handle.transcript)).toEqual(wordsIn(writer.transcript))

    const late = await open({ window: 2 })
    await writer.navigate(firstEntry?.id ?? '')
    await until(late, () => wordsIn(late.transcript).join() === 'prompt 1')
    expect(late.transcript.path.leafId).toBe(firstEntry?.id)
  })

  test('starts with no more than fits into a frame, and loads the rest', async () => {
    const says = script()
    for (let turn = 1; turn <= 8; turn++) says.text(`answer ${turn} ${'word '.repeat(12_000)}`).step()
    const { open } = await build(kind, says)
    const writer = await open()
    for (let turn = 1; turn <= 8; turn++) {
      await writer.prompt(`prompt ${turn}`)
      await idle(writer)
    }
    const handle = await open({ window: 100 })
    expect(wordsIn(handle.transcript).map((words) => words.slice(0, 8))).toEqual([
      'prompt 7',
      'answer 7',
      'prompt 8',
      'answer 8',
    ])
    while (await handle.loadOlder(2));
    expect([...handle.transcript.path.items]).toEqual([...writer.transcript.path.items])
  })

  test('drops all but the newest entries, also during a run, and loads the others again', async () => {
    const says = script()
    for (let turn = 1; turn <= 4; turn++) says.text(`answer ${turn}`).step()
    const { open } = await build(kind, says)
    const [handle, witness] = [await open(), await open()]
    let isForgetful = false
    handle.subscribe(() => {
      if (isForgetful || handle.transcript.run === null || wordsIn(handle.transcript).length < 5) return
      isForgetful = true
      handle.forgetOlder(2)
    })
    for (let turn = 1; turn <= 4; turn++) {
      await handle.prompt(`prompt ${turn}`)
      await idle(handle)
    }
    expect(wordsIn(handle.transcript)).toEqual(['answer 2', 'prompt 3', 'answer 3', 'prompt 4', 'answer 4'])
    handle.forgetOlder(3)
    expect(wordsIn(handle.transcript)).toEqual(['answer 3', 'prompt 4', 'answer 4'])
    handle.forgetOlder(100)
    expect(wordsIn(handle.transcript)).toHaveLength(3)
    expect(handle.transcript.usage).toEqual(witness.transcript.usage)
    while (await handle.loadOlder(2));
    await until(witness, () => wordsIn(witness.transcript).length === 8)
    expect([...handle.transcript.path.items]).toEqual([...witness.transcript.path.items])
  })

  test('is closed permanently by its screen, by another one of the same name, and with the session', async () => {
    const { open, sessions, sessionId } = await build(kind, script())
    const [own, twin, gone] = [await open(), await open({ id: 'twin' }), await open()]
    await own.close()
    expect(own.status).toEqual({ type: 'closed', reason: 'closed' })
    await expect(own.prompt('hi')).rejects.toMatchObject({ type: 'closed' })
    await open({ id: 'twin' })
    await until(twin, () => twin.status.type === 'closed')
    expect(twin.status).toEqual({ type: 'closed', reason: 'replaced' })
    await sessions.release(sessionId)
    await until(gone, () => gone.status.type === 'closed')
    expect(gone.status).toEqual({ type: 'closed', reason: 'gone' })
  })
})

describe.each(['local', 'remote'] as const)('asking a %s session', (kind) => {
  test('resolves with the answer, its usage and its outcome, one prompt after the other', async () => {
    const says = script()
      .text('Four', '.')
      .usage({ inputTokens: 5, outputTokens: 2 })
      .step()
      .text('Six.')
      .usage({ inputTokens: 9 })
    const { open } = await build(kind, says)
    await using handle = await open()
    const first = await handle.ask('2 + 2?')
    const second = await handle.ask('3 + 3?')
    expect([first, second]).toMatchObject([
      { text: 'Four.', outcome: 'completed', usage: { inputTokens: 5, outputTokens: 2 } },
      { text: 'Six.', outcome: 'completed', usage: { inputTokens: 9 } },
    ])
    expect(second.runId).toBe(handle.transcript.lastRun?.runId)
    expect(first.runId).not.toBe(second.runId)
  })

  test('with a schema, the reply has a value that fits, and wrong answers are sent back', async () => {
    const schema = z.object({ city: z.string() })
    const { open } = await build(kind, script().text('{"city":1}').step().text('{"city":"Brest"}').step().text('no'))
    const handle = await open()
    const { object } = await handle.ask('Which city?', { schema })
    expectTypeOf(object).toEqualTypeOf<{ city: string } | undefined>()
    expect(object).toEqual({ city: 'Brest' })
    expect(wordsIn(handle.transcript)[2]).toContain('expected string')
    const foreign = { '~standard': { ...schema['~standard'], vendor: 'other', jsonSchema: undefined } } as const
    await expect(handle.ask('Which city?', { schema: foreign })).rejects.toThrow('provides no JSON Schema')
  })

  test('resolves with the reason if the run fails', async () => {
    const { open } = await build(kind, script().error('auth', 'The key is wrong.'))
    const handle = await open()
    expect(await handle.ask('go')).toMatchObject({ outcome: 'failed', reason: 'auth', message: 'The key is wrong.' })
  })

  test('yields text, calls, requests and results in order, and the reply at the end', async () => {
    const says = script().text('Let me ', 'look.').toolCall('1', 'act').toolResult('1', 'found').step().text('Done.')
    const { open } = await build(kind, says, askingGate)
    const [handle, other] = [await open(), await open()]
    const seen: string[] = []
    let text = ''
    for await (const event of handle.stream('go')) {
      if (event.type === 'text_delta') text += event.text
      else seen.push(event.type)
      if (event.type === 'permission_request') await other.answer(event.request.requestId, { optionId: 'yes' })
      if (event.type === 'tool_result') expect(event.result).toMatchObject({ toolUseId: '1', isError: false })
      if (event.type === 'end') expect(event.reply).toMatchObject({ text: 'Done.', outcome: 'completed' })
    }
    expect(text).toBe('Let me look.Done.')
    expect(seen).toEqual(['tool_call', 'permission_request', 'tool_started', 'tool_result', 'end'])
  })

  test('continues the run if the reader leaves the loop, and ends it if the signal aborts', async () => {
    const rest = Promise.withResolvers<void>()
    const says = script()
      .text('Once ')
      .do(() => rest.promise)
      .text('more.')
      .step()
      .text('Never ')
      .wait(600_000)
    const { open } = await build(kind, says)
    const handle = await open()
    for await (const event of handle.stream('go')) if (event.type === 'text_delta') break
    const idle = handle.untilIdle()
    rest.resolve()
    await idle
    expect(wordsIn(handle.transcript)).toEqual(['go', 'Once more.'])
    const controller = new AbortController()
    const events: string[] = []
    for await (const event of handle.stream('again', { signal: controller.signal })) {
      events.push(event.type === 'end' ? event.reply.outcome : event.type)
      if (event.type === 'text_delta') controller.abort()
    }
    expect(events).toEqual(['text_delta', 'aborted'])
    expect(await handle.ask('late', { signal: AbortSignal.abort() })).toMatchObject({ outcome: 'aborted', runId: null })
  })

  test('rejects during the run of another screen, or waits for its end', async () => {
    const rest = Promise.withResolvers<void>()
    const says = script()
      .do(() => rest.promise)
      .text('First.')
      .step()
      .text('Second.')
    const { open } = await build(kind, says)
    const [handle, other] = [await open(), await open()]
    const first = other.ask('one')
    await until(handle, () => handle.transcript.run !== null)
    await expect(handle.ask('two')).rejects.toMatchObject({ type: 'session-busy' })
    const second = handle.ask('two', { whenBusy: 'wait' })
    rest.resolve()
    expect([(await first).text, (await second).text]).toEqual(['First.', 'Second.'])
  })

  test('rejects if the handle closes before the end of the run', async () => {
    const { open } = await build(kind, script().wait(600_000))
    const handle = await open()
    const reply = handle.ask('go')
    const idle = handle.untilIdle()
    await until(handle, () => handle.transcript.run !== null)
    await handle.close()
    await expect(reply).rejects.toMatchObject({ type: 'closed' })
    await expect(handle.untilIdle()).rejects.toMatchObject({ type: 'closed' })
    await idle.catch(() => undefined)
  })
})

test('a read-only session rejects questions with its owner, and becomes idle with its log', async () => {
  const rest = Promise.withResolvers<void>()
  const { sessions, sessionId, open } = await build(
    'local',
    script()
      .do(() => rest.promise)
      .text('Hello.'),
  )
  const writer = await open()
  await writer.prompt('one')
  const session = await sessions.store.open(sessionId, { readOnly: true })
  await using reader = await ReadOnlySession.open({ session, reason: 'Another process writes it.', everyMs: 1 })
  await expect(reader.ask('two')).rejects.toMatchObject({ type: 'session-owned' })
  await expect(reader.stream('two').next()).rejects.toMatchObject({ type: 'session-owned' })
  const idle = reader.untilIdle()
  rest.resolve()
  await idle
  expect(wordsIn(reader.transcript)).toEqual(['one', 'Hello.'])
})

test('a read-only session follows its log, and rejects commands with its owner', async () => {
  const { sessions, sessionId, open } = await build('local', script().text('Hello.').step().text('Again.'))
  const writer = await open()
  await writer.prompt('one')
  await idle(writer)
  const session = await sessions.store.open(sessionId, { readOnly: true })
  const reason = 'Process 7 on a machine is writing this session.'
  const reader = await ReadOnlySession.open({ session, reason, everyMs: 1 })
  cleanUps.push(() => reader.close())
  expect(wordsIn(reader.transcript)).toEqual(['one', 'Hello.'])
  await expect(reader.prompt('two')).rejects.toMatchObject({ type: 'session-owned', message: reason })
  await writer.prompt('two')
  await until(reader, () => wordsIn(reader.transcript).at(-1) === 'Again.' && reader.state('run')?.runId === null)
  expect(reader.state('usage')).toMatchObject({ turns: 2 })
})

test('a read-only session loses nothing after a failed read', async () => {
  const { sessions, sessionId, open } = await build('local', script().text('Hello.').step().text('Again.'))
  const writer = await open()
  const session = await sessions.store.open(sessionId, { readOnly: true })
  const reader = await ReadOnlySession.open({ session, reason: 'Another process writes it.', everyMs: 1 })
  cleanUps.push(() => reader.close())
  const failed = Promise.withResolvers<void>()
  vi.spyOn(session, 'lines').mockImplementationOnce(() => {
    failed.resolve()
    throw new Error('The folder is away.')
  })
  await writer.prompt('one')
  await failed.promise
  await idle(writer)
  await writer.prompt('two')
  await until(reader, () => wordsIn(reader.transcript).at(-1) === 'Again.')
  expect(wordsIn(reader.transcript)).toEqual(wordsIn(writer.transcript))
})

test('a local session reattaches if a line is missing, and continues if a listener throws', async () => {
  const { sessions, sessionId } = await build('local', script().text('Hello.').step().text('Again.'))
  let isDropping = false
  const dropping = (sink: Sink): Sink => ({
    get buffered() {
      return sink.buffered
    },
    send: (frame) => {
      const isDropped = isDropping && readFrame(frame.toString()).type === 'line'
      if (isDropped) isDropping = false
      else sink.send(frame)
    },
    close: (code, reason) => sink.close(code, reason),
  })
  const live = await sessions.get(sessionId)
  const attach = live.attach.bind(live)
  vi.spyOn(live, 'attach').mockImplementation((request, sink, prepared) => attach(request, dropping(sink), prepared))
  const problems: unknown[] = []
  const handle = await LocalSession.open({ sessions, sessionId, onProblem: (error) => problems.push(error) })
  const broken = new Error('A broken screen.')
  const stop = handle.subscribe(() => {
    throw broken
  })
  await handle.prompt('one')
  await idle(handle)
  stop()
  expect(problems).toContain(broken)
  isDropping = true
  await handle.prompt('two')
  await until(handle, () => wordsIn(handle.transcript).at(-1) === 'Again.')
  expect([isDropping, wordsIn(handle.transcript)]).toEqual([false, ['one', 'Hello.', 'two', 'Again.']])
})
