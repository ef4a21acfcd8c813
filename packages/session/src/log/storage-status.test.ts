import { expect, test, vi } from 'vitest'
import type { Session, StorageStatus } from '../store/session.ts'
import { SessionStore } from '../store/session-store.ts'
import { MemoryLogStore } from '../stores/memory/memory-store.ts'
import { said } from '../testing/builders.ts'
import { changedPort } from '../testing/changed-port.ts'
import { SessionError } from '../errors.ts'
import type { AppendResult, WritableLog } from './log-store.ts'

test('a session says that it waits for its storage, and why, and goes on by itself', async () => {
  let failures = 3
  const { session, statuses } = await watched({
    append: (send) =>
      failures-- > 0 ? { type: 'failed', cause: new Error('no route'), final: false, isPassing: true } : send(),
  })
  await session.appendMessage('user', 'hello')
  expect(statuses()).toEqual(['waiting: no route', 'working'])
  expect(session.storage).toEqual({ type: 'working' })
})

test('a session says that it waits while it finds out whether its lines were stored', async () => {
  const reclaiming = Promise.withResolvers<void>()
  let isCut = true
  const { session, statuses } = await watched({
    append: (send) => {
      if (!isCut) return send()
      isCut = false
      return { type: 'unknown', cause: new Error('connection lost') }
    },
    reclaim: async (reclaim) => {
      await reclaiming.promise
      return reclaim()
    },
  })
  const appended = session.appendMessage('user', 'hello')
  await vi.waitFor(() => expect(statuses()).toEqual(['waiting: connection lost']))
  reclaiming.resolve()
  await appended
  expect(statuses()).toEqual(['waiting: connection lost', 'working'])
})

test('a session says that it waits if the storage does not answer', async () => {
  const answer = Promise.withResolvers<void>()
  const { session, statuses } = await watched({ append: (send) => answer.promise.then(send) })
  const appended = session.appendMessage('user', 'hello')
  await vi.waitFor(() => expect(statuses()).toEqual(['waiting: no answer for 2 seconds']))
  answer.resolve()
  await appended
  expect(statuses()).toEqual(['waiting: no answer for 2 seconds', 'working'])
})

test('a session says when a write has failed, and when the next one succeeds', async () => {
  let isFull = true
  const { session, statuses } = await watched({
    append: (send) => (isFull ? { type: 'failed', cause: new Error('disk full'), final: false } : send()),
  })
  await expect(session.appendMessage('user', 'hello')).rejects.toThrow('disk full')
  isFull = false
  await session.appendMessage('user', 'hello again')
  expect(statuses()).toEqual([
    expect.stringContaining('failed: The session could not be stored (disk full)'),
    'working',
  ])
})

test('lines whose fate stayed unknown are found by the next append, and it builds on them', async () => {
  let isCut = false
  const { session, statuses } = await watched({
    append: (send) => {
      const stored = send()
      return isCut ? { type: 'unknown', cause: new Error('connection lost') } : stored
    },
    reclaim: (reclaim) => (isCut ? Promise.reject(new Error('still unreachable')) : reclaim()),
  })
  await session.appendMessage('user', 'first')
  isCut = true
  await expect(session.appendMessage('user', 'second')).rejects.toMatchObject({
    code: 'outcome-unknown',
    message: expect.stringContaining('still unreachable'),
  })
  expect(statuses().at(-1)).toMatch(/^failed: /)
  isCut = false
  const [third] = await Promise.all([session.appendMessage('user', 'third'), session.appendMessage('user', 'fourth')])
  expect(await said(session)).toEqual(['user: first', 'user: second', 'user: third', 'user: fourth'])
  expect((await session.getEntry(third)).parentId).toBe((await session.getContextPath())[1]?.id)
})

