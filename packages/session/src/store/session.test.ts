import { describe, expect, test, vi } from 'vitest'
import type { AppendResult, Claim, LogStore, WritableLog } from '../log/log-store.ts'
import { localScope } from '../log/log-store.ts'
import type { DiskLine } from '../line/line.ts'
import { text } from '../line/message.ts'
import { sealLine } from '../line/seal-line.ts'
import type { Session } from './session.ts'
import { SessionStore } from './session-store.ts'
import { MemoryLogStore, memoryStore } from '../stores/memory/memory-store.ts'
import { assistant, said, user } from '../testing/builders.ts'
import { changedPort } from '../testing/changed-port.ts'

const message = (words: string, id?: string) => ({
  draft: {
    type: 'message' as const,
    ...(id !== undefined && { id }),
    message: { role: 'user' as const, content: [text(words)] },
  },
})

describe('lines that are appended together', () => {
  test('follow each other and are one batch', async () => {
    const { session, batches } = await sessionOn()
    await user(session, 'before')
    batches.length = 0
    const start = { draft: { type: 'run_start' as const, runStart: { runId: 'r', leafId: 'second' } } }
    const lines = await session.appendAll([message('one'), message('two', 'second'), start])
    expect(lines.map(({ type }) => type)).toEqual(['message', 'message', 'run_start'])
    expect([batches, session.leafId]).toEqual([[3], 'second'])
    expect(await said(session)).toEqual(['user: before', 'user: one', 'user: two'])
  })

  test('are not appended if one of them is invalid', async () => {
    const { session } = await sessionOn()
    const kept = await user(session, 'kept')
    let deep: unknown = 1
    for (let depth = 0; depth < 2000; depth++) deep = [deep]
    const tooDeep = { draft: { type: 'custom' as const, custom: { customType: 'deep', data: { deep } } } }
    await expect(session.appendAll([message('lost'), tooDeep])).rejects.toMatchObject({ code: 'invalid-entry' })
    expect(session.leafId).toBe(kept)
    await user(session, 'after')
    expect(await said(session)).toEqual(['user: kept', 'user: after'])
  })

  test('are large in parts: those behind a large one keep their order', async () => {
    const { session } = await sessionOn()
    const large = 'x'.repeat(300_000)
    await session.appendAll([message('first'), message(large), message('last')])
    expect(await said(session)).toEqual(['user: first', `user: ${large}`, 'user: last'])
  })
})

describe('lines of an earlier time', () => {
  test('have that time, in the form of the log', async () => {
    const store = memoryStore()
    const session = await store.create({ timestamp: '2024-05-06T07:08:09Z' })
    await session.append(message('then').draft, { timestamp: '2024-05-06T09:10:11+02:00' })
    expect(session.header?.timestamp).toBe('2024-05-06T07:08:09.000Z')
    expect((await session.lastLine())?.timestamp).toBe('2024-05-06T07:10:11.000Z')
    expect(session.info).toMatchObject({ created: '2024-05-06T07:08:09.000Z', modified: '2024-05-06T07:10:11.000Z' })
  })

  test('are refused if the time is none', async () => {
    const session = await memoryStore().create()
    const appended = Promise.resolve().then(() => session.append(message('never').draft, { timestamp: 'yesterday' }))
    await expect(appended).rejects.toMatchObject({ code: 'invalid-entry' })
    await expect(memoryStore().create({ timestamp: '' })).rejects.toMatchObject({ code: 'invalid-entry' })
  })
})

