import { expect, test } from 'vitest'
import { worseThanTwice } from './gate.ts'

const accepted = {
  ratio: { accepted: 1.2, target: 1.5, better: 'lower' },
  speedup: { accepted: 10, target: 8, better: 'higher' },
} as const

test('figures within twice the accepted ones pass the gate', () => {
  expect(worseThanTwice(accepted, { ratio: 2.4, speedup: 5 })).toEqual([])
})

test('a figure past twice the accepted one, or not measured, is named', () => {
  expect(worseThanTwice(accepted, { ratio: 2.5 })).toEqual([
    'ratio is 2.5, worse than twice the accepted 1.2',
    'speedup is in bench/accepted.json but was not measured',
  ])
})

test('on a slow machine times may be longer, and ratios may not', () => {
  const times = { list_ms: { accepted: 100, target: 200, better: 'lower' }, ratio: accepted.ratio } as const
  expect(worseThanTwice(times, { list_ms: 390, ratio: 3 }, 2)).toEqual([
    'ratio is 3, worse than twice the accepted 1.2',
  ])
})
