import { AgentSession, onlyModel, allowAll, defineTool } from '@tapetree/agent'
import { FakeClock, script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore, newId, SessionStore, text, type Session } from '@tapetree/session'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import { MemoryLogStore, type AbandonedLog, type WritableLog } from '@tapetree/session/log-store'
import { openFileStore } from '@tapetree/session/stores/file'
import { changedPort } from '@tapetree/session/testing'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { AgentDriver } from '../drivers/agent-driver.ts'
import { LiveSessions } from './live-sessions.ts'
import { LocalSession } from '../local/local-session.ts'
import {
  decideRecovery,
  recoverAbandoned,
  recoverOpened,
  recoverSessions,
  type Evidence,
  type RecoveryPolicy,
} from './recovery.ts'

/** Allows for a busy machine. */
const patiently = { timeout: 20_000 }

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const minuteMs = 60_000
const call = { type: 'tool_use' as const, toolUse: { id: '1', name: 'act', input: {} } }

interface PlaceOptions {
  maxLive?: number
  /** Changes a driver, or throws as if it could not be opened. */
  openDriver?: (driver: AgentDriver) => AgentDriver
}

/** A store whose lines have times of the clock, and sessions over it. */
function place(
  store: SessionStore,
  clock: FakeClock,
  says: ScriptBuilder = script().text('Done.'),
  { maxLive = 1000, openDriver = (driver) => driver }: PlaceOptions = {},
): LiveSessions {
  const model = scriptedModel(says, { clock })
  const sessions = new LiveSessions({
    store,
    clock,
    maxLive,
    create: () => Promise.reject(new Error('not here')),
    openDriver: async (sessionId) => {
      const options = {
        models: onlyModel(model),
        tools: () => [model.tool('act')],
        gate: () => allowAll,
        owner: 'server',
      }
      const agent = await AgentSession.open({ store, sessionId, cwd: '/', hasSubagents: false, ...options })
      try {
        return openDriver(new AgentDriver({ agent }))
      } catch (error) {
        await agent.close()
        throw error
      }
    },
  })
  cleanUps.push(() => sessions.close())
  return sessions
}

async function leave(store: SessionStore, work: (session: Session) => Promise<unknown>): Promise<string> {
  await using session = await store.create({ cwd: '/' })
  await work(session)
  return session.id
}

/** As a process leaves it that died while a tool ran. */
async function inTheMiddle(session: Session): Promise<void> {
  const leafId = await session.appendMessage('user', [text('work')], { with: { runId: 'r' } })
  await session.append({ type: 'run_start', runStart: { runId: 'r', leafId, owner: 'server' } })
  const entryId = await session.appendMessage('assistant', [call], { with: { runId: 'r', stopReason: 'tool-calls' } })
  await session.append({ type: 'tool_start', toolStart: { runId: 'r', callId: '1', name: 'act', entryId } })
}

async function types(store: SessionStore, id: string): Promise<string[]> {
  await using session = await store.open(id, { readOnly: true })
  const found: string[] = []
  for await (const stored of session.lines()) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type === 'message') found.push(line.message.role)
    else if (line.type === 'run_end') found.push(`run_end ${line.runEnd.outcome}`)
    else if (line.type === 'run_start' || line.type === 'permission_result') found.push(line.type)
  }
  return found
}

async function settled(sessions: LiveSessions, id: string): Promise<void> {
  const live = await sessions.get(id)
  await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), patiently)
}

function fakes(): { store: SessionStore; clock: FakeClock } {
  const clock = new FakeClock()
  return { clock, store: memoryStore({ now: () => new Date(clock.now()) }) }
}

