import { expect, test } from 'vitest'
import { ageOf, elapsedText } from './amounts.ts'

test('an age is one short word', () => {
  const now = Date.parse('2026-11-15T12:00:00Z')
  const ages = ['2026-11-15T11:59:50Z', '2026-11-15T11:55:00Z', '2026-11-15T01:00:00Z', '2026-11-01', '2020-01-01', 'x']
  expect(ages.map((time) => ageOf(time, now))).toEqual(['now', '5m', '11h', '14d', '6y', '?'])
})

test('a duration has its two largest units', () => {
  expect([4999, 200_000, 7_500_000].map(elapsedText)).toEqual(['4 s', '3 min 20 s', '2 h 5 min'])
})
