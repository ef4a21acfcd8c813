import { text, type Session } from '@tapetree/session'
import { appendFile } from 'node:fs/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SessionHome } from '../../testing/session-home.ts'

let home: SessionHome

beforeEach(async () => {
  home = await SessionHome.make()
})

afterEach(() => home[Symbol.asyncDispose]())

function answer(session: Session, model: string, cost: number, words = 'ok'): Promise<string> {
  const usage = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 5, cost }
  return session.appendMessage('assistant', [text(words)], { with: { provider: 'fake', model, usage } })
}

test('tokens and cost are summed by model, folder and day, and a fork counts once', async () => {
  const first = await home.session(async (session) => {
    // Longer than the read buffer.
    await session.appendMessage('user', [text('"usage": "é"'.repeat(100_000))])
    await answer(session, 'small', 0.25)
    await answer(session, 'large', 1)
  })
  await home.session((session) => answer(session, 'small', 0.5, 'words\n'.repeat(20_000)), { cwd: '/elsewhere' })
  await home.session((session) =>
    session.append({
      type: 'usage',
      usage: { purpose: 'title', provider: 'fake', model: 'small', tokens: { inputTokens: 7, cost: 0.25 } },
    }),
  )
  await home.run(['sessions', 'fork', first])
  await home.run(['sessions', 'archive', first])
  await appendFile(home.logOf(await home.session((session) => answer(session, 'large', 2))), '{"usage":\n')
  const rowsBy = async (by: string): Promise<unknown> =>
    ((await home.json('usage', '--by', by))['rows'] as { key: string; calls: number; cost: number }[]).map(
      ({ key, calls, cost }) => [key, calls, cost],
    )
  expect(await rowsBy('model')).toEqual([
    ['fake/large', 2, 3],
    ['fake/small', 3, 1],
  ])
  expect(await rowsBy('folder')).toEqual([
    [home.cwd, 4, 3.5],
    ['/elsewhere', 1, 0.5],
  ])
  const { out } = await home.run(['usage'])
  expect(out).toMatch(
    /^DAY +CALLS +INPUT +OUTPUT +CACHE READ +CACHE WRITE +COST\n\d{4}-\d\d-\d\d +5 +407 +40 +20 +0 +\$4\.00\ntotal/,
  )
})

test('usage before the first day does not count', async () => {
  await home.session((session) => answer(session, 'small', 1))
  expect(await home.json('usage', '--since', '1d')).toMatchObject({ total: { calls: 1 } })
  expect(await home.json('usage', '--since', '2999-01-01')).toMatchObject({ rows: [], total: { calls: 0 } })
  expect((await home.run(['usage', '--since', 'yesterday'])).code).toBe(2)
})