describe('the decision about an interrupted session', () => {
  const open: Evidence = {
    plan: { runId: 'r', needsPerson: false },
    hasOpenRun: true,
    owner: 'server',
    hasWaiting: false,
    hasOpenCommands: false,
    isDamaged: false,
    lastWrittenAt: 10,
  }
  const { plan: _, ...idle }: Evidence = { ...open, hasOpenRun: false }
  const withoutProgress = { ...open, plan: { runId: 'r', needsPerson: true } }

  test.each<[string, Evidence, RecoveryPolicy, string]>([
    ['an open run is resumed', open, 'resume', 'resume'],
    ['an open run waits for a person with the policy ask', open, 'ask', 'wait-for-person'],
    ['an open run is ended with the policy stop', open, 'stop', 'stop'],
    ['a run without progress after two resumes waits for a person', withoutProgress, 'resume', 'wait-for-person'],
    ['a run without progress after two resumes can be ended', withoutProgress, 'stop', 'stop'],
    ['one whose log lost lines waits for a person', { ...open, isDamaged: true }, 'resume', 'wait-for-person'],
    ['one interrupted too long ago waits for a person', { ...open, lastWrittenAt: 4 }, 'resume', 'wait-for-person'],
    ['one interrupted too long ago is not ended either', { ...open, lastWrittenAt: 4 }, 'stop', 'wait-for-person'],
    ['an unanswered message is answered', { ...open, hasOpenRun: false }, 'resume', 'resume'],
    ['an unanswered message has no run to end', { ...open, hasOpenRun: false }, 'stop', 'leave'],
    ['queued messages are delivered', { ...idle, hasWaiting: true }, 'resume', 'resume'],
    ['queued messages stay with the policy stop', { ...idle, hasWaiting: true }, 'stop', 'leave'],
    ['old queued messages stay', { ...idle, hasWaiting: true, lastWrittenAt: 4 }, 'resume', 'leave'],
    ['one with a command of the user is opened', { ...idle, hasOpenCommands: true }, 'resume', 'open'],
    ['an old one with a command is opened, too', { ...idle, hasOpenCommands: true, lastWrittenAt: 4 }, 'stop', 'open'],
    [
      'one with a command of the user is opened, also if its queued messages stay',
      { ...idle, hasOpenCommands: true, hasWaiting: true, lastWrittenAt: 4 },
      'resume',
      'open',
    ],
    [
      'an open run keeps its position until a person decides',
      { ...open, hasOpenCommands: true },
      'ask',
      'wait-for-person',
    ],
    ['a finished one is left alone', idle, 'resume', 'leave'],
    ['a run of a terminal waits for a person', { ...open, owner: 'terminal' }, 'resume', 'wait-for-person'],
    ['a run of a terminal is not ended', { ...open, owner: 'terminal' }, 'stop', 'wait-for-person'],
    [
      'queued messages in the session of a terminal stay',
      { ...idle, owner: 'terminal', hasWaiting: true },
      'resume',
      'leave',
    ],
  ])('%s', (_, evidence, policy, expected) => {
    expect(decideRecovery(evidence, { policy, since: 5, owners: ['server'] }).type).toBe(expected)
  })
})

test('the next start states the outcome of a command that was typed in a session without recent messages', async () => {
  const { store, clock } = fakes()
  const id = await leave(store, async (session) => {
    await session.appendMessage('user', [text('hello')])
    await session.appendMessage('assistant', [text('Hello.')])
    clock.advance(120 * minuteMs)
    await session.append({ type: 'bash_start', bashStart: { messageId: newId(), command: 'make' } })
  })
  const sessions = place(store, clock)
  expect(await recoverSessions(sessions, { clock })).toEqual([{ sessionId: id, step: { type: 'open' } }])
  expect((await types(store, id)).at(-1)).toBe('bashExecution')
})