describe('sessions of a process that has died', () => {
  interface Abandoned {
    store: SessionStore
    /** Their logs cannot be read. */
    broken: Set<string>
    /** Their logs cannot be closed, once. */
    stuck: Set<string>
    /** Called when their logs are closed, once. */
    atClose: Map<string, () => void>
    /** What the next call finds. */
    waiting: string[]
  }

  /** Each of them is abandoned again when it is handed over. */
  async function abandoned(ids: readonly string[]): Promise<Abandoned> {
    const waiting: string[] = []
    const broken = new Set<string>()
    const stuck = new Set<string>()
    const atClose = new Map<string, () => void>()
    const port = changedPort(new MemoryLogStore(), {
      store: (inner) => ({
        claimAbandoned: async (scope, { limit }) => {
          const claimed = waiting.splice(0, limit).map(async (sessionId) => {
            const claim = await inner.claim(scope, sessionId, { insist: true })
            return claim.type === 'claimed' ? [{ sessionId, log: claim.log }] : []
          })
          return (await Promise.all(claimed)).flat()
        },
      }),
      log: (log, { sessionId }) => ({
        lines: (from) => {
          if (broken.has(sessionId)) throw new Error(`cannot read ${sessionId}`)
          return log.lines(from)
        },
        close: () => {
          const call = atClose.get(sessionId)
          atClose.delete(sessionId)
          call?.()
          return stuck.delete(sessionId) ? Promise.reject(new Error('no answer')) : log.close()
        },
        handOver: async () => {
          waiting.push(sessionId)
          await log.close()
        },
      }),
    })
    const store = new SessionStore(port)
    for (const id of ids) await (await store.create({ id })).close()
    waiting.push(...ids)
    return { store, broken, stuck, atClose, waiting }
  }

  test('are opened even if one of them cannot be, which a later call opens', async () => {
    const { store, broken, waiting } = await abandoned(['one', 'two', 'three'])
    broken.add('two')
    const opened = await store.openAbandoned()
    expect(opened?.map(({ id }) => id)).toEqual(['one', 'three'])
    for (const session of opened ?? []) {
      await user(session, 'going on')
      await session.close()
    }
    expect(waiting).toEqual(['two'])
    await expect(store.openAbandoned()).rejects.toThrow('cannot read two')
    expect(waiting).toEqual(['two'])
    broken.clear()
    const [last] = (await store.openAbandoned()) ?? []
    expect(last?.id).toBe('two')
    await last?.close()
  })

  test.each([
    ['is handed over if one of its handles says so, even if another one is closed later', [true, undefined], true],
    ['is handed over if the last handle says so', [undefined, true], true],
    ['is kept if one handle says that it goes on here, whatever the last one says', [false, true], false],
    ['is kept if the last handle says that it goes on here', [true, false], false],
    ['is closed if no handle says anything', [undefined, undefined], false],
  ] as const)('a session with an open run %s', async (_, wishes, isHandedOver) => {
    const { store, waiting } = await abandoned(['one'])
    waiting.length = 0
    const handles = [await store.open('one'), await store.open('one')]
    await handles[0]?.append({ type: 'run_start', runStart: { runId: 'r', leafId: null } })
    for (const [index, handOver] of wishes.entries()) {
      await handles[index]?.close(handOver === undefined ? {} : { handOver })
    }
    expect(waiting).toEqual(isHandedOver ? ['one'] : [])
  })

  test('a session whose only unfinished work is a command of the user is handed over', async () => {
    const { store, waiting } = await abandoned(['one'])
    waiting.length = 0
    const session = await store.open('one')
    await session.append({ type: 'bash_start', bashStart: { messageId: 'm', command: 'make' } })
    await session.close({ handOver: true })
    expect(waiting).toEqual(['one'])
  })

  test('are handed over if another opener of this process is told first that they are owned', async () => {
    const { store, atClose, waiting } = await abandoned(['one'])
    await store.open('one')
    const others: Promise<Session>[] = []
    atClose.set('one', () => others.push(store.open('one')))
    await expect(store.openAbandoned()).rejects.toMatchObject({ code: 'session-owned' })
    expect((await others[0])?.owner).toBeDefined()
    expect(waiting).toEqual(['one'])
    const [opened] = (await store.openAbandoned()) ?? []
    expect(opened?.id).toBe('one')
  })

  test('are opened even if this process had one of them before and cannot close it', async () => {
    const { store, stuck } = await abandoned(['one', 'two'])
    const before = await store.open('one')
    stuck.add('one')
    const opened = await store.openAbandoned()
    expect(opened?.map(({ id }) => id)).toEqual(['one', 'two'])
    await expect(user(before, 'too late')).rejects.toMatchObject({ code: 'session-closed' })
    for (const session of opened ?? []) await session.close()
  })
})

