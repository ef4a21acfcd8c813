import { AgentSession, onlyModel, allowAll, type AgentSessionOptions } from '@tapetree/agent'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '@tapetree/agent/testing'
import { memoryStore, text, type ToolResultContent, type ToolUseContent } from '@tapetree/session'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type Transcript } from '@tapetree/session/view'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { snapshotFromWire, type Attached, type AttachRequest, type ServerFrame } from '@tapetree/client/protocol'
import { AgentDriver } from '../drivers/agent-driver.ts'
import type { Connection, Sink } from './connection.ts'
import { LiveSession } from './live-session.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function open(
  said: ScriptBuilder | ScriptedModel,
  options: Partial<AgentSessionOptions> = {},
): Promise<LiveSession> {
  const model = 'prepare' in said ? said : scriptedModel(said)
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    gate: () => allowAll,
    hasSubagents: false,
    cwd: '/',
    ...options,
  })
  const live = await LiveSession.open(new AgentDriver({ agent }), { tickMs: 1 })
  cleanUps.push(() => live.close())
  return live
}

/** A screen that applies what it is sent, and can be made to stall. */
class Screen implements Sink {
  buffered = 0
  isStalled = false
  closed: number | undefined
  readonly frames: (ServerFrame | { seq: number })[] = []
  transcript: Transcript = emptyTranscript()
  connection: Connection | undefined

  static async attach(live: LiveSession, request: Partial<AttachRequest> = {}): Promise<Screen> {
    const screen = new Screen()
    const whole: AttachRequest = { client: { id: 'screen' }, ...request }
    const connection = live.attach(whole, screen, await live.prepare(whole))
    if (connection === 'not-prepared') throw new Error(connection)
    screen.connection = connection
    return screen
  }

  send(frame: Buffer): void {
    if (this.isStalled) this.buffered += frame.length
    const parsed = JSON.parse(frame.toString()) as ServerFrame | DiskLine
    this.frames.push(parsed as ServerFrame)
    if ('seq' in parsed) this.#reduce({ type: 'line', line: fromDisk(parsed, parsed.seq) })
    else if (parsed.type === 'delta' || parsed.type === 'partial')
      this.#reduce({ type: parsed.type, ...(parsed as { data: object }).data } as never)
    else if (parsed.type === 'attached') this.#attached((parsed as unknown as { data: Attached }).data)
  }

  close(code: number): void {
    this.closed = code
  }

  seqs(): number[] {
    return this.frames.flatMap((frame) => ('seq' in frame ? [frame.seq] : []))
  }

  #attached({ snapshot }: Attached): void {
    if (!snapshot) return
    this.#reduce({ type: 'snapshot', snapshot: snapshotFromWire(snapshot) })
  }

  #reduce(input: Parameters<typeof reduceTranscript>[1]): void {
    this.transcript = reduceTranscript(this.transcript, input)
  }
}

const words = ({ transcript }: Screen): string[] =>
  [...transcript.path.items].flatMap((item) => {
    if (item.type === 'user')
      return item.content.flatMap((block) => (block.type === 'text' ? [block.text.content] : []))
    return item.type === 'assistant' ? item.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : []
  })

async function prompt(live: LiveSession, text: string, id = `cmd-${text}`): Promise<void> {
  const ack = await live.perform(id, 'me', { op: 'prompt', args: { text } })
  expect(ack).toMatchObject({ ok: true })
  await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
}