describe('a server that takes over from one that has died', () => {
  /** A store in which another process takes a session over and dies, as often as it is asked for abandoned sessions. */
  function taken(
    beforeOpen = Promise.resolve(),
    changed: (log: WritableLog) => Partial<WritableLog> = () => ({}),
  ): {
    store: SessionStore
    clock: FakeClock
    ids: string[]
    handedOver: string[]
  } {
    const clock = new FakeClock()
    const ids: string[] = []
    const handedOver: string[] = []
    const port = changedPort(new MemoryLogStore(), {
      store: (inner) => ({
        open: async (...args) => {
          await beforeOpen
          return inner.open(...args)
        },
        claimAbandoned: async (scope) => {
          const claims = await Promise.all(ids.map((id) => inner.claim(scope, id, { insist: true })))
          return claims.flatMap((each, index) =>
            each.type === 'claimed' ? [{ sessionId: ids[index] as string, log: each.log }] : [],
          )
        },
      }),
      log: (log, { sessionId }) => ({
        ...changed(log),
        // The server has not been told yet that it had lost the session.
        lost: new AbortController().signal,
        handOver: async () => {
          handedOver.push(sessionId)
          await log.close()
        },
      }),
    })
    return { clock, ids, handedOver, store: new SessionStore(port, { now: () => new Date(clock.now()) }) }
  }

  test('resumes a session that was live here before', async () => {
    const { store, clock, ids } = taken()
    const sessions = place(store, clock)
    const id = await leave(store, inTheMiddle)
    const before = await sessions.get(id)
    ids.push(id)
    expect(await recoverAbandoned(sessions, { clock })).toEqual([{ sessionId: id, step: { type: 'resume' } }])
    await settled(sessions, id)
    expect((await types(store, id)).at(-1)).toBe('run_end completed')
    const live = await sessions.get(id)
    expect(live).not.toBe(before)
    expect(await live.perform('c', 'me', { op: 'rename', args: { name: 'mine again' } })).toMatchObject({ ok: true })
  })

  test('states the outcome of a command of the user, also if nobody opens the session', async () => {
    const { store, clock, ids } = taken()
    const sessions = place(store, clock)
    const bashStart = { messageId: newId(), command: 'make', host: 'another machine' }
    const id = await leave(store, (session) => session.append({ type: 'bash_start', bashStart }))
    ids.push(id)
    expect(await recoverAbandoned(sessions, { clock })).toEqual([{ sessionId: id, step: { type: 'open' } }])
    const live = await sessions.get(id)
    expect(live.session.openCommands).toEqual([])
    expect(await live.session.lastLine()).toMatchObject({
      type: 'message',
      message: { bashExecution: { command: 'make', output: expect.stringMatching(/^Outcome unknown/) } },
    })
  })

  test('continues all of many sessions at once, a few claims at a time, and opens no log again', async () => {
    const clock = new FakeClock()
    const ids: string[] = []
    const claims: number[] = []
    let opened = 0
    const port = changedPort(new MemoryLogStore(), {
      store: (inner) => ({
        claimAbandoned: async (scope, { limit }) => {
          const claimed = await Promise.all(
            ids.splice(0, limit).map(async (sessionId) => ({ sessionId, claim: await inner.claim(scope, sessionId) })),
          )
          claims.push(claimed.length)
          return claimed.flatMap(({ sessionId, claim }) =>
            claim.type === 'claimed' ? [{ sessionId, log: claim.log }] : [],
          )
        },
        open: (...args) => {
          opened++
          return inner.open(...args)
        },
      }),
    })
    const store = new SessionStore(port, { now: () => new Date(clock.now()) })
    const sessions = place(store, clock, script().wait(minuteMs).text('Done.'))
    for (let count = 0; count < 45; count++) ids.push(await leave(store, inTheMiddle))
    const all = [...ids]
    const stop = recoverOpened(sessions, { clock })
    const recovered = await recoverAbandoned(sessions, { clock })
    expect(recovered?.map(({ sessionId }) => sessionId).toSorted()).toEqual(all.toSorted())
    expect(claims).toEqual([20, 20, 5])
    expect(opened).toBe(0)
    stop()
  })

  test('knows what to do about a session after a few lines, however long its open run is', async () => {
    const read: number[] = []
    for (const turns of [2, 60]) {
      let linesRead = 0
      const { store, clock, ids } = taken(undefined, (log) => ({
        lines: async function* (from) {
          for await (const batch of log.lines(from)) {
            linesRead += batch.length
            yield batch
          }
        },
        readAt: (positions) => {
          linesRead += positions.length
          return log.readAt(positions)
        },
      }))
      const id = await leave(store, async (session) => {
        await inTheMiddle(session)
        for (let turn = 2; turn <= turns; turn++) {
          const result = { type: 'tool_result' as const, toolResult: { toolUseId: `${turn - 1}`, content: 'ok' } }
          await session.appendMessage('tool', [result], { with: { runId: 'r' } })
          const use = { type: 'tool_use' as const, toolUse: { id: `${turn}`, name: 'act', input: {} } }
          await session.appendMessage('assistant', [use], { with: { runId: 'r', stopReason: 'tool-calls' } })
        }
      })
      ids.push(id)
      linesRead = 0
      const step = { type: 'wait-for-person', reason: 'A person decides.' }
      expect(await recoverAbandoned(place(store, clock), { clock, policy: 'ask' })).toEqual([{ sessionId: id, step }])
      read.push(linesRead)
    }
    expect(read[1]).toBe(read[0])
  })

  test('continues a session that a client opens before it is found to be abandoned', async () => {
    const { store, clock } = fakes()
    const sessions = place(store, clock)
    const ids = [await leave(store, inTheMiddle), await leave(store, inTheMiddle)] as const
    const stop = recoverOpened(sessions, { clock })
    const live = await sessions.get(ids[0])
    await live.perform('c', 'me', { op: 'rename', args: { name: 'mine' } })
    await vi.waitFor(async () => expect((await types(store, ids[0])).at(-1)).toBe('run_end completed'), patiently)
    stop()
    await sessions.get(ids[1])
    expect((await types(store, ids[1])).at(-1)).toBe('assistant')
  })

  test('leaves a session that a client opens as it is, if nothing was interrupted', async () => {
    const { store, clock } = fakes()
    const sessions = place(store, clock)
    const id = await leave(store, (session) => session.appendSessionInfo('quiet'))
    const recovered: string[] = []
    recoverOpened(sessions, { clock, onRecovered: ({ sessionId }) => recovered.push(sessionId) })
    const live = await sessions.get(id)
    await live.perform('c', 'me', { op: 'rename', args: { name: 'still quiet' } })
    expect(await types(store, id)).toEqual([])
    expect(recovered).toEqual([])
  })

  test.each([
    ['that a person has stopped', (session: Session) => session.appendSessionInfo('new')],
    ['whose interrupted run a person has ended', inTheMiddle],
  ])('leaves a session %s as it is when a client opens it, with its queue', async (_, before) => {
    const { store, clock } = fakes()
    const id = await leave(store, before)
    const stopped = place(store, clock, script().wait(minuteMs).text('Done.'))
    const seen = await stopped.get(id)
    if (before !== inTheMiddle) await seen.perform('p', 'me', { op: 'prompt', args: { text: 'work' } })
    await seen.session.submit('later', { delivery: 'follow-up' })
    expect(await seen.perform('c', 'me', { op: 'cancel', args: {} })).toMatchObject({ ok: true })
    await stopped.close()
    const left = await types(store, id)
    expect(left.at(-1)).toMatch('run_end')
    const sessions = place(store, clock)
    recoverOpened(sessions, { clock })
    const live = await sessions.get(id)
    // Decides in the same way, and later.
    expect(await recoverSessions(sessions, { clock })).toEqual([])
    expect(await types(store, id)).toEqual(left)
    expect(live.session.inbox.messages).toHaveLength(1)
  })

  test('hands the session over if it is stopped after it has begun to continue it', async () => {
    const { store, clock, ids, handedOver } = taken()
    const id = await leave(store, inTheMiddle)
    ids.push(id)
    const suspended = Promise.withResolvers<void>()
    const model = scriptedModel(script().wait(minuteMs).text('Done.'), { clock })
    const sessions = new LiveSessions({
      store,
      clock,
      create: () => Promise.reject(new Error('not here')),
      openDriver: async (sessionId) => {
        const options = { models: onlyModel(model), tools: () => [model.tool('act')], gate: () => allowAll }
        const agent = await AgentSession.open({ store, sessionId, cwd: '/', hasSubagents: false, ...options })
        const driver = new AgentDriver({ agent })
        const perform = driver.perform.bind(driver)
        const suspend = driver.suspend.bind(driver)
        return Object.assign(driver, {
          perform: async (...args: Parameters<typeof perform>) => {
            const result = await perform(...args)
            void sessions.close()
            await suspended.promise
            return result
          },
          suspend: () => suspend().finally(suspended.resolve),
        })
      },
    })
    await recoverAbandoned(sessions, { clock })
    expect((await types(store, id)).at(-1)).toBe('tool')
    expect(handedOver).toEqual([id])
  })

  test('keeps the session if it is stopped while a command runs that only its machine can go on with', async () => {
    const { store, clock, ids, handedOver } = taken()
    const id = await leave(store, inTheMiddle)
    ids.push(id)
    const isRunning = Promise.withResolvers<void>()
    const wait = defineTool({
      name: 'wait',
      description: 'Runs for long.',
      schema: z.looseObject({}),
      access: () => [],
      replay: 'reattach',
      run: (_, { signal }) => {
        isRunning.resolve()
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
      },
    })
    const suspended = Promise.withResolvers<void>()
    const model = scriptedModel(script().toolCall('2', 'wait', {}), { clock })
    const sessions = new LiveSessions({
      store,
      clock,
      create: () => Promise.reject(new Error('not here')),
      openDriver: async (sessionId) => {
        const options = { models: onlyModel(model), tools: () => [model.tool('act'), wait], gate: () => allowAll }
        const agent = await AgentSession.open({ store, sessionId, cwd: '/', hasSubagents: false, ...options })
        const driver = new AgentDriver({ agent })
        const perform = driver.perform.bind(driver)
        const suspend = driver.suspend.bind(driver)
        return Object.assign(driver, {
          perform: async (...args: Parameters<typeof perform>) => {
            const result = await perform(...args)
            await isRunning.promise
            void sessions.close()
            await suspended.promise
            return result
          },
          suspend: () => suspend().finally(suspended.resolve),
        })
      },
    })
    await recoverAbandoned(sessions, { clock })
    expect(handedOver).toEqual([])
    await using left = await store.open(id, { readOnly: true })
    expect(left.openRun?.runId).toBe('r')
    expect(await left.currentOwner()).toBeUndefined()
  })

  test('keeps the session if it is stopped after it has reattached to a command that runs on its machine', async () => {
    const { store, clock, ids, handedOver } = taken()
    const id = await leave(store, inTheMiddle)
    ids.push(id)
    const reattached = Promise.withResolvers<void>()
    const act = defineTool({
      name: 'act',
      description: 'Runs for long.',
      schema: z.looseObject({}),
      access: () => [],
      replay: 'reattach',
      run: () => Promise.reject(new Error('It was started again.')),
      reattach: (_, __, { signal }) => {
        reattached.resolve()
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
      },
    })
    const suspended = Promise.withResolvers<void>()
    const sessions = new LiveSessions({
      store,
      clock,
      create: () => Promise.reject(new Error('not here')),
      openDriver: async (sessionId) => {
        const options = { models: onlyModel(scriptedModel(script())), tools: () => [act], gate: () => allowAll }
        const agent = await AgentSession.open({ store, sessionId, cwd: '/', hasSubagents: false, ...options })
        const driver = new AgentDriver({ agent })
        const perform = driver.perform.bind(driver)
        const suspend = driver.suspend.bind(driver)
        return Object.assign(driver, {
          perform: async (...args: Parameters<typeof perform>) => {
            const result = await perform(...args)
            await reattached.promise
            void sessions.close()
            await suspended.promise
            return result
          },
          suspend: () => suspend().finally(suspended.resolve),
        })
      },
    })
    await recoverAbandoned(sessions, { clock })
    expect(handedOver).toEqual([])
    await using left = await store.open(id, { readOnly: true })
    expect(left.openRun?.runId).toBe('r')
    expect(await left.currentOwner()).toBeUndefined()
  })

  test('hands the session over if it is stopped before it knows what to do, and ends after that', async () => {
    const opens = Promise.withResolvers<void>()
    const { store, clock, ids, handedOver } = taken(opens.promise)
    const id = await leave(store, inTheMiddle)
    ids.push(id)
    const sessions = place(store, clock)
    void recoverAbandoned(sessions, { clock })
    const closed = sessions.close()
    opens.resolve()
    await closed
    expect(handedOver).toEqual([id])
  })

  test('tries again if it fails, and keeps the session meanwhile', async () => {
    const { store, clock, ids } = taken()
    const id = await leave(store, inTheMiddle)
    ids.push(id)
    let failures = 2
    const model = scriptedModel(script().text('Done.'))
    const sessions = new LiveSessions({
      store,
      clock,
      create: () => Promise.reject(new Error('not here')),
      openDriver: async (sessionId) => {
        if (failures-- > 0) throw new Error('no answer')
        const options = { models: onlyModel(model), tools: () => [model.tool('act')], gate: () => allowAll }
        const agent = await AgentSession.open({ store, sessionId, cwd: '/', hasSubagents: false, ...options })
        return new AgentDriver({ agent })
      },
    })
    cleanUps.push(() => sessions.close())
    const recovering = recoverAbandoned(sessions, { clock })
    for (let attempt = 0; attempt < 2; attempt++) {
      await vi.waitFor(() => expect(clock.waits[0]).toBe(1000), patiently)
      await using other = await store.open(id, { readOnly: true })
      expect(await other.currentOwner()).toBeDefined()
      clock.advance(1000)
    }
    expect(await recovering).toEqual([{ sessionId: id, step: { type: 'resume' } }])
    await settled(sessions, id)
    expect((await types(store, id)).at(-1)).toBe('run_end completed')
  })
})