test('lines that were just appended are not read from the store, unless there are many', async () => {
  const { session, reads } = await sessionOn()
  for (const words of ['one', 'two']) await user(session, words)
  expect(await said(session)).toEqual(['user: one', 'user: two'])
  expect(reads).toEqual([])
  const long = Array.from({ length: 40 }, (_, index) => `${index} ${'x'.repeat(10_000)}`)
  for (const words of long) await user(session, words)
  expect(await said(session)).toEqual(['one', 'two', ...long].map((words) => `user: ${words}`))
  expect(reads.length).toBeGreaterThan(0)
})

describe('a failing store', () => {
  test('lines that could not be stored are gone, and the session continues after the last durable line', async () => {
    const { session, faults } = await sessionOn()
    const kept = await user(session, 'kept')
    faults.next = { type: 'failed', cause: new Error('ENOSPC: no space left'), final: false }
    const lost = await Promise.allSettled([user(session, 'lost'), user(session, 'on top of it')])
    expect(lost.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(session.leafId).toBe(kept)
    expect(session.storageFailure).toMatchObject({ code: 'storage-failed' })
    expect(session.storageFailure?.message).toMatch(/no space left/)
    await user(session, 'after')
    expect(session.storageFailure).toBeUndefined()
    expect(await said(session)).toEqual(['user: kept', 'user: after'])
  })

  test('a large value whose blob cannot be stored fails, with the appends behind it', async () => {
    const { session, faults } = await sessionOn()
    await user(session, 'kept')
    faults.blob = new Error('EIO')
    const lost = await Promise.allSettled([user(session, 'x'.repeat(300_000)), user(session, 'behind')])
    expect(lost.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    faults.blob = undefined
    await user(session, 'y'.repeat(300_000))
    expect(await said(session)).toEqual(['user: kept', `user: ${'y'.repeat(300_000)}`])
  })

  test('an entry with many small values is kept', async () => {
    const { session } = await sessionOn()
    const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`key ${index}`, index]))
    const id = await session.appendCustomEntry('wide', data)
    expect(await session.getEntry(id)).toMatchObject({ custom: { customType: 'wide', data } })
  })

  test('an entry whose payload itself has too many members for a line is rejected', async () => {
    const { session } = await sessionOn()
    const members = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`key ${index}`, index]))
    const error = { kind: 'unknown', message: 'wide', ...members } as const
    await expect(session.append({ type: 'error', error })).rejects.toMatchObject({ code: 'invalid-entry' })
    await user(session, 'goes on')
    expect(await said(session)).toEqual(['user: goes on'])
  })

  test('a fenced writer stays fenced', async () => {
    const { session, faults } = await sessionOn()
    faults.next = { type: 'fenced', reason: 'term 7' }
    await expect(user(session, 'a')).rejects.toMatchObject({ code: 'fenced' })
    await expect(user(session, 'b')).rejects.toMatchObject({ code: 'fenced' })
  })

  test('an unknown outcome is settled by claiming again: stored lines are acknowledged once', async () => {
    const { session, faults } = await sessionOn()
    await user(session, 'before')
    faults.unknown = 'written'
    await user(session, 'written')
    await user(session, 'after')
    expect(await said(session)).toEqual(['user: before', 'user: written', 'user: after'])
    const terms: unknown[] = []
    for await (const line of session.lines()) {
      const parsed = line.type === 'line' ? (JSON.parse(line.text) as { writer?: { term: number } }) : {}
      if (parsed.writer) terms.push(parsed.writer.term)
    }
    expect(terms).toEqual([1, 2])
  })

  test('an unknown outcome whose lines are missing is tried again, and nothing is duplicated', async () => {
    const { session, faults } = await sessionOn()
    await user(session, 'before')
    faults.unknown = 'absent'
    await user(session, 'absent')
    await user(session, 'after')
    expect(await said(session)).toEqual(['user: before', 'user: absent', 'user: after'])
  })

  test('an unknown outcome is fenced if another writer took over', async () => {
    const { session, faults } = await sessionOn()
    faults.unknown = 'taken'
    await expect(user(session, 'x')).rejects.toMatchObject({ code: 'fenced' })
  })
})