describe('a live session', () => {
  test('sends every screen the same lines, in order and once', async () => {
    const live = await open(script().text('Hello ', 'there.').step().text('Again.'))
    const early = await Screen.attach(live, { client: { id: 'early' } })
    await prompt(live, 'one')
    const late = await Screen.attach(live, { client: { id: 'late' } })
    await prompt(live, 'two')
    await vi.waitFor(() => expect(late.transcript.seq).toBe(live.session.head.seq))
    expect(words(early)).toEqual(['one', 'Hello there.', 'two', 'Again.'])
    expect(words(late)).toEqual(words(early))
    expect(early.seqs()).toEqual([...early.seqs()].sort((left, right) => left - right))
    expect(new Set(early.seqs()).size).toBe(early.seqs().length)
  })

  test('resumes for a client at its cursor, and with a snapshot if the log differs', async () => {
    const live = await open(script().text('one').step().text('two'))
    const first = await Screen.attach(live)
    await prompt(live, 'a')
    await vi.waitFor(() => expect(first.transcript.seq).toBe(live.session.head.seq))
    const { head } = live.session
    if (first.connection) live.detach(first.connection)
    await prompt(live, 'b')
    const back = await Screen.attach(live, { after: head })
    expect(back.frames[0]).toMatchObject({ type: 'attached', data: { mode: 'tail', from: head.seq + 1 } })
    expect(back.seqs()[0]).toBe(head.seq + 1)
    const wrong = await Screen.attach(live, { after: { seq: head.seq, crc: 'ffffffff' }, client: { id: 'wrong' } })
    expect(wrong.frames[0]).toMatchObject({ data: { mode: 'snapshot', reason: 'history_changed' } })
    const ahead = await Screen.attach(live, { after: { seq: 9999, crc: 'x' }, client: { id: 'ahead' } })
    expect(ahead.frames[0]).toMatchObject({ data: { mode: 'snapshot', reason: 'cursor_ahead' } })
  })

  test('shows text in flight to a client that joins midway, and none of it once its line is there', async () => {
    const go = Promise.withResolvers<void>()
    const live = await open(
      script()
        .text('a long ')
        .do(() => go.promise)
        .text('answer'),
    )
    const ack = live.perform('c', 'me', { op: 'prompt', args: { text: 'go' } })
    await ack
    await vi.waitFor(() => expect(live.inFlight.isEmpty).toBe(false))
    const late = await Screen.attach(live)
    await vi.waitFor(() => expect([...late.transcript.inFlight.values()][0]?.parts[0]?.text).toContain('a long'))
    go.resolve()
    await vi.waitFor(() => expect(words(late)).toEqual(['go', 'a long answer']))
    expect(late.transcript.inFlight.size).toBe(0)
  })

  test('tells every screen when the agent is idle', async () => {
    const live = await open(script().text('one'))
    const screen = await Screen.attach(live)
    await prompt(live, 'a')
    await vi.waitFor(() => {
      const runs = screen.frames.flatMap((frame) =>
        'data' in frame && frame.type === 'state' && frame.data.key === 'run' ? [frame.data.value] : [],
      )
      expect(runs.at(-1)).toMatchObject({ is_busy: false, run_id: null })
    })
  })

  test('drops tool output after its result', async () => {
    const live = await open(script().text('one'))
    const result = { type: 'tool_result' as const, toolResult: { toolUseId: 'call-1', content: 'stopped' } }
    await live.session.appendMessage('tool', [result])
    const late = { type: 'delta' as const, item: 'call-1', part: 0, kind: 'tool_output' as const, off: 0, text: 'late' }
    expect(live.inFlight.take(late)).toBe(false)
    expect(live.inFlight.isEmpty).toBe(true)
  })

  test('holds nothing back because of a stalled screen, which catches up later', async () => {
    const live = await open(script().text('one').step().text('two'))
    const stalled = await Screen.attach(live, { client: { id: 'stalled' } })
    const healthy = await Screen.attach(live, { client: { id: 'healthy' } })
    stalled.isStalled = true
    stalled.buffered = 1_000_000
    await prompt(live, 'a')
    await vi.waitFor(() => expect(words(healthy)).toEqual(['a', 'one']))
    expect(words(stalled)).toEqual([])
    stalled.isStalled = false
    stalled.buffered = 0
    stalled.connection?.pump()
    expect(words(stalled)).toEqual(['a', 'one'])
  })

  test('that was just opened sends a client that comes back all that it has missed, though it is much', async () => {
    const store = memoryStore()
    const written = await store.create({ cwd: '/' })
    for (let line = 1; line <= 300; line++) await written.appendMessage('user', [text(`${line}`)])
    const stored: { seq: number; crc: string }[] = []
    for await (const line of written.lines()) if (line.type === 'line') stored.push({ seq: line.seq, crc: line.crc })
    await written.close()
    const live = await open(script(), { store, sessionId: written.id })
    const cursors = [stored[9], stored[9], stored.at(-2)].flatMap((after) => after ?? [])
    const screens = await Promise.all(
      cursors.map((after, index) => Screen.attach(live, { client: { id: `${index}` }, after })),
    )
    const all = stored.map(({ seq }) => seq)
    expect(screens.map((screen) => screen.seqs())).toEqual([all.slice(10), all.slice(10), all.slice(-1)])
    const changed = await Screen.attach(live, { client: { id: 'c' }, after: { seq: 10, crc: '00000000' } })
    expect(changed.frames[0]).toMatchObject({ type: 'attached', data: { mode: 'snapshot', reason: 'history_changed' } })
  })

  test('that was closed accepts no client: one that prepared for it uses the new live session', async () => {
    const live = await open(script())
    const request: AttachRequest = { client: { id: 'late' } }
    const prepared = await live.prepare(request)
    await live.close()
    expect(live.attach(request, new Screen(), prepared)).toBe('not-prepared')
  })
})

