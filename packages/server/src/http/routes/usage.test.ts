import { FakeClock } from '@tapetree/agent/testing'
import type { UsageReport } from '@tapetree/client/protocol'
import { memoryStore, text, type SessionStore } from '@tapetree/session'
import { afterEach, expect, test } from 'vitest'
import { TestApi } from '../testing/test-api.ts'

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Answered {
  store: SessionStore
  model: string
  cost: number
  /** Adds to this session instead of a new one. */
  to?: string
  name?: string
}

async function answered({ store, model, cost, to, name = '' }: Answered): Promise<string> {
  await using session = to === undefined ? await store.create({ name }) : await store.open(to)
  const usage = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 5, cost }
  await session.appendMessage('assistant', [text('ok')], { with: { provider: 'fake', model, usage } })
  return session.id
}

test('usage is summed by day, model and session, and a fork counts once', async () => {
  const clock = new FakeClock(Date.parse('2026-11-10T20:00:00Z'))
  const store = memoryStore({ now: () => new Date(clock.now()) })
  const api = new TestApi({ store, parts: { clock } })
  cleanUps.push(() => api.close())
  const first = await answered({ store, model: 'small', cost: 0.25, name: 'first' })
  clock.advance(6 * 60 * 60 * 1000)
  await answered({ store, model: 'large', cost: 2, to: first })
  const second = await answered({ store, model: 'small', cost: 0.5, name: 'second' })
  await (await store.forkFrom(first)).close()
  const archived = await answered({ store, model: 'small', cost: 9 })
  await store.archive(archived)
  const usage = async (query: string): Promise<UsageReport> =>
    (await (await api.get(`/api/usage${query}`)).json()) as UsageReport
  expect(await usage('')).toMatchObject({
    since: '2026-10-13',
    days: [
      { day: '2026-11-10', calls: 1, cost: 0.25 },
      { day: '2026-11-11', calls: 2, cost: 2.5 },
    ],
    models: [
      { provider: 'fake', model_id: 'large', calls: 1, cost: 2 },
      { provider: 'fake', model_id: 'small', calls: 2, cost: 0.75, input_tokens: 200, cache_read_tokens: 10 },
    ],
    sessions: [
      { id: first, name: 'first', cost: 2.25 },
      { id: second, name: 'second', cost: 0.5 },
    ],
    total: { calls: 3, cost: 2.75, output_tokens: 30 },
  })
  expect(await usage('?place=archive')).toMatchObject({
    sessions: [{ id: archived, is_archived: true, cost: 9 }],
    total: { calls: 1, cost: 9 },
  })
  expect((await usage('?place=all')).total).toMatchObject({ calls: 4, cost: 11.75 })
  // In Tokyo it was the same day.
  expect((await usage('?time_zone=Asia/Tokyo')).days).toMatchObject([{ day: '2026-11-11', calls: 3 }])
  expect(await usage('?days=1')).toMatchObject({ since: '2026-11-11', total: { calls: 2 } })
  expect((await api.get('/api/usage?time_zone=Nowhere/At-All')).status).toBe(422)
})