describe('a session that one server cannot continue', () => {
  /** Servers of one store. A session that is handed over is abandoned. */
  function service(): { open: () => SessionStore; clock: FakeClock; abandoned: string[] } {
    const clock = new FakeClock()
    const abandoned: string[] = []
    const port = changedPort(new MemoryLogStore(), {
      store: (inner) => ({
        claimAbandoned: async (scope, { limit, isWanted = () => true }) => {
          const logs: AbandonedLog[] = []
          for (const sessionId of abandoned.splice(0)) {
            const log = await inner.open(scope, sessionId)
            const { value: [header] = [] } = await log.lines(0)[Symbol.asyncIterator]().next()
            const claim =
              header && isWanted(header.bytes) && logs.length < limit && (await inner.claim(scope, sessionId))
            if (claim && claim.type === 'claimed') logs.push({ sessionId, log: claim.log })
            else abandoned.push(sessionId)
          }
          return logs
        },
      }),
      log: (log, { sessionId }) => ({
        handOver: async () => {
          abandoned.push(sessionId)
          await log.close()
        },
      }),
    })
    return { clock, abandoned, open: () => new SessionStore(port, { now: () => new Date(clock.now()) }) }
  }

  async function until(recovering: Promise<unknown>, clock: FakeClock, { failures }: { failures: number }) {
    for (let failure = 1; failure < failures; failure++) {
      await vi.waitFor(() => expect(clock.waits[0]).toBe(1000), patiently)
      clock.advance(1000)
    }
    return recovering
  }

  test.each([
    ['cannot be opened', 'openDriver'],
    ['is opened and cannot be resumed', 'perform'],
  ])('goes on at another one, if it %s', async (_, broken) => {
    const { open, clock, abandoned } = service()
    const id = await leave(open(), inTheMiddle)
    abandoned.push(id)
    const working = place(open(), clock)
    const failing = place(open(), clock, script(), {
      openDriver: (driver) => {
        if (broken === 'openDriver') throw new Error('no key')
        return Object.assign(driver, { perform: () => Promise.reject(new Error('no key')) })
      },
    })
    const recovered = await until(recoverAbandoned(failing, { clock }), clock, { failures: 11 })
    expect(recovered).toMatchObject([{ sessionId: id, step: { type: 'failed' } }])
    expect(abandoned).toEqual([id])
    expect(await recoverAbandoned(failing, { clock })).toEqual([])
    expect(await recoverAbandoned(working, { clock })).toEqual([{ sessionId: id, step: { type: 'resume' } }])
    await settled(working, id)
    expect((await types(open(), id)).at(-1)).toBe('run_end completed')
  })

  test('goes on there after a pause, if no other one continues it', async () => {
    const { open, clock, abandoned } = service()
    const id = await leave(open(), inTheMiddle)
    abandoned.push(id)
    let hasKey = false
    const sessions = place(open(), clock, script().text('Done.'), {
      openDriver: (driver) => {
        if (!hasKey) throw new Error('no key')
        return driver
      },
    })
    await until(recoverAbandoned(sessions, { clock }), clock, { failures: 11 })
    hasKey = true
    clock.advance(9_999)
    expect(await recoverAbandoned(sessions, { clock })).toEqual([])
    clock.advance(1)
    expect(await recoverAbandoned(sessions, { clock })).toEqual([{ sessionId: id, step: { type: 'resume' } }])
    await settled(sessions, id)
  })

  test.each([
    ['has no room', async (sessions: LiveSessions, other: string) => void (await sessions.get(other)), 'failed'],
    ['drains', async (sessions: LiveSessions) => void sessions.drain(new AbortController().signal), undefined],
  ])('is left to others at once, if the server %s', async (_, prepare, step) => {
    const { open, clock, abandoned } = service()
    const other = await leave(open(), (session) => session.appendSessionInfo('quiet'))
    const id = await leave(open(), inTheMiddle)
    abandoned.push(id)
    const sessions = place(open(), clock, script(), { maxLive: 1 })
    await prepare(sessions, other)
    const recovered = await recoverAbandoned(sessions, { clock })
    expect(recovered?.map((each) => each.step.type)).toEqual(step === undefined ? [] : [step])
    expect(abandoned).toEqual([id])
  })
})