describe('readers', () => {
  test('a cycle of entries and an entry that is its own parent do not hide earlier entries', async () => {
    const session = await loaded(
      plain('first', null),
      plain('second', 'first'),
      plain('a', 'b'),
      plain('b', 'a'),
      plain('self', 'self'),
      plain('last', 'self'),
    )
    expect(await said(session)).toEqual(['first', 'second', 'a', 'b', 'self', 'last'].map((id) => `user: ${id}`))
    expect(session.damage.length).toBe(2)
  })

  test('a thinking level is read under its older name, flat or nested', async () => {
    const session = await loaded(plain('first', null), {
      type: 'thinking_level_change',
      id: 't',
      parent_id: 'first',
      thinking_level_change: { thinking_level: 'high' },
    })
    expect((await session.getContext()).thinkingLevel).toBe('high')
  })

  test('clearing the queue keeps a queued steer', async () => {
    const store = memoryStore()
    const session = await store.create()
    await session.submit('steer', { delivery: 'steer' })
    await session.submit('follow-up')
    await store.queue(session.id).clear()
    expect(session.inbox.messages.map(({ message }) => message)).toEqual(['steer'])
  })

  test('lost lines are reported at their place', async () => {
    const port = new MemoryLogStore()
    const store = new SessionStore(port)
    await port.create(localScope, 'holed', sealLine({ type: 'session', id: 'holed', version: 1 }, 1))
    const claim = (await port.claim(localScope, 'holed')) as Claim & { type: 'claimed' }
    const entry = (id: string, seq: number) => sealLine({ type: 'custom', id, parent_id: null }, seq)
    const broken = { ...entry('b', 3), text: entry('b', 3).text.replace('custom', 'custOm') }
    await claim.log.append([entry('a', 2), broken, entry('c', 4), { ...broken, text: 'garbage' }], {
      term: 1,
      head: 1,
      durability: 'durable',
    })
    await claim.log.close()
    const session = await store.open('holed', { readOnly: true })
    const shown: unknown[] = []
    for await (const line of session.lines()) shown.push(line.type === 'lost' ? line : line.seq)
    expect(shown).toEqual([1, 2, { type: 'lost', seq: 3, count: 1 }, 4, { type: 'lost', seq: 5, count: 1 }])
    expect(session.damage.map(({ seq, count, isNew }) => [seq, count, isNew])).toEqual([
      [3, 1, true],
      [5, 1, true],
    ])
    expect(session.inbox.hold).toEqual({ reason: 'lines of the log were lost' })
  })

  test('repair acknowledges damage once and rewrites nothing', async () => {
    const port = new MemoryLogStore()
    await port.create(localScope, 's', sealLine({ type: 'session', id: 's', version: 1 }, 1))
    const claim = (await port.claim(localScope, 's')) as Claim & { type: 'claimed' }
    await claim.log.append([{ seq: 2, crc: '', text: 'garbage' }], { term: 1, head: 1, durability: 'durable' })
    await claim.log.close()
    const session = await new SessionStore(port).open('s')
    expect(await session.repair()).toBe(1)
    expect(await session.repair()).toBe(0)
    await session.close()
    const again = await new SessionStore(port).open('s')
    expect(again.damage).toMatchObject([{ isNew: false, count: 1 }])
  })

  test('every kind of event plays back in the order of the log', async () => {
    const session = await memoryStore().create()
    await user(session, 'go')
    await session.append({ type: 'error', error: { message: 'oops' } })
    await session.append({ type: 'session_end', sessionEnd: { reason: 'done' } })
    const player = await session.play()
    expect(player.events().map(({ type }) => type)).toEqual(['session_start', 'user_prompt', 'error', 'session_end'])
    expect(session.info.status).toBe('ended')
  })

  test('a listener receives lines until it unsubscribes or the session closes', async () => {
    const store = memoryStore()
    const session = await store.create()
    const other = await store.open(session.id)
    const heard: string[] = []
    const stop = session.subscribe(({ line }) => heard.push(line.type))
    session.subscribe(({ seq }) => heard.push(String(seq)))
    await user(other, 'one')
    stop()
    await session.close()
    await user(other, 'two')
    expect(heard).toEqual(['writer', '2', 'message', '3'])
    await other.close()
  })

  test('a listener that throws does not fail the append, and the others receive the line', async () => {
    const later: (() => void)[] = []
    vi.stubGlobal('queueMicrotask', (work: () => void) => later.push(work))
    try {
      const session = await memoryStore().create()
      const heard: string[] = []
      session.subscribe(() => {
        throw new Error('broken listener')
      })
      session.subscribe(({ line }) => heard.push(line.type))
      await user(session, 'one')
      await user(session, 'two')
      expect(heard).toEqual(['writer', 'message', 'message'])
      for (const work of later) expect(work).toThrow('broken listener')
      expect(later).toHaveLength(3)
    } finally {
      vi.unstubAllGlobals()
    }
  })

  test('a pending permission is returned as requested, and a grant stays', async () => {
    const session = await memoryStore().create()
    const option = { optionId: 'yes', label: 'Yes', kind: 'allow_always' as const }
    const request = { requestId: 'p1', tool: 'bash', title: 'ls', input: { raw_name: 1 }, options: [option] }
    await session.append({ type: 'permission_request', permissionRequest: request })
    expect(session.pendingPermissions).toEqual([request])
    expect(session.info.status).toBe('requires_action')
    const result = { requestId: 'p1', outcome: 'allowed' as const, grant: { tool: 'bash' } }
    await session.append({ type: 'permission_result', permissionResult: result })
    expect(session.pendingPermissions).toEqual([])
    expect(session.grants).toEqual([{ tool: 'bash' }])
  })

  test('after a quick open, branching to before the context reads the missing part', async () => {
    const store = memoryStore()
    const session = await store.create()
    const first = await user(session, 'first')
    for (let index = 0; index < 50; index++) await user(session, `old ${index}`)
    const kept = await user(session, 'kept')
    await session.appendCompaction('sum', kept, 1)
    const id = session.id
    await session.close()
    const again = await store.open(id)
    await user(again, 'more')
    expect(await said(again)).toEqual(['compactionSummary: sum', 'user: kept', 'user: more'])
    await again.setLabel(first, 'start')
    await again.branch(first)
    await assistant(again, 'other way')
    expect(await said(again)).toEqual(['user: first', 'assistant: other way'])
    expect((await again.getContextPath()).map((entry) => entry.type)).toEqual(['message', 'message'])
    await again.close()
  })

  test('a compaction evicts cached entries of the context before it', async () => {
    const session = await memoryStore().create()
    const first = await user(session, 'first')
    const held = await session.getEntry(first)
    expect(await session.getEntry(first)).toBe(held)
    await session.appendCompaction('sum', await user(session, 'kept'), 1)
    const read = await session.getEntry(first)
    expect(read).toEqual(held)
    expect(read).not.toBe(held)
  })

  test('a branch does not start at a note', async () => {
    const session = await memoryStore().create()
    const label = await session.setLabel(await user(session, 'a'), 'x')
    await expect(session.branch(label)).rejects.toMatchObject({ code: 'invalid-entry' })
  })

  test('timestamps that jump back do not change the order', async () => {
    const times = ['2026-03-29T01:59:59.999Z', '2026-03-28T00:00:00.000Z', '2027-01-01T00:00:00.000Z']
    let next = 0
    const store = memoryStore({ now: () => new Date(times[next++ % times.length] as string) })
    const session = await store.create()
    for (let index = 0; index < 10; index++) await user(session, `${index}`)
    expect(await said(session)).toEqual(Array.from({ length: 10 }, (_, index) => `user: ${index}`))
  })
})

