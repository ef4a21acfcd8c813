import { once } from 'node:events'
import { text } from '@tapetree/session'
import { describe, expect, test, vi } from 'vitest'
import { ProblemError } from './problem-error.ts'
import type { AttachRequest, ClientFrame } from './protocol/client-frames.ts'
import type { SessionChange } from './session-handle.ts'
import { caughtUp, foldOf, openSession, serve, shown, until, wordsIn } from './testing/opened-sessions.ts'
import type { ScriptedServer, ServedScreen } from './testing/scripted-server.ts'
import { SkippingClock } from './testing/skipping-clock.ts'
import { memoryStorage } from './unacknowledged.ts'

function attachOf(screen: ServedScreen | undefined): AttachRequest | undefined {
  return screen?.received.flatMap((frame) => (frame.type === 'attach' ? [frame.data] : []))[0]
}

function commandsOf(screen: ServedScreen | undefined): string[] {
  return (screen?.received ?? []).flatMap((frame) => (frame.type === 'cmd' ? [frame.data.op] : []))
}

async function say(server: ScriptedServer, ...words: string[]): Promise<void> {
  for (const word of words) await server.session.appendMessage('user', [text(word)])
}

/** For conditions without an event to wait for. */
async function eventually(holds: () => void): Promise<void> {
  await vi.waitFor(holds, { timeout: 20_000, interval: 5 })
}

async function screens(server: ScriptedServer, count: number): Promise<void> {
  await eventually(() => expect(server.screens.filter(({ client }) => client !== undefined).length).toBe(count))
}

/** True only on the first call. */
function firstTime(): () => boolean {
  let isFirst = true
  return () => {
    const was = isFirst
    isFirst = false
    return was
  }
}

const noneWaits = { queue_length: 0, total: 0, hold: null, messages: [] }

