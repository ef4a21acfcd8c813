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

  /** Until then it does not answer what it is asked for by others than beats. */
  readonly reads = Promise.withResolvers<void>()
  /** The next beat is not answered, as on a connection that fell silent. */
  isSilent = false
  #abandonedCalls = 0

  readonly openPool = (_: string, max: number): ConnectionPool => {
    let free = max
    const waiting: (() => void)[] = []
    return {
      connect: async () => {
        if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve))
        free--
        const ended = Promise.withResolvers<never>()
        ended.promise.catch(() => undefined)
        return {
          query: async (text, values = []) => ({
            rows: await Promise.race([this.#answer(text, values), ended.promise]),
          }),
          release: () => {
            free++
            waiting.shift()?.()
          },
          end: async () => ended.reject(new Error('Connection terminated')),
        }
      },
      end: async () => undefined,
    }
  }

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
    if (text.includes('abandoned_sessions')) return [{ key: '3', header: '' }]
    if (text.includes('claim_abandoned')) {
      if (++this.#abandonedCalls === 1) throw new Error('Connection terminated')
      return [{ id: 'abandoned', key: '3', term: 2, head: 1, lines: 1 }]
    }
    if (text.includes('find_session')) await this.reads.promise
    if (text.includes('append_lines')) {
      await this.append.promise
      return [{ place: 1, first: 2 }]
    }
    if (text.includes('tapetree.beat')) {
      if (this.isSilent) {
        this.isSilent = false
        return new Promise(() => undefined)
      }
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

test('confirming the owner of a closed log rejects, also if it was closed during the confirmation', async () => {
  sleep(3000)
  const during = log.confirm?.()
  await Promise.all([expect(during).rejects.toMatchObject({ code: 'session-closed' }), log.close()])
  await expect(log.confirm?.()).rejects.toMatchObject({ code: 'session-closed' })
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

test('beats go on while all read connections are busy for longer than the lease', async () => {
  const reads = Array.from({ length: 12 }, () => store.placeOf(localScope, 's'))
  await vi.advanceTimersByTimeAsync(4000)
  expect(database.beats).toHaveLength(5)
  expect(log.confirm?.()).toBeUndefined()
  database.reads.resolve()
  await Promise.all(reads)
})

test('a beat whose connection falls silent is given again before the lease ends', async () => {
  database.isSilent = true
  await vi.advanceTimersByTimeAsync(1000)
  expect(database.beats).toHaveLength(1)
  await vi.waitFor(() => expect(database.beats).toHaveLength(2), { timeout: 2000 })
})

test('a claim of abandoned sessions that is repeated waits for the standbys, by another beat', async () => {
  const [abandoned] = await store.claimAbandoned(localScope, { limit: 1 })
  expect(abandoned?.sessionId).toBe('abandoned')
  expect(database.beats).toHaveLength(3)
})