function plain(id: string, parentId: string | null): DiskLine {
  return {
    type: 'message',
    id,
    parent_id: parentId,
    timestamp: '2026-01-01T00:00:00Z',
    message: { role: 'user', content: [{ type: 'text', text: { content: id } }] },
  }
}

/** A session loaded from plain lines, without seq and checksum. */
async function loaded(...lines: DiskLine[]): Promise<Session> {
  const port = new MemoryLogStore()
  await port.create(localScope, 'plain', { seq: 1, crc: '', text: '{"type":"session","id":"plain","version":1}' })
  const claim = (await port.claim(localScope, 'plain')) as Claim & { type: 'claimed' }
  const stored = lines.map((line, index) => ({ seq: index + 2, crc: '', text: JSON.stringify(line) }))
  await claim.log.append(stored, { term: 1, head: 1, durability: 'durable' })
  await claim.log.close()
  return new SessionStore(port).open('plain', { readOnly: true })
}

interface Faults {
  next: AppendResult | undefined
  blob: Error | undefined
  unknown: 'written' | 'absent' | 'taken' | undefined
}

/** A session in memory whose store fails on request. */
interface Watched {
  session: Session
  faults: Faults
  /** How many lines each append had. */
  batches: number[]
  /** How many lines each read asked for. */
  reads: number[]
}

