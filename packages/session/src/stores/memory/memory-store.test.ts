import { describe, expect, test } from 'vitest'
import { sealLine } from '../../line/seal-line.ts'
import { localScope } from '../../log/log-store.ts'
import { SessionStore } from '../../store/session-store.ts'
import { testSessionStore } from '../../testing/store-contract.ts'
import { MemoryLogStore } from './memory-store.ts'

describe('memory store', () => {
  testSessionStore({
    test,
    open: async () => {
      const port = new MemoryLogStore()
      return {
        store: new SessionStore(port),
        port,
        reopen: async () => new SessionStore(port),
        writeBehindBack: async (sessionId) => {
          const line = { type: 'custom', id: 'foreign', parent_id: null }
          const claim = await port.claim(localScope, sessionId, { insist: true })
          if (claim.type !== 'claimed') throw new Error('A claim that insists was refused')
          await claim.log.append([sealLine(line, 4)], { term: claim.log.term ?? 0, head: 3, durability: 'durable' })
        },
        close: async () => undefined,
      }
    },
  })
})

describe('memory log store', () => {
  test('a list shows a run as interrupted once its session has no writer', async () => {
    const store = new SessionStore(new MemoryLogStore())
    const session = await store.create()
    await session.append({ type: 'run_start', runStart: { runId: 'run', leafId: null } })
    expect((await store.list()).sessions).toMatchObject([{ status: 'running' }])
    await session.close()
    expect((await store.list()).sessions).toMatchObject([{ status: 'idle', stopped: { type: 'interrupted' } }])
  })

  test('wakes waiters when a line is added, and stops on abort', async () => {
    const port = new MemoryLogStore()
    const store = new SessionStore(port)
    const session = await store.create({ id: 's' })
    const log = await port.open(localScope, 's')
    const stop = new AbortController()
    const changed = log.changed(stop.signal)
    await session.appendSessionInfo('news')
    await expect(changed).resolves.toBeUndefined()
    const aborted = log.changed(stop.signal)
    stop.abort()
    await expect(aborted).resolves.toBeUndefined()
    await expect(log.changed(stop.signal)).resolves.toBeUndefined()
  })

  test('rejects a batch that does not follow its last line, and returns the place of a session', async () => {
    const port = new MemoryLogStore()
    await port.create(localScope, 's', sealLine({ type: 'session', id: 's' }, 1))
    const claim = await port.claim(localScope, 's')
    const log = (claim as Extract<typeof claim, { type: 'claimed' }>).log
    const line = sealLine({ type: 'custom', id: 'a', parent_id: null }, 7)
    expect(log.append([line], { term: 1, head: 6, durability: 'durable' })).toEqual({
      type: 'fenced',
      reason: 'its last line is now 1',
    })
    expect(log.append([line], { term: 2, head: 1, durability: 'durable' })).toEqual({
      type: 'fenced',
      reason: 'its term is now 1',
    })
    expect(await port.placeOf(localScope, 's')).toBe('active')
    expect(await port.placeOf(localScope, 'nowhere')).toBeUndefined()
    expect(await log.readAt([{ at: 10_000, size: 5 }])).toEqual([new Uint8Array()])
    expect(await log.seek(9)).toBeUndefined()
    const insisting = await port.claim(localScope, 's', { insist: true })
    expect(insisting.type).toBe('claimed')
    expect(await log.reclaim()).toEqual({ type: 'owned', owner: { reason: 'Another writer took over.' } })
    if (insisting.type === 'claimed') await insisting.log.close()
    await port.discard(localScope, 's')
    expect(await port.placeOf(localScope, 's')).toBeUndefined()
    await port.close()
  })

  test('sorts sessions without a time by id, and finds sessions without text', async () => {
    const port = new MemoryLogStore()
    await port.create(localScope, 's', sealLine({ type: 'session', id: 's' }, 1))
    const claim = await port.claim(localScope, 's')
    const log = (claim as Extract<typeof claim, { type: 'claimed' }>).log
    const message = { role: 'user', content: [{ type: 'text', text: { content: 'timeless' } }] }
    await log.append([sealLine({ type: 'message', id: 'a', parent_id: null, message }, 2)], {
      term: 1,
      head: 1,
      durability: 'durable',
    })
    expect(await new SessionStore(port).search({ text: 'timeless' })).toMatchObject([{ timestamp: '', role: 'user' }])
    expect((await new SessionStore(port).list()).sessions).toMatchObject([{ created: '', modified: '' }])
  })
})
