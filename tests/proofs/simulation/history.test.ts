import { expect, test } from 'vitest'
import { playHistory } from './history.ts'

const small = { nodes: 5, hours: 0.05, sessions: 4, faultEveryMs: 5000 }

test('two simulations with the same seed have the same history, and one with another seed has another', async () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  console.log(`seed ${seed}`)
  const first = await playHistory({ ...small, seed })
  const again = await playHistory({ ...small, seed })
  const other = await playHistory({ ...small, seed: seed + 1 })
  expect(first.problems).toEqual([])
  expect(first.figures.runs).toBeGreaterThan(0)
  expect(again).toEqual(first)
  expect(other.digest).not.toBe(first.digest)
})

test('a simulation leaves the timers, the clocks and the random numbers of the process as they were', async () => {
  const { setTimeout: timer, setInterval: interval, setImmediate: immediate, Date: date } = globalThis
  const { random } = Math
  await playHistory({ ...small, hours: 0.01, seed: 1 })
  expect([setTimeout, setInterval, setImmediate, Date, Math.random]).toEqual([timer, interval, immediate, date, random])
  expect(Date.now()).toBeLessThan(Date.parse('2029-01-01'))
})