async function sessionOn(): Promise<Watched> {
  const faults: Faults = { next: undefined, blob: undefined, unknown: undefined }
  const batches: number[] = []
  const reads: number[] = []
  const port: LogStore = new MemoryLogStore()
  const claim = port.claim.bind(port)
  port.claim = async (...args) => {
    const claimed = await claim(...args)
    if (claimed.type !== 'claimed') return claimed
    const { log } = claimed
    const [append, readAt] = [log.append.bind(log), log.readAt.bind(log)]
    log.append = (lines, options) => (batches.push(lines.length), append(lines, options))
    log.readAt = (positions) => (reads.push(positions.length), readAt(positions))
    return { type: 'claimed', log: withFaults(log, faults) }
  }
  return { session: await new SessionStore(port).create(), faults, batches, reads }
}

function withFaults(log: WritableLog, faults: Faults): WritableLog {
  const append = log.append.bind(log)
  const putBlob = log.putBlob.bind(log)
  const reclaim = log.reclaim.bind(log)
  log.append = async (lines, options) => {
    const { next, unknown } = faults
    faults.next = undefined
    if (next) return next
    if (unknown === 'written') await append(lines, options)
    return unknown ? { type: 'unknown', cause: new Error('connection lost') } : append(lines, options)
  }
  log.reclaim = async () => {
    const isTaken = faults.unknown === 'taken'
    faults.unknown = undefined
    return isTaken ? { type: 'owned', owner: { reason: 'node 2 has it' } } : reclaim()
  }
  log.putBlob = async (bytes) => {
    if (faults.blob) throw faults.blob
    return putBlob(bytes)
  }
  return log
}

test('text() returns the text of a message', () => {
  expect(text('a')).toEqual({ type: 'text', text: { content: 'a' } })
})