describe('a remote session', () => {
  test('starts with a snapshot and continues line by line', async () => {
    const server = await serve()
    await say(server, 'one')
    const session = await openSession(server)
    await session.ready
    await say(server, 'two')
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['one', 'two'])
    expect(shown(session.transcript)).toEqual(shown(await foldOf(server.session)))
    expect(session.state('run')).toEqual({ runId: null, isBusy: false, waitingFor: null })
  })

  test('continues after its last line when it is cut', async () => {
    const server = await serve()
    await say(server, 'one')
    const session = await openSession(server)
    await session.ready
    const { head } = server.session
    server.screens[0]?.socket.terminate()
    await say(server, 'two')
    await screens(server, 2)
    await caughtUp(session, server)
    expect(attachOf(server.screens[1])?.after).toEqual(head)
    expect(server.screens[1]?.sent.map((frame) => (JSON.parse(frame) as { seq?: number }).seq)).toEqual([
      undefined,
      head.seq + 1,
    ])
    expect(wordsIn(session.transcript)).toEqual(['one', 'two'])
  })

  test('gives the same transcript wherever it is cut', async () => {
    for (let cut = 1; cut <= 12; cut++) {
      let sent = 0
      const server = await serve({
        outgoing: (frame, { socket }) => {
          if (++sent !== cut) return [frame]
          socket.terminate()
          return []
        },
      })
      const session = await openSession(server)
      const done = [session.prompt('a'), session.prompt('b'), session.run('rename', { name: 'n' }), session.prompt('c')]
      await Promise.all(done)
      await caughtUp(session, server)
      expect(shown(session.transcript), `cut after frame ${cut}`).toEqual(shown(await foldOf(server.session)))
      expect(wordsIn(session.transcript)).toEqual(['a', 'b', 'c'])
      expect(new Set(server.effects).size).toBe(server.effects.length)
    }
  })

  test('starts over if the server has a different history', async () => {
    const server = await serve()
    await say(server, 'one')
    const session = await openSession(server)
    await session.ready
    server.script.incoming = (frame) => {
      if (frame.type === 'attach' && frame.data.after) frame.data.after.crc = 'ffffffff'
      return true
    }
    server.screens[0]?.socket.terminate()
    await say(server, 'two')
    await screens(server, 2)
    await caughtUp(session, server)
    expect(server.screens[1]?.sent[0]).toContain('"reason":"history_changed"')
    expect(shown(session.transcript)).toEqual(shown(await foldOf(server.session)))
  })

  test('reconnects with its cursor when a line is missing, and applies no line twice', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    const isFirst = firstTime()
    server.script.outgoing = (frame) => {
      if (frame.includes('"lost on the way"') && isFirst()) return []
      return frame.includes('"twice"') ? [frame, frame] : [frame]
    }
    await say(server, 'one', 'twice', 'lost on the way', 'three')
    await screens(server, 2)
    const { seq } = server.session.head
    expect(attachOf(server.screens[1])?.after?.seq).toBe(seq - 2)
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['one', 'twice', 'lost on the way', 'three'])
    expect(shown(session.transcript)).toEqual(shown(await foldOf(server.session)))
  })

  test('ignores frames of a newer server, but counts unknown lines', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    server.say({ type: 'weather', data: { sun: true } })
    server.script.outgoing = (frame) => [frame.replace('"type":"message"', '"type":"weather"')]
    await say(server, 'one')
    await caughtUp(session, server)
    server.script.outgoing = (frame) => [frame]
    await say(server, 'two')
    await caughtUp(session, server)
    expect(server.screens.length).toBe(1)
    expect(wordsIn(session.transcript)).toEqual(['two'])
  })

  test('starts over after a malformed frame', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    server.screens[0]?.socket.send('{"type":')
    await screens(server, 2)
    await say(server, 'one')
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['one'])
  })

  test('reports lost lines once', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    server.lose(3)
    await until(session, () => session.transcript.damage.lostLines === 3)
    const before = session.transcript
    server.screens[0]?.socket.terminate()
    await screens(server, 2)
    await until(session, () => session.status.type === 'attached')
    expect(shown(session.transcript)).toEqual(shown(before))
  })

  test('fetches a line that is too long for a frame, and later frames wait for it', async () => {
    const server = await serve({ maxLineLength: 2000 })
    const session = await openSession(server)
    await session.ready
    await say(server, 'short', 'x'.repeat(3000), 'after')
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['short', 'x'.repeat(3000), 'after'])
    expect(shown(session.transcript)).toEqual(shown(await foldOf(server.session)))
    expect(server.requests).toEqual([expect.stringContaining('/events?after=')])
    server.screens[0]?.socket.terminate()
    await screens(server, 2)
    await say(server, 'still there')
    await caughtUp(session, server)
    expect(server.screens[1]?.sent[0]).toContain('"mode":"tail"')
  })

  test('shows text in flight, and requests it again if some was missed', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    const delta = (off: number, words: string): unknown => ({
      type: 'delta',
      data: { item: 'i', part: 0, kind: 'text', off, text: words },
    })
    const flying = (): string | undefined => session.transcript.inFlight.get('i')?.parts[0]?.text
    server.say(delta(0, 'Hello'))
    server.say(delta(5, ' there'))
    await until(session, () => flying() === 'Hello there')
    server.say(delta(20, 'too far'))
    await screens(server, 2)
    await until(session, () => session.status.type === 'attached')
    expect(flying()).toBeUndefined()
    server.say(delta(0, 'Hello there, all'))
    await until(session, () => flying() === 'Hello there, all')
    await server.session.append({
      type: 'message',
      id: 'i',
      message: { role: 'assistant', content: [text('Hello there, all.')] },
    })
    await caughtUp(session, server)
    expect(flying()).toBeUndefined()
    expect(wordsIn(session.transcript)).toEqual(['Hello there, all.'])
  })

  test('keeps only the latest value of each key', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    const keys: string[] = []
    session.subscribe((change) => void (change.type === 'state' && keys.push(change.key)))
    const usage = (turns: number): object => ({ turns, tool_calls: 0, run_ms: 0, tokens: 0, cost: 0 })
    server.say({ type: 'state', data: { key: 'usage', value: usage(2) }, rev: 8 })
    server.say({ type: 'state', data: { key: 'usage', value: usage(1) }, rev: 7 })
    server.say({ type: 'state', data: { key: 'queue', value: noneWaits }, rev: 9 })
    await until(session, () => session.state('queue') !== undefined)
    expect(session.state('usage')).toMatchObject({ turns: 2, toolCalls: 0 })
    expect(keys).toEqual(['usage', 'queue'])
  })

  test('ignores frames, keys and values that it does not know', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    const changes: SessionChange[] = []
    session.subscribe((change) => changes.push(change))
    server.say({ type: 'dance', data: { partner: 'you' } })
    server.say({ type: 'dance' })
    server.say({ type: 'state', data: { key: 'mood', value: 'good' }, rev: 7 })
    server.say({ type: 'state', data: { key: 'constructor', value: {} }, rev: 8 })
    server.say({ type: 'state', data: { key: 'usage', value: 'much' }, rev: 9 })
    server.say({ type: 'state', data: { key: 'queue', value: { ...noneWaits, mood: 'good' } }, rev: 10 })
    await until(session, () => session.state('queue') !== undefined)
    expect(changes).toEqual([{ type: 'state', key: 'queue' }])
    expect(session.status).toEqual({ type: 'attached' })
    expect(session.state('usage')).toBeUndefined()
  })

  test('passes on the notices of the queue', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    const notices: SessionChange[] = []
    session.subscribe((change) => void (change.type === 'notice' && notices.push(change)))
    const notice = { type: 'queue_updated', data: { queue_length: 1, action: 'added', message_id: 'q-1' } }
    server.say(notice)
    await until(session, () => notices.length > 0)
    expect(notices).toEqual([{ type: 'notice', notice }])
  })

  test('sends its token as a subprotocol', async () => {
    const server = await serve()
    const session = await openSession(server, { token: 'not-a-secret', client: { id: 'tab-1', kind: 'test' } })
    await session.ready
    expect(server.screens[0]?.protocols.replace(' ', '')).toBe('tapetree.v1,bearer.not-a-secret')
    expect(attachOf(server.screens[0])?.client).toEqual({ id: 'tab-1', kind: 'test' })
  })

  test('sends its presence again after a cut', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    session.present({ visibility: 'hidden' })
    await eventually(() => expect(server.screens[0]?.received.at(-1)?.type).toBe('presence'))
    server.screens[0]?.socket.terminate()
    await eventually(() =>
      expect(server.screens[1]?.received.at(-1)).toEqual({ type: 'presence', data: { visibility: 'hidden' } }),
    )
  })
})

