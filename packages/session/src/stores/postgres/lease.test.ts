import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { sealLine } from '../../line/seal-line.ts'
import { localScope, type AppendResult, type WritableLog } from '../../log/log-store.ts'
import { Database, type ConnectionPool } from './database.ts'
import { PostgresLogStore } from './postgres-store.ts'

/** A database that answers as it is told, and keeps the answer to an append until then. */
class ToldDatabase {
  /** The claim that the session has; what the store claimed, unless another process has taken over. */
  claim: unknown
  readonly append = Promise.withResolvers<void>()
  readonly beats: number[] = []
  /** The claims by which the process owns sessions. */
  owned: unknown[] = []
  readonly handedOver: unknown[] = []

  readonly openPool = (): ConnectionPool => ({
    connect: async () => ({
      query: async (text, values = []) => ({ rows: await this.#answer(text, values) }),
      release: () => undefined,
      end: async () => undefined,
    }),
    end: async () => undefined,
  })

  async #answer(text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
    if (text.includes('to_regclass')) return [{ name: 'tapetree.version' }]
    if (text.includes('tapetree.version')) return [{ number: 1 }]
    if (text.includes('claim_session')) {
      this.claim = values[3]
      return [{ outcome: 'claimed', key: '1', term: 1, head: 1, lines: 1 }]
    }
    if (text.includes('unheld_sessions')) {
      const claims = values[2] as unknown[]
      return this.owned.filter((claim) => !claims.includes(claim)).map((claim) => ({ key: '2', claim }))
    }
    if (text.includes('hand_over_session')) this.handedOver.push(values[2])
    if (text.includes('append_lines')) {
      await this.append.promise
      return [{ place: 1, first: 2 }]
    }
    if (text.includes('tapetree.beat')) {
      this.beats.push(performance.now())
      const claims = values[6] as unknown[]
      return claims.filter((claim) => claim !== this.claim).map((claim) => ({ key: '1', claim }))
    }
    return []
  }
}

let database: ToldDatabase
let store: PostgresLogStore
let log: WritableLog
let appended: Promise<AppendResult>

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setInterval', 'clearInterval'] })
  database = new ToldDatabase()
  const options = { url: 'told', leaseMs: 3000 }
  store = new PostgresLogStore(options, new Database(options, database.openPool))
  const claim = await store.claim(localScope, 's')
  if (claim.type !== 'claimed') throw new Error(claim.type)
  log = claim.log
  const line = sealLine({ type: 'custom', id: 'a', parent_id: null }, 2)
  appended = Promise.resolve(log.append([line], { term: 1, head: 1, durability: 'durable' }))
})

afterEach(async () => {
  await store.close()
  vi.useRealTimers()
})

/** As a process that is stopped and goes on: its clocks show a later time, and its timers have not fired. */
function sleep(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
}

test('an answer that comes while the lease holds is taken without asking', async () => {
  sleep(1000)
  database.append.resolve()
  expect(await appended).toMatchObject({ type: 'appended' })
  expect(database.beats).toHaveLength(1)
})

test('an answer that comes after the lease has ended is taken if the session is still claimed', async () => {
  sleep(3000)
  database.append.resolve()
  expect(await appended).toMatchObject({ type: 'appended' })
  expect(database.beats).toHaveLength(2)
  expect(log.lost?.aborted).toBe(false)
})

test('an answer that comes after another process has taken over is not taken, and the writer stops', async () => {
  database.claim = 'of another process'
  sleep(3000)
  database.append.resolve()
  expect(await appended).toMatchObject({ type: 'unknown' })
  expect(log.lost?.aborted).toBe(true)
})

test('an answer that comes after the writer has learned that it is not the owner is not taken', async () => {
  database.claim = 'of another process'
  await vi.advanceTimersByTimeAsync(1000)
  expect(log.lost?.aborted).toBe(true)
  database.append.resolve()
  expect(await appended).toMatchObject({ type: 'unknown' })
})

test('a writer confirms without asking that it is the owner while its lease holds, and asks afterwards', async () => {
  sleep(1000)
  expect(log.confirm?.()).toBeUndefined()
  sleep(3000)
  await log.confirm?.()
  expect(database.beats).toHaveLength(2)
  database.claim = 'of another process'
  sleep(3000)
  await expect(log.confirm?.()).rejects.toMatchObject({ code: 'fenced' })
  await expect(log.confirm?.()).rejects.toMatchObject({ code: 'fenced' })
})

test('a session that the process owns without holding it is handed over, and one that it holds is not', async () => {
  database.owned = [database.claim, 'a claim that ran late']
  await vi.advanceTimersByTimeAsync(10_000)
  await vi.waitFor(() => expect(database.handedOver).toEqual(['a claim that ran late']))
})

test('a process that holds no session gives no sign of life until it claims one', async () => {
  await log.close()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(database.beats).toHaveLength(1)
  await store.claim(localScope, 's')
  await vi.advanceTimersByTimeAsync(1000)
  expect(database.beats).toHaveLength(3)
})

test('a process with an address gives signs of life, so that others find it', async () => {
  await store.claim(localScope, 's', { address: 'http://here:1' })
  await log.close()
  const before = database.beats.length
  await vi.advanceTimersByTimeAsync(1000)
  expect(database.beats).toHaveLength(before + 1)
})