test('lines whose fate stayed unknown and that were not stored are not in the session', async () => {
  let isCut = false
  const { session } = await watched({
    append: (send) => (isCut ? { type: 'unknown', cause: new Error('connection lost') } : send()),
    reclaim: (reclaim) => (isCut ? Promise.reject(new Error('still unreachable')) : reclaim()),
  })
  await session.appendMessage('user', 'first')
  isCut = true
  await expect(session.appendMessage('user', 'second')).rejects.toThrow(/still unreachable/)
  await expect(session.appendMessage('user', 'still second')).rejects.toThrow(/still unreachable/)
  isCut = false
  await session.appendMessage('user', 'third')
  expect(await said(session)).toEqual(['user: first', 'user: third'])
})

test('a session that another writer took over says so at once and rejects everything from then on', async () => {
  const lost = new AbortController()
  const { session, statuses } = await watched({ lost: lost.signal })
  await session.appendMessage('user', 'mine')
  lost.abort(new SessionError('fenced', 'Another writer has taken over this session: node 2.'))
  expect(statuses()).toEqual(['lost: Another writer has taken over this session: node 2.'])
  await expect(session.appendMessage('user', 'late')).rejects.toMatchObject({ code: 'fenced' })
  expect(session.storage.type).toBe('lost')
})

test('a writer that cannot reclaim its session has lost it', async () => {
  const { session, statuses } = await watched({
    append: () => ({ type: 'unknown', cause: new Error('connection lost') }),
    reclaim: async () => ({ type: 'owned', owner: { reason: 'Process 7 writes it.' } }),
  })
  await expect(session.appendMessage('user', 'late')).rejects.toMatchObject({ code: 'fenced' })
  expect(statuses().at(-1)).toMatch(/^lost: Another writer has taken over this session: Process 7 writes it\./)
})

test('a writer that loses its session while it looks for its lines has lost it', async () => {
  const lost = new AbortController()
  const { session } = await watched({
    lost: lost.signal,
    append: (send) => {
      void send()
      return { type: 'unknown', cause: new Error('connection lost') }
    },
    reclaim: async (reclaim) => {
      const claim = await reclaim()
      lost.abort(new SessionError('fenced', 'Another writer has taken over this session: node 2.'))
      return claim
    },
  })
  await expect(session.appendMessage('user', 'late')).rejects.toMatchObject({ code: 'fenced' })
})

test('all handles of a session in a process are told, and a closed one no longer', async () => {
  let failures = 0
  const { session, store, statuses } = await watched({
    append: (send) =>
      failures-- > 0 ? { type: 'failed', cause: new Error('no route'), final: false, isPassing: true } : send(),
  })
  const other = await store.open(session.id)
  const told: StorageStatus['type'][] = []
  other.onStorageChange(({ type }) => told.push(type))
  failures = 1
  await session.appendMessage('user', 'hello')
  await other.close()
  failures = 1
  await session.appendMessage('user', 'hello')
  expect(told).toEqual(['waiting', 'working'])
  expect(statuses()).toHaveLength(4)
})

interface Changes {
  append?: (send: () => AppendResult) => AppendResult | Promise<AppendResult>
  reclaim?: (reclaim: WritableLog['reclaim']) => ReturnType<WritableLog['reclaim']>
  lost?: AbortSignal
}

/** A session on a store that behaves as told from its second line on, and what the session said about it. */
async function watched({ append, reclaim, lost }: Changes): Promise<{
  store: SessionStore
  session: Session
  statuses: () => string[]
}> {
  const port = changedPort(new MemoryLogStore(), {
    log: (log) => ({
      ...(append && { append: (lines, options) => append(() => log.append(lines, options) as AppendResult) }),
      ...(reclaim && { reclaim: () => reclaim(() => log.reclaim()) }),
      ...(lost && { lost }),
    }),
  })
  const store = new SessionStore(port)
  const session = await store.create({ id: 's' })
  const told: string[] = []
  session.onStorageChange((status) => told.push(wordsOf(status)))
  return { store, session, statuses: () => told }
}

function wordsOf(status: StorageStatus): string {
  if (status.type === 'working') return 'working'
  return `${status.type}: ${status.type === 'waiting' ? status.reason : status.error.message}`
}