describe('a restarted server', () => {
  test('resumes open runs, and leaves finished and old ones', async () => {
    const { store, clock } = fakes()
    const old = await leave(store, inTheMiddle)
    clock.advance(90 * minuteMs)
    const fresh = await leave(store, inTheMiddle)
    await leave(store, (session) => session.appendMessage('assistant', [text('done long since')]))
    clock.advance(5 * minuteMs)
    const sessions = place(store, clock)
    const recovered = await recoverSessions(sessions, { clock })
    expect(new Map(recovered.map(({ sessionId, step }) => [sessionId, step.type]))).toEqual(
      new Map([
        [fresh, 'resume'],
        [old, 'wait-for-person'],
      ]),
    )
    expect([...sessions.live.keys()]).toEqual([fresh])
    await settled(sessions, fresh)
    expect(await types(store, fresh)).toEqual([
      'user',
      'run_start',
      'assistant',
      'run_start',
      'tool',
      'assistant',
      'run_end completed',
    ])
    expect(await types(store, old)).toEqual(['user', 'run_start', 'assistant'])
  })

  test('answers a message whose run had not started, and delivers queued ones', async () => {
    const { store, clock } = fakes()
    const cause = { cmd: 'c', client: 'me' }
    const unheard = await leave(store, (session) => session.appendMessage('user', [text('anybody there?')], { cause }))
    const waiting = await leave(store, async (session) => {
      await session.appendMessage('assistant', [text('ready')])
      await session.submit('then this', { cause })
    })
    const sessions = place(store, clock, script().text('Yes.').step().text('Done.'))
    await recoverSessions(sessions, { clock })
    const ended = async (id: string): Promise<void> =>
      vi.waitFor(async () => expect((await types(store, id)).at(-1)).toBe('run_end completed'), patiently)
    await Promise.all([ended(unheard), ended(waiting)])
    expect(await types(store, unheard)).toEqual(['user', 'run_start', 'assistant', 'run_end completed'])
    expect(await types(store, waiting)).toEqual(['assistant', 'user', 'run_start', 'assistant', 'run_end completed'])
  })

  test('resumes runs of a server, but not those of a terminal, a program or a subagent', async () => {
    const { store, clock } = fakes()
    const leftBy = (owner?: string): Promise<string> =>
      leave(store, async (session) => {
        const leafId = await session.appendMessage('user', [text('work')], { with: { runId: 'r' } })
        const runStart = { runId: 'r', leafId, ...(owner !== undefined && { owner }) }
        await session.append({ type: 'run_start', runStart })
      })
    const ids = [await leftBy('server'), await leftBy('terminal'), await leftBy(), await leftBy('subagent')]
    await leave(store, (session) =>
      session.appendMessage('user', [text('the task')], { cause: { cmd: 'c', client: 'task' } }),
    )
    const sessions = place(store, clock)
    const steps = new Map((await recoverSessions(sessions, { clock })).map(({ sessionId, step }) => [sessionId, step]))
    expect(ids.map((id) => steps.get(id))).toEqual([
      { type: 'resume' },
      { type: 'wait-for-person', reason: 'It was interrupted in terminal.' },
      { type: 'wait-for-person', reason: 'It was interrupted in an unknown process.' },
      { type: 'wait-for-person', reason: 'It was interrupted in subagent.' },
    ])
    expect(steps.size).toBe(4)
    await settled(sessions, ids[0] as string)
    const others = await recoverSessions(sessions, { clock, owners: ['terminal'] })
    expect(others.filter(({ step }) => step.type === 'resume').map(({ sessionId }) => sessionId)).toEqual([ids[1]])
  })

  test('with the policy ask changes nothing, and shows in the state that a person must resume', async () => {
    const { store, clock } = fakes()
    const id = await leave(store, inTheMiddle)
    const sessions = place(store, clock)
    expect(await recoverSessions(sessions, { policy: 'ask', clock })).toMatchObject([
      { step: { type: 'wait-for-person' } },
    ])
    expect(sessions.live.size).toBe(0)
    const live = await sessions.get(id)
    expect(live.board.get('run')).toEqual({ run_id: 'r', is_busy: false, waiting_for: { type: 'resume', run_id: 'r' } })
    expect(await live.perform('c', 'me', { op: 'resume' })).toMatchObject({ ok: true, result: { run_id: 'r' } })
    await settled(sessions, id)
    expect(live.board.get('run')).toEqual({ run_id: null, is_busy: false, waiting_for: null })
  })

  test('with the policy stop answers open calls and requests, and ends the run as abandoned', async () => {
    const { store, clock } = fakes()
    const id = await leave(store, async (session) => {
      await inTheMiddle(session)
      const permissionRequest = { requestId: 'q', runId: 'r', tool: 'act', title: 'May I?', options: [] }
      await session.append({ type: 'permission_request', permissionRequest })
      await session.submit('then this')
    })
    const sessions = place(store, clock)
    expect(await recoverSessions(sessions, { policy: 'stop', clock })).toMatchObject([{ step: { type: 'stop' } }])
    const done = ['user', 'run_start', 'assistant', 'tool', 'permission_result', 'run_end abandoned']
    expect(await types(store, id)).toEqual(done)
    const { session } = await sessions.get(id)
    expect(session.inbox).toMatchObject({ hold: {}, messages: [{ message: 'then this' }] })
  })

  test('waits for a person after two resumes without progress', async () => {
    const { store, clock } = fakes()
    const id = await leave(store, async (session) => {
      const leafId = await session.appendMessage('user', [text('work')], { with: { runId: 'r' } })
      await session.append({ type: 'run_start', runStart: { runId: 'r', leafId, owner: 'server' } })
      for (const fruitless of [0, 1]) {
        await session.append({
          type: 'run_start',
          runStart: { runId: 'r', leafId, owner: 'server', resumes: 'r', fruitless },
        })
      }
    })
    const sessions = place(store, clock)
    const before = await types(store, id)
    expect(await recoverSessions(sessions, { clock })).toMatchObject([
      { sessionId: id, step: { type: 'wait-for-person', reason: 'Run r was resumed twice without progress.' } },
    ])
    expect(await types(store, id)).toEqual(before)
    const live = await sessions.get(id)
    expect(await live.perform('c', 'me', { op: 'resume' })).toMatchObject({ ok: true })
  })

  test('leaves a session alone that is at work meanwhile', async () => {
    const { store, clock } = fakes()
    const id = await leave(store, inTheMiddle)
    const go = Promise.withResolvers<void>()
    const sessions = place(
      store,
      clock,
      script()
        .do(() => go.promise)
        .text('Done.'),
    )
    const live = await sessions.get(id)
    await live.perform('c', 'me', { op: 'resume' })
    expect(await recoverSessions(sessions, { policy: 'stop', clock })).toEqual([])
    go.resolve()
    await settled(sessions, id)
    expect((await types(store, id)).at(-1)).toBe('run_end completed')
  })

  test('does not open the sessions that other processes are at work on', async () => {
    const port = new MemoryLogStore()
    const other = new SessionStore(port)
    const running = await other.create({ cwd: '/' })
    await inTheMiddle(running)
    const sessions = place(new SessionStore(port), new FakeClock(Date.now()))
    expect(await recoverSessions(sessions)).toEqual([{ sessionId: running.id, step: { type: 'owned' } }])
    expect(sessions.live.size).toBe(0)
    await running.close()
    expect(await recoverSessions(sessions)).toEqual([{ sessionId: running.id, step: { type: 'resume' } }])
  })

  test('reports why a session could not be resumed, and continues with the others', async () => {
    const { store, clock } = fakes()
    const ids = [await leave(store, inTheMiddle), await leave(store, inTheMiddle)]
    const sessions = new LiveSessions({
      store,
      clock,
      create: () => Promise.reject(new Error('not here')),
      openDriver: (id) => Promise.reject(new Error(`no key for ${id === ids[0] ? 'one' : 'two'}`)),
    })
    cleanUps.push(() => sessions.close())
    const recovered = await recoverSessions(sessions, { clock })
    expect(recovered.map(({ step }) => step)).toEqual(
      expect.arrayContaining([
        { type: 'failed', error: new Error('no key for one') },
        { type: 'failed', error: new Error('no key for two') },
      ]),
    )
  })

  test('resumes the work of a killed process: its call is not run again, and the next message is delivered', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'recovery-'))
    cleanUps.push(() => rm(folder, { recursive: true, force: true }))
    const program = fileURLToPath(new URL('../drivers/testing/doomed-server.ts', import.meta.url))
    const child = fork(program, [folder], { execArgv: ['-C', '@tapetree/source'] })
    cleanUps.push(() => child.kill('SIGKILL'))
    const [id] = (await once(child, 'message')) as [string]
    child.kill('SIGKILL')
    await once(child, 'exit')
    const store = openFileStore({ folder })
    cleanUps.push(() => store.close())
    const sessions = place(store, new FakeClock(Date.now()), script().text('It was cut off.').step().text('And this.'))
    expect(await recoverSessions(sessions)).toMatchObject([{ sessionId: id, step: { type: 'resume' } }])
    await settled(sessions, id)
    const resumed = ['run_start', 'tool', 'assistant', 'run_end completed']
    const next = ['user', 'run_start', 'assistant', 'run_end completed']
    expect(await types(store, id)).toEqual(['user', 'run_start', 'assistant', ...resumed, ...next])
  })

  test('a permission mode that a client set survives a killed server, and all screens see changes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'recovery-'))
    cleanUps.push(() => rm(folder, { recursive: true, force: true }))
    const program = fileURLToPath(new URL('../drivers/testing/doomed-server.ts', import.meta.url))
    const child = fork(program, [folder], { execArgv: ['-C', '@tapetree/source'] })
    cleanUps.push(() => child.kill('SIGKILL'))
    const [id] = (await once(child, 'message')) as [string]
    child.kill('SIGKILL')
    await once(child, 'exit')
    const store = openFileStore({ folder })
    cleanUps.push(() => store.close())
    const sessions = agentSessions({ store, models: onlyModel(scriptedModel(script())), mode: 'auto' })
    cleanUps.push(() => sessions.close())
    const screens = [await LocalSession.open({ sessions, sessionId: id })]
    screens.push(await LocalSession.open({ sessions, sessionId: id }))
    expect(screens.map((screen) => screen.state('config')?.mode)).toEqual(['accept-edits', 'accept-edits'])
    await screens[0]?.set({ mode: 'plan' })
    await vi.waitFor(() => expect(screens[1]?.state('config')?.mode).toBe('plan'))
    const live = await sessions.get(id)
    expect(live.session.effectOf('m')).toBeDefined()
    expect(await live.perform('m', 'me', { op: 'set_config', args: { mode: 'accept-edits' } })).toMatchObject({
      dup: true,
    })
  })
})