describe('taking a queued message', () => {
  test('of two concurrent deliveries of one message only one succeeds, and it is appended once', async () => {
    const session = await memoryStore().create()
    const { id } = await session.submit('once')
    const outcomes = await Promise.allSettled([session.deliver(id), session.deliver(id), session.deliver(id)])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(await said(session)).toEqual(['user: once'])
  })

  test('a message that is being delivered can be neither removed, edited nor taken again', async () => {
    const store = memoryStore()
    const session = await store.create()
    const other = await store.open(session.id)
    const { id } = await session.submit('once')
    const delivered = session.deliver(id)
    expect(other.nextWaiting('follow-up')).toBeUndefined()
    expect(other.inbox.messages).toEqual([])
    await expect(other.changeInbox({ action: 'remove', id })).rejects.toMatchObject({ code: 'message-not-found' })
    await expect(other.changeInbox({ action: 'edit', id, message: 'x' })).rejects.toMatchObject({
      code: 'message-not-found',
    })
    await expect(store.queue(session.id).pop()).rejects.toMatchObject({ code: 'queue-empty' })
    await delivered
  })

  test('a delivery applies pending changes, whose lines come before its own', async () => {
    const session = await memoryStore().create()
    const { id: first } = await session.submit('first')
    const { id: second } = await session.submit('second')
    const changes = [
      session.changeInbox({ action: 'move', id: second, beforeId: first }),
      session.changeInbox({ action: 'edit', id: second, message: 'better' }),
    ]
    expect(session.nextWaiting('follow-up')).toMatchObject({ id: second, message: 'better' })
    await Promise.all([...changes, session.deliver(second)])
    const [entry] = await session.getContextPath()
    expect(entry).toMatchObject({ message: { content: [text('better')] } })
    const added = session.submit('third')
    await session.changeInbox({ action: 'hold', id: first })
    const { id: third } = await added
    expect(session.nextWaiting('follow-up')?.id).toBe(third)
    await session.changeInbox({ action: 'release', id: first })
    const held = session.changeInbox({ action: 'hold' })
    expect(session.nextWaiting('follow-up')).toBeUndefined()
    await held
    const cleared = session.changeInbox({ action: 'clear' })
    await expect(session.deliver(first)).rejects.toMatchObject({ code: 'message-not-found' })
    await cleared
    expect(session.inbox.messages).toEqual([])
    await session.close()
  })

  test('a message is delivered only when it is durable itself', async () => {
    const session = await memoryStore().create()
    const submitted = session.submit('soon')
    expect(session.nextWaiting('follow-up')).toBeUndefined()
    const { id } = await submitted
    expect(session.nextWaiting('follow-up')?.id).toBe(id)
    const changes = [session.submit('later'), session.changeInbox({ action: 'move', id, beforeId: null })]
    expect(session.nextWaiting('follow-up')).toBeUndefined()
    await Promise.all(changes)
    expect(session.nextWaiting('follow-up')?.message).toBe('later')
    await session.close()
  })

  test('a delivery that could not be stored leaves the message queued', async () => {
    const { session, faults } = await sessionOn()
    const { id } = await session.submit('again')
    faults.next = { type: 'failed', cause: new Error('ENOSPC'), final: false }
    await expect(session.deliver(id)).rejects.toMatchObject({ code: 'storage-failed' })
    expect(session.nextWaiting('follow-up')?.id).toBe(id)
    await session.deliver(id)
    expect(await said(session)).toEqual(['user: again'])
  })
})

test('a large value with a lone surrogate, or a byte order mark at its start, is restored unchanged', async () => {
  const session = await memoryStore().create()
  const words = [`\ufeff${'x'.repeat(300_000)}`, `${'y'.repeat(300_000)}\ud83d`]
  for (const each of words) await user(session, each)
  expect(await said(session)).toEqual(words.map((each) => `user: ${each}`))
})
