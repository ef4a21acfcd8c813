import { expect, test } from 'vitest'
import { median, percentile } from './percentile.ts'

test('a percentile is the nearest rank of at least a thousand samples', () => {
  const samples = Array.from({ length: 1000 }, (_, index) => 1000 - index)
  expect([percentile(samples, 0.5), percentile(samples, 0.99), percentile(samples, 1)]).toEqual([500, 990, 1000])
})

test('a percentile of few samples is refused', () => {
  expect(() => percentile([1, 2, 3], 0.99)).toThrow('1,000 samples')
})

test('a median of an even number of samples lies between the middle two', () => {
  expect([median([3, 1, 2]), median([4, 1, 3, 2])]).toEqual([2, 2.5])
})