describe('older entries', () => {
  test('are put before the shown ones, until all are loaded', async () => {
    const server = await serve()
    await say(server, ...Array.from({ length: 30 }, (_, index) => `m${index}`))
    await server.session.branch(server.session.leafId)
    const session = await openSession(server, { window: 5 })
    await session.ready
    await say(server, 'new')
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['(not_loaded)', 'm25', 'm26', 'm27', 'm28', 'm29', 'new'])
    expect(await session.loadOlder(20)).toBe(true)
    expect(wordsIn(session.transcript).slice(0, 3)).toEqual(['(not_loaded)', 'm5', 'm6'])
    expect(await session.loadOlder(20)).toBe(false)
    expect(shown(session.transcript)).toEqual(shown(await foldOf(server.session)))
    expect(await session.loadOlder()).toBe(false)
  })

  test('are dropped if they are on another branch', async () => {
    const server = await serve()
    await say(server, 'one', 'two')
    const back = server.session.leafId
    await say(server, 'abandoned')
    await server.session.branch(back)
    await say(server, 'three', 'four')
    const session = await openSession(server, { window: 1 })
    await session.ready
    expect(await session.loadOlder()).toBe(false)
    expect(wordsIn(session.transcript)).toEqual(['one', 'two', 'three', 'four'])
  })

  test('are sent again when the session continues from one that is not loaded', async () => {
    const server = await serve()
    await say(server, 'one')
    const back = server.session.leafId
    await say(server, 'two', 'three', 'four')
    const session = await openSession(server, { window: 2 })
    await session.ready
    await server.session.branch(back)
    await until(session, () => wordsIn(session.transcript).join() === 'one')
    await server.session.branchWithSummary(null, 'nothing was done')
    await say(server, 'other')
    await until(session, () => wordsIn(session.transcript).join() === 'other')
    expect(shown(session.transcript)).toEqual(shown(await foldOf(server.session)))
  })
})