describe('a command', () => {
  test('takes effect once, however often it is sent', async () => {
    const live = await open(script().text('one').step().text('two'))
    const [first, second] = await Promise.all([
      live.perform('same', 'me', { op: 'prompt', args: { text: 'a' } }),
      live.perform('same', 'me', { op: 'prompt', args: { text: 'a' } }),
    ])
    expect(first).toMatchObject({ ok: true, result: { outcome: 'started' } })
    expect(second).toMatchObject({ ok: true, dup: true })
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
    expect(await live.perform('same', 'me', { op: 'prompt', args: { text: 'a' } })).toMatchObject({ dup: true })
    const screen = await Screen.attach(live)
    expect(words(screen)).toEqual(['a', 'one'])
  })

  test('that took effect before a restart is recognized by its line', async () => {
    const store = memoryStore()
    const model = scriptedModel(script().text('one'))
    const live = await open(model, { store })
    await prompt(live, 'a', 'the-id')
    const sessionId = live.session.id
    await live.close()
    cleanUps.length = 0
    const again = await open(model, { store, sessionId })
    expect(await again.perform('the-id', 'me', { op: 'prompt', args: { text: 'a' } })).toMatchObject({
      ok: true,
      dup: true,
    })
  })

  test('whose expected head is moved concurrently is rejected', async () => {
    const live = await open(script().text('one'))
    const ifHead = live.session.head.seq
    const acks = await Promise.all(
      ['left', 'right'].map((name) => live.perform(name, 'me', { op: 'rename', args: { name }, ifHead })),
    )
    expect(acks).toMatchObject([{ ok: true }, { ok: false, error: { status: 409, type: 'head-moved' } }])
  })

  test('that is impossible is rejected with a problem, and may be retried', async () => {
    const live = await open(script().text('one'))
    expect(await live.perform('1', 'me', { op: 'prompt', args: { txt: 'a' } })).toMatchObject({
      ok: false,
      error: { status: 422 },
    })
    expect(await live.perform('2', 'me', { op: 'cancel', args: { run_id: 'other' } })).toMatchObject({
      ok: false,
      error: { status: 409, type: 'run-not-current' },
    })
    expect(await live.perform('3', 'me', { op: 'label', args: { entry_id: 'none', label: 'x' } })).toMatchObject({
      error: { status: 404 },
    })
    expect(await live.perform('1', 'me', { op: 'prompt', args: { text: 'a' } })).toMatchObject({ ok: true })
  })
})

/** A session whose live text comes from the test. */
async function spoken(): Promise<{ driver: AgentDriver; say: (item: string, off: number, said: string) => void }> {
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(scriptedModel(script())),
    tools: () => [],
    hasSubagents: false,
    cwd: '/',
  })
  const driver = new AgentDriver({ agent })
  const heard = vi.spyOn(driver, 'subscribe')
  const say = (item: string, off: number, said: string): void =>
    heard.mock.calls[0]?.[0]({ type: 'delta', item, part: 0, kind: 'tool_output', off, text: said, run: 'r' })
  return { driver, say }
}

test('text whose line is stored while a session is opened is not in flight', async () => {
  const { driver, say } = await spoken()
  const { session } = driver
  const lines = session.lines.bind(session)
  // A resumed run continues meanwhile.
  vi.spyOn(session, 'lines').mockImplementationOnce(async function* (options) {
    say('i', 0, 'Hello.')
    await session.append({ type: 'message', id: 'i', message: { role: 'assistant', content: [text('Hello.')] } })
    yield* lines(options)
  })
  const live = await LiveSession.open(driver, { tickMs: 1 })
  cleanUps.push(() => live.close())
  expect(live.inFlight.isEmpty).toBe(true)
})

test.each(['with the id of an earlier one', 'made again on another branch'])(
  'a call %s is sent as well',
  async (kind) => {
    const { driver, say } = await spoken()
    const live = await LiveSession.open(driver, { tickMs: 1 })
    cleanUps.push(() => live.close())
    const screen = await Screen.attach(live)
    const { session } = driver
    const toolUse: ToolUseContent = { type: 'tool_use', toolUse: { id: 'call_0', name: 'act', input: {} } }
    const result: ToolResultContent = { type: 'tool_result', toolResult: { toolUseId: 'call_0', content: 'done' } }
    const call = async (): Promise<string> => session.appendMessage('assistant', [toolUse])
    const start = async (): Promise<unknown> =>
      session.append({ type: 'tool_start', toolStart: { runId: 'r', callId: 'call_0', name: 'act' } })
    const flying = (): unknown => screen.transcript.inFlight.get('call_0')
    say('other', 0, 'something that goes on all the while')
    const first = await call()
    await start()
    say('call_0', 0, 'the first one')
    await vi.waitFor(() => expect(JSON.stringify(flying())).toContain('the first one'))
    await session.appendMessage('tool', [result])
    say('call_0', 0, 'too late, the first one')
    if (kind === 'made again on another branch') await session.branch(first)
    else await call()
    await start()
    say('call_0', 0, 'again')
    await vi.waitFor(() => expect(JSON.stringify(flying())).toContain('again'))
    expect(JSON.stringify(flying())).not.toContain('first')
  },
)

test('an observer that throws fails neither a command nor other observers', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
  const live = await open(script().text('Hello.'))
  const seen: string[] = []
  const broken = (): never => {
    throw new Error('broken observer')
  }
  const stops = [live.onCommand(broken), live.onLine(broken)]
  live.onCommand(({ op }) => seen.push(op))
  live.onLine(({ type }) => seen.push(type))
  const ack = await live.perform('a', 'screen', { op: 'queue.add', args: { message: 'later' } })
  expect(ack).toMatchObject({ ok: true })
  expect(seen).toEqual(expect.arrayContaining(['queue.add', 'submission']))
  expect(new Set(warned.mock.calls.map(([warning]) => (warning as Error).message))).toEqual(
    new Set(['broken observer']),
  )
  for (const stop of stops) stop()
  warned.mockRestore()
})
