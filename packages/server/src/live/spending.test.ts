import { FakeClock } from '@tapetree/agent/testing'
import { memoryStore, text, type Session, type SessionStore } from '@tapetree/session'
import { afterEach, expect, test } from 'vitest'
import { LiveSessions } from './live-sessions.ts'
import { Spending } from './spending.ts'

let live: LiveSessions | undefined
afterEach(() => live?.close())

function start(): { store: SessionStore; spending: Spending; clock: FakeClock } {
  const store = memoryStore()
  const clock = new FakeClock()
  clock.advance(Math.max(0, Date.now() - clock.now()))
  const never = (): Promise<never> => Promise.reject(new Error('No session is opened.'))
  live = new LiveSessions({ store, openDriver: never, create: never })
  const spending = new Spending(live, { clock, ancestorsOf: (id) => (id === 'child' ? ['child', 'parent'] : [id]) })
  return { store, spending, clock }
}

const by = (token?: string): { cause: { cmd: string; client: string; token?: string } } => ({
  cause: { cmd: `c-${Math.random()}`, client: 'rest', ...(token !== undefined && { token }) },
})

async function answer(session: Session, cost: number): Promise<void> {
  await session.appendMessage('assistant', [text('said')], { with: { usage: { inputTokens: 1, cost } } })
}

test('the sender of the newest message pays, together with the tokens that it derives from', async () => {
  const { store, spending } = start()
  const session = await store.create({ cwd: '/' })
  await session.appendMessage('user', [text('a')], by('child'))
  await answer(session, 1)
  await session.appendMessage('user', [text('b')], by('other'))
  await answer(session, 2)
  await session.appendMessage('user', [text('of the user of the process')], by())
  await answer(session, 4)
  await spending.refresh()
  const spent = ['child', 'parent', 'other', undefined].map((token) => spending.spentBy(token))
  expect(spent).toEqual([1, 1, 2, 7])
  await answer(session, 8)
  await spending.refresh()
  expect([spending.spentBy(undefined), spending.payerOf(session.id)]).toEqual([15, undefined])
})

test('the sender of a queued message pays for the run that delivers it', async () => {
  const { store, spending } = start()
  const session = await store.create({ cwd: '/' })
  await session.appendMessage('user', [text('a')], by('driver'))
  const { id } = await session.submit('later', by('queuer'))
  await answer(session, 1)
  await session.appendMessage('user', [text('later')], { with: { submissionId: id } })
  await answer(session, 2)
  await spending.refresh()
  expect([spending.spentBy('driver'), spending.spentBy('queuer')]).toEqual([1, 2])
})

test('a run that the server resumes is still paid by the token that started it', async () => {
  const { store, spending } = start()
  const session = await store.create({ cwd: '/' })
  await session.appendMessage('user', [text('a')], by('driver'))
  const resumed = { runId: 'r-2', leafId: session.leafId ?? '', resumes: 'r-1' }
  await session.append({ type: 'run_start', runStart: resumed }, { cause: { cmd: 'x', client: 'server' } })
  await answer(session, 1)
  await spending.refresh()
  expect(spending.spentBy('driver')).toBe(1)
})

test('subagents count for the session that they work for', async () => {
  const { store, spending } = start()
  const parent = await store.create({ cwd: '/' })
  await parent.appendMessage('user', [text('a')], by('driver'))
  const child = await store.create({ cwd: '/', parentSession: parent.id, subagent: true })
  await child.appendMessage('user', [text('task')], { cause: { cmd: 'x', client: 'task' } })
  await answer(child, 3)
  await spending.refresh()
  expect(spending.spentBy('driver')).toBe(3)
})

test('the next day starts at zero', async () => {
  const { store, spending, clock } = start()
  const session = await store.create({ cwd: '/' })
  await session.appendMessage('user', [text('a')], by('driver'))
  await answer(session, 1)
  await spending.refresh()
  expect(spending.spentBy('driver')).toBe(1)
  clock.advance(24 * 60 * 60_000)
  await spending.refresh()
  expect([spending.spentBy('driver'), spending.spentBy(undefined)]).toEqual([0, 0])
})