describe('a command', () => {
  test("resolves with the server's result", async () => {
    const server = await serve()
    const session = await openSession(server)
    expect(await session.prompt('go')).toEqual({ outcome: 'started', runId: expect.stringContaining('run-of-') })
    expect(server.effects.length).toBe(1)
  })

  test('that is rejected rejects with the problem', async () => {
    const server = await serve()
    const session = await openSession(server)
    const problem = await session.abort('r1').catch((error: unknown) => error)
    expect(problem).toBeInstanceOf(ProblemError)
    expect(problem).toMatchObject({ type: 'run-not-current', status: 409, problem: { run_id: null } })
  })

  test('that is invalid is rejected without sending it', async () => {
    const server = await serve()
    const session = await openSession(server)
    await expect(session.run('label', { entry_id: '../x', label: 'l' })).rejects.toMatchObject({ status: 422 })
    await expect(session.prompt('ä'.repeat(200_000))).rejects.toMatchObject({ type: 'too-large', status: 413 })
    await session.ready
    expect(commandsOf(server.screens[0])).toEqual([])
  })

  test('whose answer was lost is resent, and takes effect once', async () => {
    const isFirst = firstTime()
    const server = await serve({
      outgoing: (frame, { socket }) => {
        if (!frame.includes('"ack"') || !isFirst()) return [frame]
        socket.terminate()
        return []
      },
    })
    const session = await openSession(server)
    expect(await session.prompt('go')).toMatchObject({ outcome: 'started' })
    expect(server.screens[1]?.sent.at(-1)).toContain('"dup":true')
    expect(server.effects.length).toBe(1)
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['go'])
  })

  test('that never arrived is resent', async () => {
    const isFirst = firstTime()
    const server = await serve({
      incoming: (frame, { socket }) => {
        if (frame.type !== 'cmd' || !isFirst()) return true
        socket.terminate()
        return false
      },
    })
    const session = await openSession(server)
    await Promise.all([session.prompt('a'), session.prompt('b')])
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['a', 'b'])
  })

  test('that is answered twice is settled once', async () => {
    const server = await serve({ outgoing: (frame) => (frame.includes('"ack"') ? [frame, frame] : [frame]) })
    const session = await openSession(server)
    const late: SessionChange[] = []
    session.subscribe((change) => void (change.type === 'late_ack' && late.push(change)))
    await session.prompt('a')
    await session.prompt('b')
    expect(late).toEqual([])
  })

  test('given before the connection is open is sent in order', async () => {
    const server = await serve()
    const session = await openSession(server)
    const all = ['a', 'b', 'c'].map((word) => session.prompt(word))
    await Promise.all(all)
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['a', 'b', 'c'])
  })

  test('survives a reload: the next handle resends it', async () => {
    const storage = memoryStorage()
    const server = await serve({ incoming: (frame) => frame.type !== 'cmd' })
    const before = await openSession(server, { storage })
    await before.ready
    const prompt = before.prompt('kept')
    await eventually(() => expect(commandsOf(server.screens[0])).toEqual(['prompt']))
    const [left] = await Promise.allSettled([prompt, before.close()])
    expect(left).toMatchObject({ reason: { type: 'closed' } })
    server.script.incoming = () => true
    const after = await openSession(server, { storage })
    const late: SessionChange[] = []
    after.subscribe((change) => void (change.type === 'late_ack' && late.push(change)))
    await until(after, () => late.length > 0)
    expect(late).toMatchObject([{ op: 'prompt', ack: { ok: true } }])
    await caughtUp(after, server)
    expect(wordsIn(after.transcript)).toEqual(['kept'])
    await after.close()
    expect(await storage.load(server.session.id)).toEqual([])
  })

  test('that the server cannot parse is identified and rejected, and the others take effect', async () => {
    const server = await serve({
      incoming: (frame, { socket }) => {
        if (frame.type !== 'cmd' || frame.data.op !== 'compact') return true
        socket.close(4400, 'bad frame')
        return false
      },
    })
    const session = await openSession(server)
    await session.ready
    const outcomes = await Promise.allSettled([session.prompt('a'), session.run('compact', {}), session.prompt('b')])
    expect(outcomes).toMatchObject([
      { status: 'fulfilled' },
      { status: 'rejected', reason: { type: 'bad-frame', status: 400 } },
      { status: 'fulfilled' },
    ])
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['a', 'b'])
  })

  test('is answered even if a listener throws', async () => {
    const server = await serve()
    const session = await openSession(server)
    await session.ready
    const broken = new Error('broken screen')
    const errors: unknown[] = []
    const listeners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', (error) => void errors.push(error))
    const stop = session.subscribe(() => {
      throw broken
    })
    await session.prompt('a')
    stop()
    await caughtUp(session, server)
    process.removeAllListeners('uncaughtException')
    for (const listener of listeners) process.on('uncaughtException', listener)
    expect(errors).toContain(broken)
    expect(server.screens.length).toBe(1)
  })
})

