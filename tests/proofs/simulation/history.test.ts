import { expect, test } from 'vitest'
import type { HistoryOptions, HistoryResult } from './history.ts'
import { playHistories } from './play-histories.ts'

const small = { nodes: 5, hours: 0.05, sessions: 4, faultEveryMs: 5000 }

/** Ids grow with the clock, so a history in this thread would make those of all later tests. */
async function play(options: HistoryOptions): Promise<HistoryResult> {
  let played: HistoryResult | undefined
  await playHistories([options], (_, result) => {
    played = result
    return true
  })
  if (!played) throw new Error('The history was not played.')
  return played
}

test('two simulations with the same seed have the same history, and one with another seed has another', async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  console.log(`seed ${seed}`)
  const first = await play({ ...small, seed })
  const again = await play({ ...small, seed })
  const other = await play({ ...small, seed: seed + 1 })
  expect(first.problems).toEqual([])
  expect(first.figures.runs).toBeGreaterThan(0)
  expect(again).toEqual(first)
  expect(other.digest).not.toBe(first.digest)
})