describe('two tabs', () => {
  test('with commands left by one of them have each take effect once, and show the same', async () => {
    const storage = memoryStorage()
    const server = await serve({ incoming: (frame) => frame.type !== 'cmd' })
    const one = await openSession(server, { storage, client: { id: 'one' } })
    await one.ready
    const prompt = one.prompt('mine')
    await eventually(() => expect(commandsOf(server.screens[0])).toEqual(['prompt']))
    server.script.incoming = () => true
    const two = await openSession(server, { storage, client: { id: 'two' } })
    await until(two, () => wordsIn(two.transcript).join() === 'mine')
    server.screens[0]?.socket.terminate()
    await prompt
    await Promise.all([caughtUp(one, server), caughtUp(two, server)])
    expect(server.effects.length).toBe(1)
    expect(shown(one.transcript)).toEqual(shown(two.transcript))
  })

  test('with the same client id replace each other: the first one closes', async () => {
    const server = await serve()
    const one = await openSession(server, { client: { id: 'same' } })
    await one.ready
    const two = await openSession(server, { client: { id: 'same' } })
    await two.ready
    await until(one, () => one.status.type === 'closed')
    expect(one.status).toEqual({ type: 'closed', reason: 'replaced' })
    await two.prompt('mine now')
    expect(two.status.type).toBe('attached')
  })
})

describe('a connection', () => {
  test.for([
    [4401, 'unauthorized'],
    [4403, 'forbidden'],
    [4404, 'gone'],
    [4409, 'replaced'],
  ] as const)('closed with %i stays closed', async ([code, reason]) => {
    const server = await serve({ incoming: (frame) => frame.type !== 'cmd' })
    const session = await openSession(server)
    await session.ready
    const prompt = session.prompt('too late').catch((error: unknown) => error)
    await eventually(() => expect(commandsOf(server.screens[0])).toEqual(['prompt']))
    server.screens[0]?.socket.close(code)
    expect(await prompt).toMatchObject({ type: 'closed' })
    expect(session.status).toEqual({ type: 'closed', reason })
    await expect(session.prompt('again')).rejects.toMatchObject({ type: 'closed' })
    expect(server.screens.length).toBe(1)
  })

  test.for([
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'gone'],
  ] as const)('rejected with %i before it opens stays closed, too', async ([refuse, reason]) => {
    const server = await serve({ refuse })
    const session = await openSession(server)
    await expect(session.ready).rejects.toMatchObject({ type: 'closed' })
    expect(session.status).toEqual({ type: 'closed', reason })
  })

  test('a 404 that is not a problem of the server is retried, and no command is forgotten', async () => {
    const server = await serve({ refuse: 404, isProxy: true })
    const session = await openSession(server)
    const prompt = session.prompt('kept')
    await until(session, () => session.status.type === 'waiting')
    expect(session.pending).toMatchObject([{ op: 'prompt' }])
    delete server.script.refuse
    await prompt
    expect(server.effects.length).toBe(1)
  })

  test('that is rejected temporarily is retried', async () => {
    const server = await serve({ refuse: 503 })
    const session = await openSession(server)
    await until(session, () => session.status.type === 'waiting')
    delete server.script.refuse
    await session.ready
    expect(session.status.type).toBe('attached')
  })

  test('that resumes with lines that do not follow gets a full start', async () => {
    const server = await serve()
    await say(server, 'one')
    const session = await openSession(server)
    await session.ready
    const isFirst = firstTime()
    server.script.outgoing = (frame) => [
      frame.includes('"attached"') && isFirst() ? frame.replace(/"from":\d+/, '"from":99') : frame,
    ]
    server.screens[0]?.socket.terminate()
    await screens(server, 3)
    await caughtUp(session, server)
    expect(attachOf(server.screens[2])?.after).toBeUndefined()
    expect(wordsIn(session.transcript)).toEqual(['one'])
  })

  test('that does not answer a ping within 5 s is replaced', async () => {
    const clock = new SkippingClock()
    const server = await serve({ incoming: (frame) => frame.type !== 'ping' })
    const session = await openSession(server, { clock })
    await session.ready
    const pinged = receives(server, 'ping')
    await clock.skip(15_000)
    await pinged
    await clock.skip(4_999)
    expect(server.screens.length).toBe(1)
    await clock.skip(1)
    await screens(server, 2)
    expect(attachOf(server.screens[1])?.after).toEqual(server.session.head)
  })

  test('that answers its pings is kept', async () => {
    const clock = new SkippingClock()
    const server = await serve()
    const session = await openSession(server, { clock })
    await session.ready
    for (let round = 1; round <= 3; round++) {
      const heard = once(server.screens[0]?.socket as never, 'message')
      await clock.skip(15_000)
      await heard
      // The pong arrives before a line that is sent after it.
      await say(server, `line ${round}`)
      await caughtUp(session, server)
    }
    expect(server.screens.length).toBe(1)
    expect(server.screens[0]?.received.filter(({ type }) => type === 'ping').length).toBe(3)
  })

  test('whose server has more lines than it sends is replaced', async () => {
    const clock = new SkippingClock()
    const server = await serve()
    const session = await openSession(server, { clock, random: () => 1 })
    await session.ready
    server.script.outgoing = (frame) => (frame.startsWith('{"seq"') ? [] : [frame])
    await say(server, 'skipped')
    delete server.script.outgoing
    for (let round = 1; round <= 2; round++) {
      const ponged = sends(server, 'pong')
      await clock.skip(15_000)
      await ponged
      // The second pong ends the connection; frames after the first one are still handled.
      const value = [{ text: `round ${round}`, status: 'pending' }]
      server.say({ type: 'state', data: { key: 'plan', value }, rev: round })
      await until(
        session,
        () => session.state('plan')?.[0]?.text === `round ${round}` || session.status.type === 'waiting',
      )
    }
    expect(session.status.type).toBe('waiting')
    await clock.skip(500)
    await caughtUp(session, server)
    expect(wordsIn(session.transcript)).toEqual(['skipped'])
  })

  test('is pinged at once when the machine wakes', async () => {
    const clock = new SkippingClock()
    const wakes: (() => void)[] = []
    const server = await serve({ incoming: (frame) => frame.type !== 'ping' })
    const session = await openSession(server, {
      clock,
      wakeUps: (wake) => {
        wakes.push(wake)
        return () => undefined
      },
    })
    await session.ready
    await clock.skip(0)
    clock.sleep(3_000)
    const pinged = receives(server, 'ping')
    wakes[0]?.()
    await pinged
    await clock.skip(5_000)
    await screens(server, 2)
  })

  test('is pinged before a command after a long silence', async () => {
    const clock = new SkippingClock()
    const server = await serve()
    const session = await openSession(server, { clock })
    await session.ready
    await clock.skip(0)
    clock.sleep(20_000)
    await session.prompt('still there?')
    expect(server.screens[0]?.received.map(({ type }) => type)).toEqual(['attach', 'ping', 'cmd'])
  })

  test('is retried at once when the machine wakes, regardless of its delay', async () => {
    const clock = new SkippingClock()
    const wakes: (() => void)[] = []
    const server = await serve()
    const session = await openSession(server, {
      clock,
      random: () => 1,
      wakeUps: (wake) => {
        wakes.push(wake)
        return () => undefined
      },
    })
    await session.ready
    server.screens[0]?.socket.terminate()
    await until(session, () => session.status.type === 'waiting')
    expect(session.status).toEqual({ type: 'waiting', delayMs: 500 })
    wakes[0]?.()
    await screens(server, 2)
  })

  test('waits as long as the server requests in its bye', async () => {
    const clock = new SkippingClock()
    const server = await serve()
    const session = await openSession(server, { clock })
    await session.ready
    server.say({ type: 'bye', data: { reason: 'restart', retry_after_ms: 700 } })
    server.screens[0]?.socket.close(1012)
    await until(session, () => session.status.type === 'waiting')
    expect(session.status).toEqual({ type: 'waiting', delayMs: 700 })
  })
})

/** Resolves when the server has sent such a frame. */
async function sends(server: ScriptedServer, type: string): Promise<void> {
  await new Promise<void>((resolve) => {
    server.script.outgoing = (frame) => {
      if (frame.includes(`"type":"${type}"`)) resolve()
      return [frame]
    }
  })
}

async function receives(server: ScriptedServer, type: ClientFrame['type']): Promise<void> {
  const socket = server.screens.at(-1)?.socket
  if (!socket) throw new Error('No screen is attached.')
  await new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer) => {
      if ((JSON.parse(data.toString()) as ClientFrame).type === type) resolve()
    })
  })
}

describe('pending commands', () => {
  test('are listed until they are answered, and the list is a new one after each change', async () => {
    const server = await serve()
    const session = await openSession(server)
    const states = (): string[] => session.pending.map(({ op, state }) => `${op} ${state}`)
    const seen = new Set([session.pending])
    let changes = 0
    session.subscribe(({ type }) => {
      if (type !== 'pending') return
      changes++
      expect(seen.has(session.pending)).toBe(false)
      seen.add(session.pending)
    })
    const first = session.run('retry', {}, { id: 'a' })
    expect(session.pending).toEqual([{ id: 'a', op: 'retry', args: {}, state: 'unsent' }])
    await session.ready
    await eventually(() => expect(states()).toEqual(['retry sent']))
    await first.catch(() => undefined)
    await eventually(() => expect(states()).toEqual([]))
    expect(changes).toBe(3)
  })

  test('are unconfirmed after a cut or a reload, and closed handles have none', async () => {
    const storage = memoryStorage()
    const server = await serve({ outgoing: (frame) => (frame.includes('"ack"') ? [] : [frame]) })
    const session = await openSession(server, { storage })
    await session.ready
    session.run('retry', {}, { id: 'a' }).catch(() => undefined)
    await eventually(() => expect(session.pending).toMatchObject([{ id: 'a', state: 'sent' }]))
    const cut = new Promise<void>((resolve) => {
      session.subscribe(({ type }) => {
        if (type === 'pending' && session.pending[0]?.state === 'unconfirmed') resolve()
      })
    })
    server.screens[0]?.socket.terminate()
    await cut
    await session.close()
    expect(session.pending).toEqual([])
    const reloaded = await openSession(server, { storage })
    expect(reloaded.pending).toMatchObject([{ id: 'a', op: 'retry', state: 'unconfirmed' }])
  })
})
